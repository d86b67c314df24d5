"""The types of the conditions of rules: the values that they take, and how they compare them with a
visitor.

All of them have the same methods: `holds`; `actual`, for a sentence about the visitor; and for
forms `as_text` and `from_text`.
"""

import csv
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from marshmallow import ValidationError, fields

from linkmgr.core.database.statements import MAX_BIGINT, Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.base import Text, parse_network
from linkmgr.core.fields.links import MAX_NAME
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.urls import ascii_host
from linkmgr.core.fields.zones import parse_zone
from linkmgr.visits import counting
from linkmgr.visits.visitor import Visitor

MAX_VALUES = 50  # of a condition
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HINT = re.compile(r"\. Did you mean (.*)\?")


def known(problem: Callable[[str], str | None]) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if reason := problem(value.lower()):
            sentence = _HINT.sub(r" (did you mean \1?)", reason).removesuffix(".")
            raise ValidationError(f"has the value '{value}', which {sentence}")
        return value

    return parse


def network(value: str) -> str:
    with suppress(ValueError):
        return parse_network(value)
    raise ValidationError("must be IP addresses or networks such as 192.0.2.7 or 2001:db8::/32")


def host(value: str) -> str:
    with suppress(ValueError, ValidationError):
        name = ascii_host(urlsplit(value if "//" in value else f"//{value}").hostname or "")
        if counting.host_of(f"//{name}"):
            return name
    raise ValidationError(f"has the value '{value}', which is not a host such as news.example.com")


def weekday(value: str) -> str:
    if value.lower() not in WEEKDAYS:
        raise ValidationError(f"must be from the list {', '.join(WEEKDAYS)}; {value} is not")
    return value.lower()


class AnyOf(fields.Field[list[str]]):
    """Values of which one must be a name of the visitor, as `key` writes both. `try` states the
    first of the `names`."""

    json: ClassVar[JsonSchema] = {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
        "minItems": 1,
        "maxItems": MAX_VALUES,
    }

    def __init__(
        self,
        names: Callable[[Visitor, ZoneInfo], Iterable[str]],
        parse: Callable[[str], str] = str,
        key: Callable[[str], str] = str.lower,
    ) -> None:
        super().__init__()
        self.names, self.parse, self.key = names, parse, key

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if not (isinstance(value, list) and 1 <= len(value) <= MAX_VALUES and all(map(_is_value, value))):
            raise ValidationError(
                f"must be an array of 1 to {MAX_VALUES} texts of 1 to {MAX_NAME} characters on one line"
            )
        return list(dict.fromkeys(self.parse(item.strip()) for item in value))

    def holds(self, values: list[str], visitor: Visitor, zone: ZoneInfo) -> bool:
        names = visitor.names.get((self, zone))
        if names is None:
            names = visitor.names[self, zone] = {*map(self.key, self.names(visitor, zone))}
        return any(self.key(value) in names for value in values)

    def actual(self, visitor: Visitor, zone: ZoneInfo) -> str:
        return next(iter(self.names(visitor, zone)), "unknown")

    def as_text(self, values: list[str]) -> str:
        quoted = (value.replace('"', '""') for value in values)
        return ", ".join(f'"{value}"' if re.search('[",]', value) else value for value in quoted)

    def from_text(self, text: str) -> list[str]:
        return [
            value
            for value in next(csv.reader([text.replace("\n", " ")], skipinitialspace=True))
            if value.strip()
        ]


