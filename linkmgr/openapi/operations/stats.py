"""/api/stats, and the visits of links and QR codes"""

from linkmgr.fields import periods
from linkmgr.fields import stats as queries
from linkmgr.fields.stats import BOTS, BY, DIMENSIONS, LIVE, METRICS, QUERY, VISITS
from linkmgr.openapi.model import Operation, Section, prose
from linkmgr.openapi.schemas import (
    DAY,
    ID,
    TIMESTAMP,
    JsonSchema,
    Shape,
    array_of,
    choice,
    map_of,
    number,
    or_null,
    record,
    ref,
    success,
)
from linkmgr.repository import visits
from linkmgr.visits import stats

_TIME = "2026-10-24T00:00:00+02:00"
_NAMES = map_of("DE,-US", "country")


def _some_of(example: JsonSchema, **members: Shape) -> JsonSchema:
    """Return the schema of an object with numbers and some of the members."""
    numbers = record(**members, clicks=12, visitors=or_null(9))["properties"]
    return {"type": "object", "properties": numbers, "additionalProperties": False, "examples": [example]}


SECTION = Section(
    name="Statistics",
    description=prose("statistics", periods=periods, queries=queries, stats=stats, visits=visits),
    records={
        "StatsRow": _some_of(
            {"time": "2026-10-24", "country": "Germany", "clicks": 12},
            time="2026-10-24",
            **dict.fromkeys(DIMENSIONS, "Germany"),
            target=ID,
        ),
        "StatsTotals": _some_of({"clicks": 12}),
        "StatsMeta": record(
            metrics=array_of(choice(*METRICS)),
            by=array_of(choice(*BY)) | {"examples": [["time:day", "country"]]},
            ids={"type": ["array", "null"], "items": ID, "examples": [None]},
            campaign={"type": ["integer", "null"], "examples": [None]},
            channel={"type": ["integer", "null"], "examples": [None]},
            domain={"type": ["string", "null"], "examples": [None]},
            **{"from": _TIME, "to": "2026-10-31T00:00:00+01:00"},
            period=or_null(choice(*periods.PERIODS)),
            timezone="Europe/Berlin",
            filters=_NAMES,
            bots=choice(*BOTS),
            order="time",
            limit=number(1000, 1),
            truncated=False,
            source=choice("rollups", "visits"),
            detailed_since=or_null(TIMESTAMP),
            utc_days_before=DAY,
            visitors_null_because={"type": ["string", "null"], "examples": [None]},
        ),
        "Visit": record(
            time=TIMESTAMP,
            country="Germany",
            city="Berlin",
            referrer="t.co",
            browser="Mobile Safari",
            os="iOS",
            device="phone",
            language="German",
            bot=False,
        ),
    },
    tables={"Members of meta": "StatsMeta"},
    operations=(
        Operation(
            "GET /api/stats",
            "Read statistics over time",
            success(data=record(rows=array_of(ref("StatsRow")), totals=ref("StatsTotals")), meta=ref("StatsMeta")),
            query=QUERY,
            shown={"by": "time:day,country", "period": "7d", "timezone": "Europe/Berlin"},
            codes=("administrators_only", "address_too_long", "domain_unknown", "missing", "stats_busy", "too_slow"),
            csv="time,country,clicks\r\n2026-10-24,Germany,12\r\n",
            description="A parameter or a name that does not exist is a 400 that lists those that do.",
        ),
        Operation(
            "GET /api/stats/live",
            "Read the clicks of the last minutes",
            success(
                data=record(
                    rows=array_of(record(time=TIMESTAMP, clicks=3)),
                    totals=record(clicks=3),
                ),
                meta=record(bots=choice(*BOTS)),
            ),
            query=LIVE,
            codes=("administrators_only", "missing", "too_slow"),
            csv="time,clicks\r\n2026-11-21 09:30:00,3\r\n",
            description=f"A row for each of the last {stats.LIVE_MINUTES} minutes, in UTC, the current one included.",
        ),
    ),
)


def visits_of(path: str, what: str) -> Operation:
    """Return the operation that lists the visits of a link or a QR code."""
    return Operation(
        f"GET {path}",
        f"List the visits of a {what}",
        success(
            data=record(perpage=number(15, 1), visits=array_of(ref("Visit")), next="20261121T093000.123456-1")
            | {"required": ["perpage", "visits"], "additionalProperties": False}
        ),
        query=VISITS,
        csv="time,country,city,referrer,browser,os,device,language,bot\r\n"
        "2026-11-21 09:30:00,Germany,Berlin,t.co,Mobile Safari,iOS,phone,German,false\r\n",
        description="Newest first, as long as the plan keeps visits. `next` is absent on the last page. With "
        "the header `Accept: text/csv` the visits are returned as CSV, and the next page is in the header `Link`.",
    )
