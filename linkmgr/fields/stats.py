"""Queries of statistics. An unknown parameter or value is an error that lists the known ones."""

import csv
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from flask import request

from linkmgr.errors import AppError
from linkmgr.fields.base import MAX_ID
from linkmgr.fields.countries import LOWER_NAMES, NAMES
from linkmgr.fields.languages import LANGUAGES
from linkmgr.fields.periods import PERIODS, UNITS, Range, parse_range, parse_zone
from linkmgr.fields.problems import invalid
from linkmgr.fields.query import query_choice, query_text
from linkmgr.fields.strict_json import is_storable
from linkmgr.settings import settings

METRICS = ("clicks", "visitors")
DIMENSIONS = ("country", "city", "referrer", "browser", "os", "device", "language")
DEVICES = ("phone", "tablet", "desktop", "unknown")
TIMES = tuple(f"time:{unit}" for unit in UNITS)
BY = (*TIMES, *DIMENSIONS, "target")
BOTS = {"exclude": [False], "include": [False, True], "only": [True]}  # the values of the column `bot`
MAX_BY = 2
MAX_IDS = 100
MAX_FILTER_VALUES = 50
MAX_ROWS = 10_000
DEFAULT_LIMIT = 1000
EVERYONE = "all"  # the value of `user` for all users
_SELECTION = ("ids", "campaign", "channel", "domain")
_PARAMETERS = ("metrics", "by", *_SELECTION, "from", "to", "period", "timezone", *DIMENSIONS, "bots", "order", "limit",
               "user")  # fmt: skip
_MAX_TEXT = 2000
_CODE_LENGTH = 2  # of a country or a language
_COUNTRIES = LOWER_NAMES | {"unknown", "other"}  # labels, besides those of a database of the installation
_LANGUAGES = {*LANGUAGES.values(), "unknown", "other"}
_QUOTED = re.compile('(^|,) *- *"')  # an excluded value in double quotes


@dataclass(frozen=True)
class Filter:
    """Labels in lower case. `included` is None if all labels are included that are not excluded."""

    included: list[str] | None
    excluded: list[str] | None
    text: str


@dataclass(frozen=True)
class Selection:
    """Restricts statistics to links and QR codes that have all of these properties."""

    ids: list[int] | None
    campaign: int | None
    channel: int | None
    domain: str | None

    @property
    def count(self) -> int:
        return sum(value is not None for value in (self.ids, self.campaign, self.channel, self.domain))


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

    @property
    def since(self) -> datetime:
        """The start of the range, once it is known."""
        assert self.range.since
        return self.range.since

    @property
    def unit(self) -> str | None:
        return next((name.removeprefix("time:") for name in self.by if name in TIMES), None)

    @property
    def dimensions(self) -> list[str]:
        """The names in `by` besides the time."""
        return [name for name in self.by if name not in TIMES]

    @property
    def columns(self) -> list[str]:
        return columns(self.by, self.metrics)


def columns(by: list[str], metrics: list[str]) -> list[str]:
    return ["time" if name in TIMES else name for name in by] + metrics


def allow_only(*names: str) -> None:
    """Raise an error if the query has another parameter."""
    for name in request.args:
        if name not in names:
            unknown = name[:50] if is_storable(name) else "a parameter"
            raise invalid(
                f"{unknown} is not a parameter of this operation; these are: {', '.join(names)}", field=unknown
            )


def bots() -> str:
    return query_choice("bots", tuple(BOTS)) or "exclude"


def user(*, is_admin: bool) -> int | str | None:
    """Return the id in `user`, or EVERYONE, or None if it was not sent."""
    text = query_text("user")
    if text is None:
        return None
    if not is_admin:
        raise AppError("administrators_only")
    return EVERYONE if text == EVERYONE else _id("user", text, f"an id such as 17, or {EVERYONE}")


def _names(name: str, choices: tuple[str, ...], default: str) -> list[str]:
    """Return the distinct names in a list that is separated by commas."""
    names = list(dict.fromkeys((query_text(name) or default).split(",")))
    if not set(names) <= set(choices):
        raise invalid(f"{name} must be from the list {', '.join(choices)}, separated by commas", "unknown_value")
    return names


def _by() -> list[str]:
    by = _names("by", BY, "time:day")
    if len(by) > MAX_BY or len(set(by) & set(TIMES)) > 1:
        raise invalid(f"by must have at most {MAX_BY} names, and at most one of them with time:", "too_long")
    return by


def _id(name: str, text: str, form: str = "an id such as 17") -> int:
    """Return an id. An id that no row can have becomes 0, so that it is not found."""
    if not re.fullmatch("[0-9]+", text, re.ASCII):
        raise invalid(f"{name} must be {form}")
    return int(text) if len(text) <= len(str(MAX_ID)) and int(text) <= MAX_ID else 0


def _optional_id(name: str) -> int | None:
    text = query_text(name)
    return None if text is None else _id(name, text)


