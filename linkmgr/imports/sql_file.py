"""Rows of the INSERT statements of an SQL dump, as mysqldump, phpMyAdmin and Adminer write it."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from linkmgr.imports.rows import ReadError
from linkmgr.imports.streams import CHUNK, MAX_COLUMNS, MAX_RECORD, Record, decode

_STRING = rb"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'"
_NAME = rb"(?:`[^`]*`\.|\"[^\"]*\"\.|\w+\.)?(?:`([^`]*)`|\"([^\"]*)\"|(\w+))"
_FLAGS = re.DOTALL | re.IGNORECASE
# Repetitions of spaces are possessive (*+): with backtracking, two beside each other take quadratic time.
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)\s+(?:(?:IGNORE|DELAYED|LOW_PRIORITY|HIGH_PRIORITY)\s+)*INTO\s+" + _NAME
    + rb"\s*+(?:\(([^()']*)\))?+\s*+VALUES\s*+(?=\()", _FLAGS)  # fmt: skip
_CREATE = re.compile(rb"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?" + _NAME + rb"\s*+\(", _FLAGS)
_COLUMN = re.compile(rb"^[^\S\n]*+(?:`([^`]+)`|\"([^\"]+)\"|(\w++))\s++\w", re.MULTILINE)
_VALUE = re.compile(
    rb"\s*(?:(?:_\w+\s*)?(?:(" + _STRING + rb")|0x([0-9a-f]+)|x'([0-9a-f]*)')|([-+.\w]+))\s*([,)])",
    _FLAGS,
)
_OPEN_STRING = re.compile(rb"\s*(?:_\w+\s*|x)?'", _FLAGS)
_WHOLE_STRING = re.compile(rb"\s*(?:_\w+\s*|x)?" + _STRING + rb"\s*[^'\s,)]", _FLAGS)
_SPACE = re.compile(rb"(?:\s+|--[^\n]*\n|#[^\n]*\n|/\*.*?\*/;?)*", re.DOTALL)
_COMMENT = re.compile(rb"--|#|/\*")
_OPENER = re.compile(rb"[;'\"`#]|--\s|/\*")
_ROW_OPENER = re.compile(rb"[;()'\"`]")
_ENDS = {
    opener: re.compile(end, re.DOTALL)
    for opener, end in (
        (b"'", rb"\\.|'"),
        (b'"', rb"\\.|\""),
        (b"`", rb"`"),
        (b"#", rb"\n"),
        (b"-", rb"\n"),
        (b"/", rb"\*/"),
    )
}
_ESCAPE = re.compile(rb"''|\\(.)", re.DOTALL)
_ESCAPES = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a", b"%": b"\\%", b"_": b"\\_"}
_MAX_SHOWN = 500  # characters of a malformed row
_LOOK_AHEAD = 64  # bytes after which a value that is no string is malformed

# Columns of YOURLS, for a dump without CREATE TABLE.
# https://github.com/YOURLS/YOURLS/blob/master/includes/functions-install.php
LINKS = ("keyword", "url", "title", "timestamp", "ip", "clicks")
LOG = ("click_id", "click_time", "shorturl", "referrer", "user_agent", "ip_address", "country_code")


class Table(NamedTuple):
    name: str
    columns: list[str]

    @property
    def has_links(self) -> bool:
        return self._has("keyword", "url")

    @property
    def has_visits(self) -> bool:
        return self._has("shorturl", "click_time")

    def _has(self, *names: str) -> bool:
        return len(self.columns) <= MAX_COLUMNS and all(name in self.columns for name in names)


class _Dump:
    def __init__(self, texts: Iterator[bytes], offset: int) -> None:
        self._texts, self._start, self.buffer, self.position = texts, offset, b"", 0

    @property
    def offset(self) -> int:
        return self._start + self.position

    def grow(self) -> bool:
        """Read more. Return False at the end of the file."""
        text = next(self._texts, b"")
        if self.position > CHUNK:
            self._start += self.position
            self.buffer, self.position = self.buffer[self.position :], 0
        self.buffer += text
        return bool(text)

    def match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        return pattern.match(self.buffer, self.position)

    def skip_space(self) -> bytes:
        """Move behind spaces and comments. Return the next byte, or nothing at the end of the file."""
        while True:
            if space := self.match(_SPACE):
                self.position = space.end()
            if self.position < len(self.buffer) and not self.match(_COMMENT):
                return self.buffer[self.position : self.position + 1]
            if len(self.buffer) - self.position > MAX_RECORD or not self.grow():
                return self.buffer[self.position : self.position + 1]

    def head(self) -> None:
        """Read enough for the part of an INSERT before its rows."""
        while len(self.buffer) - self.position < CHUNK and self.grow():
            pass

    def _find(self, pattern: re.Pattern[bytes]) -> bytes:
        """Move behind the next match, and return it, or nothing at the end of the file."""
        while not (match := pattern.search(self.buffer, self.position)):
            self.position = max(self.position, len(self.buffer) - 2)  # a match may begin at the end of the buffer
            if not self.grow():
                self.position = len(self.buffer)
                return b""
        self.position = match.end()
        return match[0]

    def _skip_rest(self, opener: bytes) -> None:
        """Move behind the end of a string or a comment."""
        while self._find(_ENDS[opener[:1]]).startswith(b"\\"):
            pass

    def skip_statement(self) -> bool:
        """Move behind the end of a statement. Return False if the file ends before."""
        while opener := self._find(_OPENER):
            if opener == b";":
                return True
            self._skip_rest(opener)
        return False

    def skip_row(self) -> bytes:
        """Move behind a malformed row. Return its last byte, or nothing if the file ends before."""
        start, depth = self.offset, 0
        while opener := self._find(_ROW_OPENER):
            if self.offset - start > MAX_RECORD:
                raise _too_long()
            depth += {b"(": 1, b")": -1}.get(opener, 0)
            if opener == b";" or (opener == b")" and depth <= 0):
                return opener
            if opener in b"'\"`":
                self._skip_rest(opener)
        return b""

    def row(self) -> list[str | None] | None:
        """Return the values of the row at the position, or None if it is malformed or incomplete."""
        values: list[str | None] = []
        position = self.position + 1
        while True:
            if position - self.position > MAX_RECORD:
                raise _too_long()
            if value := _VALUE.match(self.buffer, position):
                values.append(_decode(value))
                position = value.end()
                if value[5] == b")":
                    self.position = position
                    return values
                continue
            pending = len(self.buffer) - position
            is_string = _OPEN_STRING.match(self.buffer, position) and not _WHOLE_STRING.match(self.buffer, position)
            if is_string and pending > MAX_RECORD:
                raise _too_long()
            if not is_string and pending > _LOOK_AHEAD:
                return None
            start = self.position
            if not self.grow():
                return None
            position -= start - self.position


def _too_long() -> ReadError:
    return ReadError("A row is longer than 1 MiB, or has a string that is never closed. Correct the file.")


def _decode(value: re.Match[bytes]) -> str | None:
    string, *digits, word, _ = value.groups()
    if string is not None:
        text = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]) if escape[1] else b"'", string[1:-1])
        return decode(text)
    if word is not None:
        return None if word.upper() == b"NULL" else decode(word)
    text = digits[0] or digits[1] or b""
    return decode(bytes.fromhex(text.decode().zfill(len(text) + len(text) % 2)))


def _first(groups: tuple[bytes | None, ...]) -> str:
    return decode(next((group for group in groups if group is not None), b""))


def _names(text: bytes) -> list[str]:
    return [decode(name.strip(b'`" \t\r\n')) for name in text.split(b",")]


def _default_columns(name: str) -> list[str]:
    return list(LINKS if name.endswith("url") else LOG if name.endswith("log") else ())


def sql_records(texts: Iterator[bytes], offset: int, table: Table | None) -> Iterator[tuple[Table, Record]]:
    """Yield the rows of all tables of YOURLS. With a table, the offset is behind one of its rows."""
    dump = _Dump(texts, offset)
    tables: dict[str, list[str]] = {}
    if table:
        tables[table.name] = table.columns
        yield from _rows(dump, table)
    while dump.skip_space():
        dump.head()
        if create := dump.match(_CREATE):
            tables[_first(create.groups())] = _created(dump, create.end())
        elif insert := dump.match(_INSERT):
            *names, columns = insert.groups()
            name = _first(tuple(names))
            table = Table(name, _names(columns) if columns else tables.get(name) or _default_columns(name))
            if table.has_links or table.has_visits:
                dump.position = insert.end()
                yield from _rows(dump, table)
                continue
        if not dump.skip_statement():
            return


def _created(dump: _Dump, position: int) -> list[str]:
    """Return the columns of CREATE TABLE, each of which begins a line."""
    keys = {"PRIMARY", "KEY", "UNIQUE", "INDEX", "FULLTEXT", "CONSTRAINT", "FOREIGN"}
    end = dump.buffer.find(b";", position)
    names = [_first(column.groups()) for column in _COLUMN.finditer(dump.buffer[position : max(end, position)])]
    return [name for name in names if name.upper() not in keys]


def _rows(dump: _Dump, table: Table) -> Iterator[tuple[Table, Record]]:
    while (following := dump.skip_space()) in (b",", b"("):
        if following == b",":
            dump.position += 1
            continue
        shown = decode(dump.buffer[dump.position : dump.position + _MAX_SHOWN])
        values = dump.row()
        if values is None:
            end = dump.skip_row()
            problem = "is not a row of values." if end else "is incomplete, because the file ends inside it."
            yield table, Record({"row": shown}, problem, dump.offset)
            if end == b";":
                return
        elif len(values) != len(table.columns):
            problem = f"has {len(values)} values instead of {len(table.columns)}."
            yield table, Record({"row": shown}, problem, dump.offset)
        else:
            yield table, Record(dict[str, Any](zip(table.columns, values, strict=True)), None, dump.offset)
    dump.skip_statement()
