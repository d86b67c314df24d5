"""Queries of statistics, declared once. An unknown parameter or value is an error that lists the
known ones."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from linkmgr.core.errors import AppError
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import (
    ID,
    IDS,
    MAX_IDS,
    Parameter,
    host_of,
    parameters,
    query_choice,
    query_text,
    row_id,
    row_ids,
)
from linkmgr.core.fields.zones import TIME, parse_zone
from linkmgr.features.statistics import label_filters
from linkmgr.features.statistics.label_filters import Filter
from linkmgr.features.statistics.periods import (
    DEFAULT_PERIOD,
    PERIODS,
    UNITS,
    Range,
    parse_range,
)
from linkmgr.visits.dimensions import BY_NAME, OF_ROWS

RATE, CURRENCY = "rate", "currency"
OF_CLICKS = ("clicks", "visitors", RATE)  # metrics that need the visits
CONVERSIONS = ("conversions", "value", RATE)
METRICS = ("clicks", "visitors", *CONVERSIONS)
OF_CONVERSIONS = ("event", CURRENCY)  # dimensions that visits do not have
TIMES = tuple(f"time:{unit}" for unit in UNITS)
BY = (*TIMES, *BY_NAME, *OF_CONVERSIONS, *OF_ROWS)
BOTS = {"exclude": [False], "include": [False, True], "only": [True]}  # the values of the column `bot`
MAX_BY = 2
MAX_ROWS = 10_000
DEFAULT_LIMIT = 1000
EVERYONE = "all"  # the value of `user` for all users
_MAX_TEXT = 2000
_POSITION = r"[0-9]{8}T[0-9]{6}\.[0-9]{6}-[0-9]{1,9}"  # in a list of visits


@dataclass(frozen=True)
class Selection:
    ids: list[int] | None
    campaign: int | None
    channel: int | None
    domain: str | None

    @property
    def count(self) -> int:
        return sum(value is not None for value in (self.ids, self.campaign, self.channel, self.domain))

    @property
    def has_group(self) -> bool:
        return {self.campaign, self.channel, self.domain} != {None}


@dataclass(frozen=True)
class Query:
    metrics: list[str]
    by: list[str]
    selection: Selection
    range: Range
    filters: dict[str, Filter]
    bots: str
    order: str
    limit: int
    is_named: bool = False  # True if the rows have the names of links, QR codes, campaigns and channels
    before: tuple[datetime, ...] = ()  # the starts of the buckets of the time before, and its end

    @property
    def since(self) -> datetime:
        assert self.range.since
        return self.range.since

    @property
    def first(self) -> datetime:
        return self.before[0] if self.before else self.since

    @property
    def unit(self) -> str | None:
        return next((name.removeprefix("time:") for name in self.by if name in TIMES), None)

    @property
    def dimensions(self) -> list[str]:
        return [name for name in self.by if name not in TIMES]

    @property
    def of_visits(self) -> dict[str, Filter]:
        """The filters that visits have too."""
        return {name: part for name, part in self.filters.items() if name in BY_NAME}

    @property
    def columns(self) -> list[str]:
        return columns(self.by, self.metrics) + (["before"] if self.before else [])


def columns(by: list[str], metrics: list[str]) -> list[str]:
    return ["time" if name in TIMES else name for name in by] + metrics


def user(*, is_admin: bool) -> int | str | None:
    """Return the id in `user`, or EVERYONE, or None if it was not sent."""
    text = query_text("user")
    if text is None:
        return None
    if not is_admin:
        raise AppError("administrators_only")
    return EVERYONE if text == EVERYONE else row_id("user", text, f"an id such as 17, or {EVERYONE}")


# --- values of parameters, from their names and texts


def _limit(name: str, text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,9}", text, re.ASCII) or int(text) > MAX_ROWS:
        raise invalid(f"{name} must be an integer from 1 to {MAX_ROWS}", "out_of_range")
    return int(text)


def _position(name: str, text: str) -> tuple[str, int]:
    """Return a position in a list of visits: a time, and the number of visits at this time that
    were returned."""
    time, _, number = text.rpartition("-")
    try:
        datetime.strptime(time if re.fullmatch(_POSITION, text, re.ASCII) else "", "%Y%m%dT%H%M%S.%f")
    except ValueError:
        raise invalid(f"{name} must be the 'next' of the previous page") from None
    return time, int(number)


# --- the queries


def _names(about: str, choices: tuple[str, ...], example: list[str], **bounds: Any) -> Parameter:
    def parse(name: str, text: str) -> list[str]:
        names = list(dict.fromkeys(text.split(",")))
        if not set(names) <= set(choices):
            raise invalid(
                f"{name} must be from the list {', '.join(choices)}, separated by commas", "unknown_value"
            )
        return names

    items = {"type": "string", "enum": list(choices)}
    bounds |= {"items": items, "minItems": 1, "default": example[:1], "examples": [example]}
    return Parameter(about, parse, is_list=True, type="array", **bounds)


def _labels(example: str, about: str = "") -> Parameter:
    about, pattern = about or f"Labels of this dimension, such as `{example}`.", "^[^\\r\\n\\x00]+$"
    return Parameter(
        about, label_filters.parse, is_list=True, maxLength=_MAX_TEXT, pattern=pattern, examples=[example]
    )


_BOTS = Parameter(
    "Visits of bots: left out, counted too, or counted alone.",
    title="BotFilter",
    type="string",
    enum=list(BOTS),
    default="exclude",
)
_USER = Parameter(
    f"For administrators: the id of another user, or `{EVERYONE}` for all users together.",
    type="string",
    pattern=f"^(?:[0-9]+|{EVERYONE})$",
)
LIVE = {"bots": _BOTS, "user": _USER}
VISITS = {
    "after": Parameter("`next` of the previous page.", _position, pattern=f"^{_POSITION}$"),
    "limit": Parameter(
        "The number of visits on a page. A number above 1000 means 1000.",
        type="integer",
        minimum=1,
        default=15,
    ),
    "bots": _BOTS,
}
QUERY = {
    "metrics": _names("The numbers in a row.", METRICS, ["clicks", "visitors"]),
    "by": _names(
        f"Up to {MAX_BY} names, at most one of them a time.", BY, ["time:day", "country"], maxItems=MAX_BY
    ),
    "ids": Parameter(
        f"Up to {MAX_IDS} ids of links and QR codes.",
        row_ids,
        is_list=True,
        **IDS,
    ),
    "campaign": Parameter("The links of a campaign.", row_id, **ID),
    "channel": Parameter("The links and QR codes of a channel.", row_id, **ID),
    "domain": Parameter(
        "The links of a branded domain, or of this service.", host_of, examples=["go.example.com"]
    ),
    "from": Parameter("The start of the range, instead of `period`.", pattern=TIME, examples=["2026-10-01"]),
    "to": Parameter(
        "The end of the range, which is not part of it. Default: the end of today.",
        pattern=TIME,
        examples=["2026-11-01"],
    ),
    "period": Parameter(
        "A range that ends today, or with the last week or month.",
        type="string",
        enum=list(PERIODS),
        default=DEFAULT_PERIOD,
    ),
    "timezone": Parameter(
        "The IANA time zone of days, weeks and months, and of times without a zone.",
        default="UTC",
        pattern="^[A-Za-z0-9_+/-]+$",
        examples=["Europe/Berlin"],
    ),
    **{name: _labels(dimension.filter) for name, dimension in BY_NAME.items()},
    "event": _labels("sale", "Of conversions: events, such as `sale`."),
    CURRENCY: _labels("EUR", "Of conversions: currencies, such as `EUR`."),
    "bots": _BOTS,
    "order": Parameter(
        "A column. With `-` before it, the largest first. Default: the time, or the most clicks first.",
        pattern=f"^-?(?:time|{'|'.join((*BY_NAME, *OF_CONVERSIONS, *OF_ROWS, *METRICS))})$",
        examples=["-clicks"],
    ),
    "limit": Parameter(
        "How many labels, or pairs of them: those with the most clicks.",
        _limit,
        type="integer",
        minimum=1,
        maximum=MAX_ROWS,
        default=DEFAULT_LIMIT,
    ),
    "user": _USER,
    "names": Parameter(
        "`1` adds `target_name` and `shorturl` to links and QR codes, `campaign_name` to campaigns and "
        "`channel_name` to channels. A CSV has no names.",
        enum=["0", "1"],
        default="0",
        title="Flag",
    ),
}


def _order(query_columns: list[str]) -> str:
    choices = tuple(sign + name for name in query_columns for sign in ("", "-"))
    first_metric = next(name for name in query_columns if name in METRICS)
    return query_choice("order", choices) or ("time" if "time" in query_columns else f"-{first_metric}")


def parse() -> Query:
    sent = parameters(QUERY)
    by, metrics = sent["by"], sent["metrics"]
    if len(by) > MAX_BY or len(set(by) & set(TIMES)) > 1:
        raise invalid(f"by must have at most {MAX_BY} names, and at most one of them with time:", "too_long")
    zone, period = parse_zone(sent["timezone"]), query_choice("period", PERIODS)  # None if it was not sent
    span = parse_range(zone, datetime.now(UTC), since=sent["from"], until=sent["to"], period=period)
    selection = Selection(*(sent[name] for name in ("ids", "campaign", "channel", "domain")))
    filters = {name: sent[name] for name in (*BY_NAME, *OF_CONVERSIONS) if sent[name]}
    if {*OF_CONVERSIONS} & {*by} and (others := [name for name in metrics if name in OF_CLICKS]):
        raise invalid(
            f"metrics cannot have {others[0]} by {' or '.join(OF_CONVERSIONS)}, which visits do not have. "
            "Send conversions and value"
        )
    order, is_named = _order(columns(by, metrics)), sent["names"] == "1"
    return Query(metrics, by, selection, span, filters, sent["bots"], order, sent["limit"], is_named)
