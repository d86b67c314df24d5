"""/api/stats, and the visits of links and QR codes"""

from linkmgr.api import stats
from linkmgr.fields.periods import DATE_OR_TIME, DEFAULT_PERIOD, PERIODS
from linkmgr.fields.stats import BOTS, BY, DEFAULT_LIMIT, DIMENSIONS, EVERYONE, MAX_BY, MAX_IDS, MAX_ROWS, METRICS
from linkmgr.openapi.model import Operation, Section, parameter
from linkmgr.openapi.schemas import (
    DAY,
    ID,
    TIMESTAMP,
    JsonSchema,
    array_of,
    choice,
    flag,
    map_of,
    number,
    or_null,
    record,
    ref,
    success,
    text,
)
from linkmgr.repository.stats import LIVE_MINUTES

_TIME = "2026-10-24T00:00:00+02:00"
_DATE_OR_TIME = f"^{DATE_OR_TIME}$"
_FILTER: JsonSchema = {"type": "string", "maxLength": 2000, "pattern": "^[^\\r\\n\\x00]+$"}


def _any_of(*names: str) -> JsonSchema:
    return {"type": "array", "items": choice(*names)}


def _filter_of(dimension: str, example: str) -> JsonSchema:
    return parameter(dimension, f"Labels of this dimension, such as `{example}`.", **_FILTER, examples=[example])


_FILTERS = {
    "country": "DE,-US",
    "city": "Berlin",
    "referrer": "t.co,news.example.com",
    "browser": "-Chrome",
    "os": "iOS,Android",
    "device": "phone",
    "language": "de",
}
assert tuple(_FILTERS) == DIMENSIONS

_BOTS = parameter("bots", "Visits of bots: left out, counted too, or counted alone.", type="string", enum=list(BOTS),
                  default="exclude")  # fmt: skip
_USER = parameter(
    "user",
    f"For administrators: the id of another user, or `{EVERYONE}` for all users together.",
    type="string",
    pattern=f"^(?:[0-9]+|{EVERYONE})$",
)
_QUERY = (
    parameter("by", f"Up to {MAX_BY} names, at most one of them a time.", shown="time:day,country", type="array",
              items={"type": "string", "enum": list(BY)}, minItems=1, maxItems=MAX_BY, default=["time:day"],
              examples=[["time:day", "country"]]),
    parameter("metrics", "The numbers in a row.", type="array", items={"type": "string", "enum": list(METRICS)},
              minItems=1, default=["clicks"], examples=[["clicks", "visitors"]]),
    parameter("period", "A range that ends today.", shown="7d", type="string", enum=list(PERIODS),
              default=DEFAULT_PERIOD),
    parameter("from", "The start of the range, instead of `period`.", type="string", maxLength=255,
              pattern=_DATE_OR_TIME, examples=["2026-10-01"]),
    parameter("to", "The end of the range, which is not part of it. Without it, the end of the current day.",
              type="string", maxLength=255, pattern=_DATE_OR_TIME, examples=["2026-11-01"]),
    parameter("timezone", "The IANA time zone of days, weeks and months, and of times without a zone.",
              shown="Europe/Berlin", type="string", maxLength=255, default="UTC", pattern="^[A-Za-z0-9_+/-]+$",
              examples=["Europe/Berlin"]),
    parameter("ids", f"Up to {MAX_IDS} ids of links and QR codes.", type="string", maxLength=2000,
              pattern="^[0-9]+(?:,[0-9]+)*$", examples=["17,18"]),
    parameter("campaign", "The links of a campaign.", type="string", maxLength=255, pattern="^[0-9]+$"),
    parameter("channel", "The links and QR codes of a channel.", type="string", maxLength=255, pattern="^[0-9]+$"),
    parameter("domain", "The links of a branded domain, or of this service.", type="string", maxLength=255,
              examples=["go.example.com"]),
    *(_filter_of(dimension, example) for dimension, example in _FILTERS.items()),
    _BOTS,
    parameter("order", "A column. With `-` before it, the largest first. Default: the time, or the most clicks first.",
              type="string", maxLength=255, examples=["-clicks"],
              pattern=f"^-?(?:time|{'|'.join((*DIMENSIONS, 'target', *METRICS))})$"),
    parameter("limit", "The number of labels, or of pairs of them. Those with the most clicks are kept.",
              type="integer", minimum=1, maximum=MAX_ROWS, default=DEFAULT_LIMIT),
    _USER,
)  # fmt: skip

