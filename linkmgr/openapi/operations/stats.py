"""/api/stats, and the visits of links and QR codes"""

from linkmgr.fields import dimensions, periods
from linkmgr.fields import stats as queries
from linkmgr.fields.dimensions import BY_NAME, DIMENSIONS
from linkmgr.fields.member import JsonSchema
from linkmgr.fields.stats import BOTS, BY, LIVE, METRICS, QUERY, VISITS
from linkmgr.openapi.model import Operation, listed, prose
from linkmgr.repository import visits
from linkmgr.resources import shapes as js
from linkmgr.visits import stats
from linkmgr.web import csv

_TIME = "2026-10-24T00:00:00+02:00"
_NAMES = js.map_of("DE,-US", "country")
_VISIT: dict[str, js.Shape] = {
    "time": js.TIMESTAMP,
    **{dimension.name: dimension.example for dimension in DIMENSIONS},
    "bot": False,
}


def _some_of(example: JsonSchema, **members: js.Shape) -> JsonSchema:
    """Return the schema of an object with numbers and some of the members."""
    numbers = js.record(**members, clicks=12, visitors=js.or_null(9))["properties"]
    return {"type": "object", "properties": numbers, "additionalProperties": False, "examples": [example]}


SECTION = listed(
    "stats",
    "Statistics",
    description=prose(
        "statistics", dimensions=dimensions, periods=periods, queries=queries, stats=stats, visits=visits
    ),
    records=lambda: {
        "StatsRow": _some_of(
            {"time": "2026-10-24", "country": "Germany", "clicks": 12},
            time="2026-10-24",
            **dict.fromkeys(BY_NAME, "Germany"),
            target=js.ID,
        ),
        "StatsTotals": _some_of({"clicks": 12}),
        "StatsMeta": js.record(
            metrics=js.array_of(js.choice(*METRICS)),
            by=js.array_of(js.choice(*BY)) | {"examples": [["time:day", "country"]]},
            ids={"type": ["array", "null"], "items": js.ID, "examples": [None]},
            campaign={"type": ["integer", "null"], "examples": [None]},
            channel={"type": ["integer", "null"], "examples": [None]},
            domain={"type": ["string", "null"], "examples": [None]},
            **{"from": _TIME, "to": "2026-10-31T00:00:00+01:00"},
            period=js.or_null(js.choice(*periods.PERIODS)),
            timezone="Europe/Berlin",
            filters=_NAMES,
            bots=js.choice(*BOTS),
            order="time",
            limit=js.number(1000, 1),
            truncated=False,
            source=js.choice("rollups", "visits"),
            detailed_since=js.or_null(js.TIMESTAMP),
            utc_days_before=js.DAY,
            visitors_null_because={"type": ["string", "null"], "examples": [None]},
        ),
        "Visit": js.record(**_VISIT),
    },
    tables={"Members of meta": "StatsMeta"},
    operations=(
        Operation(
            "GET /api/stats",
            "Read statistics over time",
            js.success(
                data=js.record(rows=js.array_of(js.ref("StatsRow")), totals=js.ref("StatsTotals")),
                meta=js.ref("StatsMeta"),
            ),
            query=QUERY,
            shown={"by": "time:day,country", "period": "7d", "timezone": "Europe/Berlin"},
            codes=("administrators_only", "address_too_long", "domain_unknown", "missing", "stats_busy", "too_slow"),
            files={"text/csv": "time,country,clicks\r\n2026-10-24,Germany,12\r\n"},
        ),
        Operation(
            "GET /api/stats/live",
            "Read the clicks of the last minutes",
            js.success(
                data=js.record(rows=js.array_of(js.record(time=js.TIMESTAMP, clicks=3)), totals=js.record(clicks=3)),
                meta=js.record(bots=js.choice(*BOTS)),
            ),
            query=LIVE,
            values={"minutes": stats.LIVE_MINUTES},
            codes=("administrators_only", "missing", "too_slow"),
            files={"text/csv": "time,clicks\r\n2026-11-21 09:30:00,3\r\n"},
        ),
    ),
)


def visits_of(path: str, what: str) -> Operation:
    """Return the operation that lists the visits of a link or a QR code."""
    return Operation(
        f"GET {path}",
        f"List the visits of a {what}",
        js.success(
            data=js.record(
                perpage=js.number(15, 1), visits=js.array_of(js.ref("Visit")), next="20261121T093000.123456-1"
            )
            | {"required": ["perpage", "visits"], "additionalProperties": False}
        ),
        query=VISITS,
        files={"text/csv": csv.lines([_VISIT, js.example_of(js.record(**_VISIT), {}).values()]).decode()},
    )