def _ids() -> list[int] | None:
    text = query_text("ids", _MAX_TEXT)
    if text is None:
        return None
    ids = list(dict.fromkeys(_id("ids", part, "ids separated by commas, such as 17,18") for part in text.split(",")))
    if len(ids) > MAX_IDS:
        raise invalid(f"ids must have at most {MAX_IDS} ids", "too_long")
    return ids


def _domain() -> str | None:
    """Return the host in `domain`, which may have a scheme and a port as in the lists."""
    text = query_text("domain")
    return None if text is None else re.sub("^https?://|(:[0-9]+)?/?$", "", text.lower(), flags=re.ASCII)


def selection() -> Selection:
    return Selection(_ids(), _optional_id("campaign"), _optional_id("channel"), _domain())


# --- filters


def _values(name: str, text: str) -> list[str]:
    """Split a list at its commas. A label with a comma is in double quotes, as in CSV. `-` may stand before them."""
    try:
        [values] = csv.reader([_QUOTED.sub(r'\1"-', text)], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        values = [""]
    values = [value.strip() for value in values]
    is_complete = values and all(value.removeprefix("-").strip() for value in values)
    if not is_complete or len(values) > MAX_FILTER_VALUES:
        raise invalid(
            f"{name} must be 1 to {MAX_FILTER_VALUES} values separated by commas, none of them empty; begin a value "
            'with - to exclude it, and enclose a value that contains a comma in double quotes, such as "-Direct, email'
            ' and other"'
        )
    return values


def _labels(name: str, values: list[str]) -> list[str]:
    """Return the labels of the values in lower case. A country or a language may be given by its code."""
    if name == "device" and not {value.lower() for value in values} <= set(DEVICES):
        raise invalid(f"device must be from the list {', '.join(DEVICES)}", "unknown_value")
    labels_of = _CODES.get(name)
    return [label.lower() for value in values for label in (labels_of(value) if labels_of else [value])]


def _unknown_label(value: str, expected: str) -> AppError:
    kind = "code" if len(value) == _CODE_LENGTH else "name"
    return invalid(f"{expected}; {value} is not a {kind}", "unknown_value")


def _countries(value: str) -> list[str]:
    if len(value) == _CODE_LENGTH:
        names = NAMES.get("GB" if value.upper() == "UK" else value.upper(), [])
    else:  # the database of this setting may have further names
        names = [value] if value.lower() in _COUNTRIES or settings().geoip_database else []
    if not names:
        raise _unknown_label(value, "country must be names such as Germany, or ISO 3166 codes such as DE")
    return names


def _languages(value: str) -> list[str]:
    name = LANGUAGES.get(value.lower(), "") if len(value) == _CODE_LENGTH else value
    if name.lower() not in _LANGUAGES:
        raise _unknown_label(value, "language must be names such as German, or codes such as de")
    return [name]


_CODES = {"country": _countries, "language": _languages}


def _filter(name: str) -> Filter | None:
    text = query_text(name, _MAX_TEXT)
    if text is None:
        return None
    values = _values(name, text)
    included = [value for value in values if not value.startswith("-")]
    excluded = [value[1:].strip() for value in values if value.startswith("-")]
    return Filter(_labels(name, included) or None, _labels(name, excluded) or None, text)


# --- the list of visits


def after() -> tuple[str, int] | None:
    """Return the position in `after`: a time, and the number of visits at this time that were returned."""
    text = query_text("after")
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{8}T[0-9]{6}\.[0-9]{6})-([0-9]{1,9})", text, re.ASCII)
    try:
        datetime.strptime(match[1] if match else "", "%Y%m%dT%H%M%S.%f")
    except ValueError:
        raise invalid("after must be the 'next' of the previous page") from None
    assert match
    return match[1], int(match[2])


# --- the whole query


def _order(query_columns: list[str]) -> str:
    choices = tuple(sign + name for name in query_columns for sign in ("", "-"))
    first_metric = next(name for name in query_columns if name in METRICS)
    return query_choice("order", choices) or ("time" if "time" in query_columns else f"-{first_metric}")


def _limit() -> int:
    text = query_text("limit") or str(DEFAULT_LIMIT)
    if not re.fullmatch("[1-9][0-9]{0,9}", text, re.ASCII) or int(text) > MAX_ROWS:
        raise invalid(f"limit must be an integer from 1 to {MAX_ROWS}", "out_of_range")
    return int(text)


def parse() -> Query:
    allow_only(*_PARAMETERS)
    metrics, by = _names("metrics", METRICS, "clicks"), _by()
    zone = parse_zone(query_text("timezone") or "UTC")
    period = query_choice("period", PERIODS)
    span = parse_range(zone, datetime.now(UTC), since=query_text("from"), until=query_text("to"), period=period)
    filters = {name: label_filter for name in DIMENSIONS if (label_filter := _filter(name))}
    return Query(metrics, by, selection(), span, filters, bots(), _order(columns(by, metrics)), _limit())