def _is_value(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 1 <= len(value.strip()) <= MAX_NAME


class Networks(AnyOf):
    def holds(self, values: list[str], visitor: Visitor, zone: ZoneInfo) -> bool:
        try:
            address = ip_address(visitor.address)
        except ValueError:  # a proxy has sent another text
            return False
        return any(address in ip_network(value) for value in values)


class Between(fields.Field[Row]):
    """Two ends, of which one may be absent. `value` returns what of the visitor is between them,
    and `parse` an end as it is stored, or raises ValueError."""

    is_circle = False

    def __init__(
        self,
        value: Callable[[Visitor, ZoneInfo], Any],
        parse: Callable[[Any, bool], Any],
        about: str,
        end: JsonSchema,
        last: str = "until",
    ) -> None:
        """`last` is the name of the second end. `about` completes the sentence "The ends are"."""
        super().__init__()
        self.value, self.parse, self.about, self.last = value, parse, about, last
        self.json = {"type": "object", "properties": {"from": end, last: end}, "minProperties": 1}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Row:
        ends = (
            {name: end for name, end in value.items() if end not in (None, "")}
            if isinstance(value, dict)
            else {}
        )
        try:
            if not ends or not ends.keys() <= {"from", self.last}:
                raise ValueError
            ends = {
                name: self.parse(ends[name], name != "from") for name in ("from", self.last) if name in ends
            }
        except (ValueError, TypeError):
            raise ValidationError(
                f"must be an object with from or {self.last}, which are {self.about}"
            ) from None
        if len(ends) > 1 and ends["from"] > ends[self.last] and not self.is_circle:
            raise ValidationError(f"must have a from that is not after {self.last}")
        return ends

    def holds(self, ends: Row, visitor: Visitor, zone: ZoneInfo) -> bool:
        value = self.value(visitor, zone)
        return bool(ends.get("from", value) <= value <= ends.get(self.last, value))

    def actual(self, visitor: Visitor, zone: ZoneInfo) -> str:
        return str(self.value(visitor, zone))

    def as_text(self, ends: Row) -> str:
        first, last = ends.get("from"), ends.get(self.last)
        return f"from {first}" if last is None else f"up to {last}" if first is None else f"{first} to {last}"

    def from_text(self, text: str) -> Row:
        first, _, last = f" {text.removeprefix('from ').removeprefix('up ')} ".partition(" to ")
        ends = {"from": first.strip(), self.last: last.strip()}
        return {
            name: int(end) if re.fullmatch("[0-9]{1,19}", end) else end for name, end in ends.items() if end
        }


class Hours(Between):
    """The end is excluded. A day that ends before it begins continues after midnight."""

    is_circle = True

    def holds(self, ends: Row, visitor: Visitor, zone: ZoneInfo) -> bool:
        value, first, last = (
            self.value(visitor, zone),
            ends.get("from", "00:00"),
            ends.get(self.last, "24:00"),
        )
        return bool(first <= value < last) if first < last else bool(value >= first or value < last)

    def evening(self, ends: Row, visitor: Visitor, zone: ZoneInfo) -> Visitor:
        """Return a visitor after midnight on the day before, on which these hours began."""
        first, last = ends.get("from", "00:00"), ends.get(self.last, "24:00")
        if not self.value(visitor, zone) < last <= first:
            return visitor
        return replace(visitor, time=local_time(visitor, zone) - timedelta(days=1), names={})


def hour(end: Any, _is_last: bool) -> str:
    if not re.fullmatch("(?:[01][0-9]|2[0-3]):[0-5][0-9]", end, re.ASCII):
        raise ValueError
    return str(end)


def date(end: Any, is_last: bool) -> str:
    """Return the time. A date alone is its beginning, or its end as the last one."""
    time = datetime.fromisoformat(end)
    if time.tzinfo or not re.match(r"\d{4}-\d\d-\d\d(?:$|[ T]\d\d:\d\d)", end, re.ASCII):
        raise ValueError
    if len(end) == len("2030-12-31") and is_last:
        time = time.replace(hour=23, minute=59, second=59)
    return time.isoformat(" ", "seconds")


def count(end: Any, _is_last: bool) -> int:
    if type(end) is not int or not 0 <= end <= MAX_BIGINT:
        raise ValueError
    return end


def local_time(visitor: Visitor, zone: ZoneInfo) -> datetime:
    return visitor.time.astimezone(zone)


class Zone(Text):
    def clean(self, text: str) -> str:
        try:
            return str(parse_zone(text))
        except AppError as error:
            raise ValidationError(error.message.removeprefix("timezone ").removesuffix(".")) from None
