"""Conversion of the columns of a source to an ImportRow."""

import ipaddress
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from linkmgr.fields.times import parse_time
from linkmgr.imports.rows import LINK_MEMBERS, ImportRow, RawVisit
from linkmgr.imports.sources import ANY_SEPARATOR, MAX_NAME, Source, normalize
from linkmgr.imports.streams import Record

_EPOCH = re.compile(r"(\d{9,10}|\d{13}|\d{16})(?:\.\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_COUNT = re.compile(r"(\d{1,3}(?:[,'\u00a0 ]\d{3})+|\d{1,18})(?:\.0*)?", re.ASCII)
_SHORT_URL = re.compile(
    r"https?://([^/\s]++)/++(.*)|((?:[^/\s.]+\.)+(?!\d)[^/\s.:]{2,}(?::\d+)?)/++(.*)", re.IGNORECASE
)
_NEVER = ("", "null", "none", "never", "0000-00-00 00:00:00")
_NESTED = ("geotarget", "devicetarget", "languagetarget", "parameters", "deeplink")  # which are JSON in a CSV
_NEUTRALIZED = re.compile(r"'[=+\-@\t\r]")  # what our CSV has in place of a formula
_ERROR = "error"  # the column that our CSV of failed rows adds to those of the source
_MAX_CELL = 10_000  # characters of a column that are kept for the report of failed rows
_UTC = "%Y-%m-%d %H:%M:%S"


class Unreadable(ValueError):
    """The end of a sentence that begins with "Row 7"."""


def utc(text: str, *, end_of_day: bool = False) -> str | None:
    """Return a time as UTC text, or None for none. Raise ValueError if it has no known form."""
    text = text.strip()
    if text.lower() in _NEVER:
        return None
    if epoch := _EPOCH.fullmatch(text):
        seconds = int(epoch[1]) / 1000 ** ((len(epoch[1]) - 8) // 3)
        return datetime.fromtimestamp(seconds, UTC).strftime(_UTC)
    if _DATE.fullmatch(text) and not end_of_day:
        text += " 00:00:00"
    try:
        time = parse_time(text)
    except OverflowError:
        raise ValueError from None
    return f"{time.year:04}{time.strftime(_UTC[2:])}"


def as_text(value: Any) -> str:
    """Return a value as a cell of a CSV."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return orjson.dumps(value).decode() if isinstance(value, bool | dict | list) else str(value)


def flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by normalized name, and those of objects inside too."""
    values: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and len(name) <= MAX_NAME:  # each member repeats the name
            values |= {normalize(name) + normalize(inner): inside for inner, inside in value.items()}
        values.setdefault(normalize(name), value)
    return values


def tags_of(value: Any, separators: str) -> list[str]:
    """Return the names in an array, also of objects with `name`, or in a text with one of the separators."""
    if isinstance(value, str):
        separator = next((mark for mark in separators if mark in value), separators[-1])
        names: list[Any] = _parse_nested(value) if value.startswith("[") else value.split(separator)
    else:
        names = value if isinstance(value, list) else []
    texts = [name.get("name", "") if isinstance(name, dict) else name for name in names]
    return list(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip()))


def _parse_nested(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return []


def split_short_url(text: str) -> tuple[str, str]:
    """Return the host and the alias of a short URL. The host is empty for an alias alone."""
    if match := _SHORT_URL.fullmatch(text):
        return match[1] or match[3], (match[2] or match[4] or "").strip("/")
    return "", text.strip("/")


class Converter:
    """Converts records of one source. `columns` are the normalized columns of each member, the best first."""

    def __init__(self, source: Source | None, columns: Mapping[str, tuple[str, ...]], target_column: str) -> None:
        self._columns, self._target_column = columns, target_column
        self._separators = source.tag_separators if source else ANY_SEPARATOR
        self._is_own = source is not None and source.name == "linkmgr"

    def row(self, number: int, record: Record, position: Any) -> ImportRow:
        row = ImportRow(number, {}, [], None, None, [], _raw(record.values), None, position)
        try:
            if record.problem:
                raise Unreadable(record.problem)
            if any("\0" in text or "\\u0000" in text for text in row.raw.values()):
                raise Unreadable("contains a NUL character. Remove it.")
            return self._convert(row, flatten(record.values))
        except Unreadable as problem:
            raw = {name: text.replace("\0", "\ufffd") for name, text in row.raw.items()}
            return row._replace(problem=f"Row {number} {problem}", raw=raw)

    def _convert(self, row: ImportRow, values: dict[str, Any]) -> ImportRow:
        members = {member: self._value(member, values) for member in self._columns}
        record = {member: value for member in LINK_MEMBERS if (value := members.get(member)) not in (None, "")}
        if not record.get("url"):
            raise Unreadable(f"has no target. Fill in '{self._target_column}', or leave the row out.")
        self._split_alias(record)
        self._check_password(record, members.get("haspassword"))
        for member in _NESTED:
            if isinstance(record.get(member), str):
                record[member] = _nested(member, record[member])
            if record.get(member) in ([], {}):
                del record[member]
        if expiry := _time(record.pop("expiry", None), "an expiry", end_of_day=True):
            record["expiry"] = expiry
        return row._replace(
            record=record,
            tags=tags_of(members.get("tags"), self._separators),
            created=_time(members.get("created"), "a creation date", end_of_day=False),
            clicks=_count(members.get("clicks")),
        )

    def _value(self, member: str, values: dict[str, Any]) -> Any:
        """Return the first value that is not empty, or None. An array stands for its first text, except of tags."""
        for name in self._columns[member]:
            value = values.get(name)
            if isinstance(value, str):
                value = value.strip()
                if (self._is_own or _ERROR in values) and _NEUTRALIZED.match(value):
                    value = value[1:]
            if member not in (*_NESTED, "tags", "password", "haspassword"):
                if isinstance(value, list):
                    value = next((text for text in value if isinstance(text, str)), None)
                value = None if isinstance(value, dict) else as_text(value).strip()
            if value not in (None, "", [], {}):
                return value
        return None

    def _split_alias(self, record: dict[str, Any]) -> None:
        if host := split_short_url(record.get("domain", ""))[0]:
            record["domain"] = host
        if "custom" not in record:
            return
        host, record["custom"] = split_short_url(record["custom"])
        if host:
            record.setdefault("domain", host)
        if not record["custom"]:
            del record["custom"]

    def _check_password(self, record: dict[str, Any], has_password: Any) -> None:
        """Refuse a link whose password is unknown, because everybody could open it."""
        password = record.pop("password", None)
        marks = [as_text(value).lower() for value in (password, has_password)]
        if isinstance(password, str) and marks[0] not in ("true", "false"):
            record["password"] = password
        elif "true" in marks or "1" in marks:
            raise Unreadable("has a password, which the source keeps secret. Fill in 'password', or leave the row out.")


def _raw(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(value)[:_MAX_CELL] for name, value in values.items()}


def _nested(member: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Unreadable(f"has a '{member}' that is not valid JSON. Correct it, or leave it empty.") from None


def _time(value: Any, what: str, *, end_of_day: bool) -> str | None:
    text = as_text(value)
    try:
        return utc(text, end_of_day=end_of_day)
    except ValueError:
        raise Unreadable(f"has {what} in an unknown form: '{text[:50]}'. Write it as 2030-12-31 23:59:59.") from None


def _count(value: Any) -> int | None:
    text = as_text(value).strip()
    if text.lower() in _NEVER:
        return None
    if not (count := _COUNT.fullmatch(text)):
        raise Unreadable(f"has clicks that are not a number: '{text[:50]}'. Write it as 1234, or leave it empty.")
    return int(re.sub(r"\D", "", count[1]))


def _address(value: Any) -> str:
    """Return the IP address in the form of live visits, or "" if it does not identify a visitor."""
    try:
        ip = ipaddress.ip_address(as_text(value).strip())
    except ValueError:
        return ""
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return "" if ip.is_loopback or ip.is_unspecified else str(ip)


def visit(time: Any, referrer: Any, agent: Any, country: Any, address: Any = "") -> RawVisit:
    """Return a raw visit. Raise Unreadable if its time is unknown."""
    moment = _time(time, "a time", end_of_day=False)
    if moment is None:
        raise Unreadable("has no time.")
    texts = [as_text(value).replace("\0", "").strip() for value in (referrer, agent, country)]
    code = texts[2].upper()
    return RawVisit(
        moment,
        "" if texts[0] == "direct" else texts[0],
        texts[1],
        code if re.fullmatch("[A-Z]{2}", code) and code not in ("XX", "ZZ") else "",
        _address(address),
    )


def visit_row(number: int, record: Record, position: Any) -> ImportRow:
    """Return a row of YOURLS' table of visits."""
    row = ImportRow(number, {}, [], None, None, [], _raw(record.values), None, position)
    values = record.values
    members = ("click_time", "referrer", "user_agent", "country_code", "ip_address")
    try:
        if record.problem:
            raise Unreadable(record.problem)
        raw = visit(*(values.get(name) for name in members))
    except Unreadable as problem:
        return row._replace(problem=f"Row {number} {problem}")
    return row._replace(record={"custom": as_text(values["shorturl"])}, visits=[raw])
