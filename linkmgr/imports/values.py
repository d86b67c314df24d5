"""Conversion of the columns of a source to an ImportRow."""

import ipaddress
import re
from datetime import UTC, datetime
from typing import Any

import orjson

from linkmgr.fields.times import parse_time
from linkmgr.imports import cells
from linkmgr.imports.cells import as_text
from linkmgr.imports.files.text import Record
from linkmgr.imports.rows import LINK_MEMBERS, NESTED, ImportRow, RawVisit, Unreadable
from linkmgr.imports.sources import ANY_SEPARATOR, Columns, Source, normalize

_EPOCH = re.compile(r"(\d{9,10}|\d{13}|\d{16})(?:\.\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_COUNT = re.compile(r"(\d{1,3}(?:[,'\u00a0 ]\d{3})+|\d{1,18})(?:\.0*)?", re.ASCII)
_SHORT_URL = re.compile(
    r"https?://([^/\s]++)/++(.*)|((?:[^/\s.]+\.)+(?!\d)[^/\s.:]{2,}(?::\d+)?)/++(.*)", re.IGNORECASE
)
_NEVER = ("", "null", "none", "never", "0000-00-00 00:00:00")
_NEUTRALIZED = re.compile(r"'+[=+\-@\t\r]")  # what our CSV has in place of a formula
_HASH = re.compile(r"\$(?:2[abxy]?|argon2\w*|[1567HPy]|pbkdf2[\w-]*|s?crypt|bcrypt[\w-]*)\$.{10,}", re.DOTALL)
_TRUE = ("true", "t", "1", "yes")
_ERROR = "error"  # the column that our CSV of failed rows adds to those of the source
_MAX_VISIT = 2048  # characters of a text of a visit
_UTC = "%Y-%m-%d %H:%M:%S"


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


def tags_of(text: str, separators: str, *, may_be_json: bool) -> list[str]:
    """Return the names in a JSON array, also of objects with `name`, or in a text with one of the separators."""
    separator = next((mark for mark in separators if mark in text), separators[-1])
    array = _parse_array(text) if may_be_json and text.startswith("[") else None
    names = text.split(separator) if array is None else array
    texts = [name.get("name", "") if isinstance(name, dict) else name for name in names]
    return list(dict.fromkeys(name.strip() for name in texts if isinstance(name, str) and name.strip()))


def _parse_array(text: str) -> list[Any] | None:
    """Return an array of names, or None for other texts, such as the name "[Q1] Sales"."""
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return names if not names or any(isinstance(name, str | dict) for name in names) else None


def split_short_url(text: str) -> tuple[str, str]:
    """Return the host and the alias of a short URL. The host is empty for an alias alone."""
    if match := _SHORT_URL.fullmatch(text):
        return match[1] or match[3], (match[2] or match[4] or "").strip("/")
    return "", text.strip("/")


class Converter:
    """Converts records of one source. `columns` are the normalized columns of each member, the best first."""

    def __init__(self, source: Source | None, columns: Columns, target_column: str, *, is_csv: bool = False) -> None:
        self._columns, self._target_column, self._is_csv = columns, target_column, is_csv
        self._nested = {name for member in NESTED for name in columns.get(member, ())}
        self._plain = {name for member in columns if member not in (*NESTED, "tags") for name in columns[member]}
        self._secret = set(columns.get("password", ()))
        self._separators = source.tag_separators if source else ANY_SEPARATOR
        self._is_own = source is not None and source.name == "linkmgr"

    def row(self, number: int, record: Record) -> ImportRow:
        row = ImportRow(number)
        try:
            values = cells.expand(record.values, self._nested)
            # The numbers 0 and 1 of JSON say whether there is a password. As texts, they are one.
            marks = {name: bool(value) for name, value in values.items() if value in (0, 1)}
            values |= {name: mark for name, mark in marks.items() if normalize(name) in self._secret}
            texts = cells.columns(values, self._plain)
            row = row._replace(raw=cells.report(texts, self._secret))
            if record.problem:
                words = " ".join((*texts, *row.raw.values()))
                if cells.is_secret(words) or self._secret.intersection(map(normalize, texts)):
                    row = ImportRow(number)  # cells may be in other columns than theirs
                raise Unreadable(record.problem)
            if any("\0" in text or "\\u0000" in text for text in row.raw.values()):
                raise Unreadable("contains a NUL character. Remove it.")
            return self._convert(row, {normalize(name): texts[name] for name in reversed(texts)})
        except Unreadable as problem:
            raw = {name: text.replace("\0", "\ufffd") for name, text in row.raw.items()}
            return row._replace(problem=f"Row {number} {problem}", raw=raw)

    def _convert(self, row: ImportRow, values: dict[str, str]) -> ImportRow:
        members = {member: self._value(member, values) for member in self._columns}
        record: dict[str, Any] = {member: text for member in LINK_MEMBERS if (text := members.get(member))}
        if members.get("banned", "").lower() in _TRUE:
            raise Unreadable("is banned at the source. Leave the row out, or empty its column 'banned'.")
        if not record.get("url"):
            raise Unreadable(f"has no target. Fill in '{self._target_column}', or leave the row out.")
        may_be_json = not (self._is_own and self._is_csv) or _ERROR in values
        tags = tags_of(members.get("tags", ""), self._separators, may_be_json=may_be_json)
        if sum(map(len, (*record.values(), *tags))) > cells.MAX_TEXT:
            raise Unreadable(f"has more than {cells.MAX_TEXT} characters for a link. Shorten them.")
        self._split_alias(record)
        if self._is_own and values.get("custom") == "" and "custom" in record:
            record["alias"] = record.pop("custom")  # generated, as our own exports say
        self._check_password(record, members.get("haspassword", ""))
        for member in NESTED:
            if member in record:
                record[member] = _nested(member, record[member])
        if expiry := _time(record.pop("expiry", ""), "an expiry", end_of_day=True):
            record["expiry"] = expiry
        return row._replace(
            record=record,
            tags=tags,
            created=_time(members.get("created", ""), "a creation date", end_of_day=False),
            clicks=self._clicks(members.get("clicks", ""), values),
        )

    def _value(self, member: str, values: dict[str, str]) -> str:
        """Return the first value that is not empty, or ""."""
        for name in self._columns[member]:
            text = values.get(name, "").strip()
            if self._is_csv and (self._is_own or _ERROR in values) and _NEUTRALIZED.match(text):
                text = text[1:]
            if text == cells.REMOVED:
                raise Unreadable(f"has a '{member}' that this report does not repeat. Fill it in, or leave it empty.")
            if self._is_csv and _ERROR in values and text.endswith(cells.CUT):
                raise Unreadable(f"has a '{member}' that was cut in this report. Copy it from your file.")
            is_empty = text in ("[]", "{}") and (not self._is_csv or member in NESTED)
            if text and not is_empty:
                return text
        return ""

    def _clicks(self, text: str, values: dict[str, str]) -> int | None:
        """Return the clicks that the source counted. Our own exports have those of an earlier source apart."""
        clicks, imported = _count(text), _count(values.get("importedclicks", "")) if self._is_own else None
        return clicks if imported is None else (clicks or 0) + imported

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

    def _check_password(self, record: dict[str, Any], has_password: str) -> None:
        """Refuse a link whose password is unknown, because everybody could open it."""
        password = record.pop("password", "")
        is_mark = password.lower() in ("", "true", "false")
        if not is_mark and not _HASH.fullmatch(password):
            record["password"] = password
        elif not is_mark or password.lower() == "true" or has_password.lower() in ("true", "1"):
            raise Unreadable("has a password, which the source keeps secret. Fill in 'password', or leave the row out.")


def _nested(member: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Unreadable(f"has a '{member}' that is not valid JSON. Correct it, or leave it empty.") from None


def _time(text: str, what: str, *, end_of_day: bool) -> str | None:
    try:
        return utc(text, end_of_day=end_of_day)
    except ValueError:
        raise Unreadable(f"has {what} in an unknown format: '{text[:50]}'. Write it as 2030-12-31 23:59:59.") from None


def _count(text: str) -> int | None:
    text = text.strip()
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
    moment = _time(as_text(time), "a time", end_of_day=False)
    if moment is None:
        raise Unreadable("has no time.")
    texts = [as_text(value)[:_MAX_VISIT].replace("\0", "").strip() for value in (referrer, agent, country)]
    code = texts[2].upper()
    return RawVisit(
        moment,
        "" if texts[0] == "direct" else texts[0],
        texts[1],
        code if re.fullmatch("[A-Z]{2}", code) and code not in ("XX", "ZZ") else "",
        _address(address),
    )


def visit_row(number: int, record: Record) -> ImportRow:
    """Return a row of YOURLS' table of visits."""
    values = record.values
    members = ("click_time", "referrer", "user_agent", "country_code", "ip_address")
    try:
        raw = visit(*(values.get(name) for name in members))
    except Unreadable as problem:
        return ImportRow(number, raw=cells.report(cells.columns(values)), problem=f"Row {number} {problem}")
    return ImportRow(number, {"custom": as_text(values["shorturl"])[:_MAX_VISIT]}, visits=[raw], kind="visits")