_NAMES = map_of(text("DE,-US"), "country")

SECTION = Section(
    name="Statistics",
    description=stats.ABOUT,
    records={
        "StatsRow": {
            "type": "object",
            "properties": {
                "time": text("2026-10-24"),
                **{dimension: text("Germany") for dimension in DIMENSIONS},
                "target": ID,
                "clicks": number(12),
                "visitors": or_null(number(9)),
            },
            "additionalProperties": False,
            "examples": [{"time": "2026-10-24", "country": "Germany", "clicks": 12}],
        },
        "StatsTotals": {
            "type": "object",
            "properties": {"clicks": number(12), "visitors": or_null(number(9))},
            "additionalProperties": False,
            "examples": [{"clicks": 12}],
        },
        "StatsMeta": record(
            metrics=_any_of(*METRICS),
            by=_any_of(*BY) | {"examples": [["time:day", "country"]]},
            ids={"type": ["array", "null"], "items": ID, "examples": [None]},
            campaign={"type": ["integer", "null"], "examples": [None]},
            channel={"type": ["integer", "null"], "examples": [None]},
            domain={"type": ["string", "null"], "examples": [None]},
            **{"from": text(_TIME), "to": text("2026-10-31T00:00:00+01:00")},
            period=or_null(choice(*PERIODS)),
            timezone=text("Europe/Berlin"),
            filters=_NAMES,
            bots=choice(*BOTS),
            order=text("time"),
            limit=number(1000, 1),
            truncated=flag(False),
            source=choice("rollups", "visits"),
            detailed_since=or_null(TIMESTAMP),
            utc_days_before=DAY,
            visitors_null_because={"type": ["string", "null"], "examples": [None]},
        ),
        "Visit": record(
            time=TIMESTAMP,
            country=text("Germany"),
            city=text("Berlin"),
            referrer=text("t.co"),
            browser=text("Mobile Safari"),
            os=text("iOS"),
            device=text("phone"),
            language=text("German"),
            bot=flag(False),
        ),
    },
    tables={"Members of meta": "StatsMeta"},
    operations=(
        Operation(
            "GET",
            "/api/stats",
            "Read statistics over time",
            success(data=record(rows=array_of(ref("StatsRow")), totals=ref("StatsTotals")), meta=ref("StatsMeta")),
            query=_QUERY,
            codes=("administrators_only", "address_too_long", "domain_unknown", "missing", "stats_busy", "too_slow"),
            csv="time,country,clicks\r\n2026-10-24,Germany,12\r\n",
            description="A parameter or a name that does not exist is a 400 that lists those that do.",
        ),
        Operation(
            "GET",
            "/api/stats/live",
            "Read the clicks of the last minutes",
            success(
                data=record(
                    rows=array_of(record(time=TIMESTAMP, clicks=number(3))),
                    totals=record(clicks=number(3)),
                ),
                meta=record(bots=choice(*BOTS)),
            ),
            query=(_BOTS, _USER),
            codes=("administrators_only", "missing", "too_slow"),
            csv="time,clicks\r\n2026-11-21 09:30:00,3\r\n",
            description=f"A row for each of the last {LIVE_MINUTES} minutes, in UTC, the current one included.",
        ),
    ),
)


def visits_of(path: str, what: str) -> Operation:
    """Return the operation that lists the visits of a link or a QR code."""
    return Operation(
        "GET",
        path,
        f"List the visits of a {what}",
        success(
            data={
                "type": "object",
                "properties": {
                    "perpage": number(15, 1),
                    "visits": array_of(ref("Visit")),
                    "next": text("20261121T093000.123456-1"),
                },
                "required": ["perpage", "visits"],
                "additionalProperties": False,
            }
        ),
        query=(
            parameter("after", "`next` of the previous page.", type="string", maxLength=255,
                      pattern=r"^[0-9]{8}T[0-9]{6}\.[0-9]{6}-[0-9]{1,9}$"),
            parameter("limit", "The number of visits on a page. A number above 1000 means 1000.", type="integer",
                      minimum=1, default=15),
            _BOTS,
        ),
        csv="time,country,city,referrer,browser,os,device,language,bot\r\n"
        "2026-11-21 09:30:00,Germany,Berlin,t.co,Mobile Safari,iOS,phone,German,false\r\n",
        description="Newest first, as long as the plan keeps visits. `next` is absent on the last page. With "
        "the header `Accept: text/csv` the visits are returned as CSV, and the next page is in the header `Link`.",
    )  # fmt: skip
