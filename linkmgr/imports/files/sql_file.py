"""Rows of the INSERT statements of an SQL dump, as mysqldump, phpMyAdmin and Adminer write it."""

import re
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from linkmgr.imports.files.text import CHUNK, MAX_COLUMNS, MAX_RECORD, Record, decode

_STRING = rb"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'"
_NAME = rb"(?:`[^`]*`\.|\"[^\"]*\"\.|\w+\.)?(?:`([^`]*)`|\"([^\"]*)\"|(\w+))"
_FLAGS = re.DOTALL | re.IGNORECASE
# Repetitions of spaces are possessive (*+): with backtracking, two beside each other take quadratic time.
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)\s+(?:(?:IGNORE|DELAYED|LOW_PRIORITY|HIGH_PRIORITY)\s+)*INTO\s+" + _NAME
    + rb"\s*+(?:\(([^()']*)\))?+\s*+VALUES\s*+(?=\()", _FLAGS)  # fmt: skip
_CREATE = re.compile(rb"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?" + _NAME + rb"\s*+\(", _FLAGS)
_COLUMN = re.compile(rb"^[^\S\n]*+(?:`([^`]+)`|\"([^\"]+)\"|(\w++))\s++\w", re.MULTILINE)
_ROW = re.compile(rb"\((?:[^'()]++|" + _STRING + rb")*+\)", re.DOTALL)
_VALUE = re.compile(
    rb"\s*+(?:(?:_\w+\s*+)?(?:(" + _STRING + rb")|0x([0-9a-f]+)|x'([0-9a-f]*)')|([-+.\w]++))\s*+([,)])", _FLAGS
)
_GAP = re.compile(rb"(?:[\s;]++|--[^\n]*+\n|#[^\n]*+\n|/\*.*?\*/)*+", re.DOTALL)
_ROW_GAP = re.compile(rb"(?:[\s,]++|--[^\n]*+\n|#[^\n]*+\n|/\*.*?\*/)*+", re.DOTALL)
_COMMENT = re.compile(rb"--|#|/\*")
_OPENER = re.compile(rb"[;'\"`#]|--\s|/\*")
_ROW_OPENER = re.compile(rb"[;()'\"`]")
_ENDS = {
    opener: re.compile(end, re.DOTALL)
    for opener, end in (
        (b"'", rb"\\.|'"), (b'"', rb"\\.|\""), (b"`", rb"`"), (b"#", rb"\n"), (b"-", rb"\n"), (b"/", rb"\*/"),
    )
}  # fmt: skip
_ESCAPE = re.compile(rb"''|\\(.)", re.DOTALL)
_ESCAPES = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a", b"%": b"\\%", b"_": b"\\_"}
_MAX_SHOWN = 500  # characters of a malformed row
_MAX_TABLES = 100  # with links or visits; those of other tables are not kept

# Columns of YOURLS, for a dump without CREATE TABLE.
# https://github.com/YOURLS/YOURLS/blob/master/includes/functions-install.php
LINKS = ("keyword", "url", "title", "timestamp", "ip", "clicks")
LOG = ("click_id", "click_time", "shorturl", "referrer", "user_agent", "ip_address", "country_code")


class Table(NamedTuple):
    columns: list[str]

    @property
    def has_links(self) -> bool:
        return self._has("keyword", "url")

    @property
    def has_visits(self) -> bool:
        return self._has("shorturl", "click_time")

    def _has(self, *names: str) -> bool:
        return len(self.columns) <= MAX_COLUMNS and all(name in self.columns for name in names)


Rows = Iterator[tuple[Table, Record] | None]


class _Dump:
    """Text of the dump from a position on."""

    def __init__(self, texts: Iterator[bytes]) -> None:
        self._texts, self.text, self.at, self.ended = texts, b"", 0, False

    @property
    def waiting(self) -> int:
        return len(self.text) - self.at

    def grow(self) -> None:
        piece = next(self._texts, b"")
        self.ended = not piece
        self.text, self.at = self.text[self.at :] + piece, 0

    def skip(self, pattern: re.Pattern[bytes]) -> bytes:
        """Move behind a match here. Return the next byte, or nothing at the end of the text."""
        if match := pattern.match(self.text, self.at):
            self.at = match.end()
        return self.text[self.at : self.at + 1]

    def find(self, pattern: re.Pattern[bytes]) -> Generator[None, None, bytes]:
        """Move behind the next match, and return it, or nothing at the end of the file."""
        while not (match := pattern.search(self.text, self.at)):
            self.at = len(self.text) if self.ended else max(self.at, len(self.text) - 2)  # a match may begin there
            if self.ended:
                return b""
            self.grow()
            yield
        self.at = match.end()
        return match[0]

    def skip_rest(self, opener: bytes) -> Generator[None, None, None]:
        """Move behind the end of a string or a comment."""
        while (yield from self.find(_ENDS[opener[:1]])).startswith(b"\\"):
            pass

    def skip_statement(self) -> Generator[None, None, None]:
        while (opener := (yield from self.find(_OPENER))) not in (b";", b""):
            yield from self.skip_rest(opener)

    def skip_row(self) -> Generator[None, None, bytes]:
        """Move behind a malformed row. Return its last byte, or nothing if the file ends before."""
        depth = 0
        while opener := (yield from self.find(_ROW_OPENER)):
            depth += {b"(": 1, b")": -1}.get(opener, 0)
            if opener == b";" or (opener == b")" and depth <= 0):
                break
            if opener in b"'\"`":
                yield from self.skip_rest(opener)
        return opener


def sql_records(texts: Iterator[bytes]) -> Rows:
    """Yield the rows of all tables of YOURLS, and None after each piece of the file."""
    dump, tables = _Dump(texts), dict[str, Table]()
    while True:
        if dump.waiting < CHUNK and not dump.ended:  # the part of an INSERT before its rows must be complete
            dump.grow()
            yield None
            continue
        if not dump.skip(_GAP):
            if dump.ended:
                return
            continue
        if opener := _COMMENT.match(dump.text, dump.at):
            dump.at = opener.end()
            yield from dump.skip_rest(opener[0])
        elif create := _CREATE.match(dump.text, dump.at):
            created = _created(dump.text, create.end())
            if (created.has_links or created.has_visits) and len(tables) < _MAX_TABLES:
                tables[_first(create.groups())] = created
            yield from dump.skip_statement()
        elif (insert := _INSERT.match(dump.text, dump.at)) and (table := _inserted(insert, tables)):
            dump.at = insert.end()
            yield from _rows(dump, table)
        else:
            yield from dump.skip_statement()


def _created(text: bytes, start: int) -> Table:
    """Return the columns of CREATE TABLE, each of which begins a line."""
    keys = {"PRIMARY", "KEY", "UNIQUE", "INDEX", "FULLTEXT", "CONSTRAINT", "FOREIGN"}
    end = text.find(b";", start)
    names = [_first(column.groups()) for column in _COLUMN.finditer(text[start : max(end, start)])]
    return Table([name for name in names if name.upper() not in keys])


def _inserted(insert: re.Match[bytes], tables: dict[str, Table]) -> Table | None:
    """Return the table of an INSERT, or None if it has neither links nor visits."""
    *names, columns = insert.groups()
    name = _first(tuple(names))
    default = Table(list(LINKS if name.endswith("url") else LOG if name.endswith("log") else ()))
    table = (
        Table([decode(n.strip(b'`" \t\r\n')) for n in columns.split(b",")]) if columns else tables.get(name, default)
    )
    return table if table.has_links or table.has_visits else None


def _first(groups: tuple[bytes | None, ...]) -> str:
    return decode(next((group for group in groups if group is not None), b""))


def _rows(dump: _Dump, table: Table) -> Rows:
    while True:
        if dump.waiting < CHUNK and not dump.ended:
            dump.grow()
            yield None
            continue
        following = dump.skip(_ROW_GAP)
        if not following and not dump.ended:
            continue
        if opener := _COMMENT.match(dump.text, dump.at):
            dump.at = opener.end()
            yield from dump.skip_rest(opener[0])
            continue
        if following != b"(":
            yield from dump.skip_statement()
            return
        row = _ROW.match(dump.text, dump.at)
        if not row and not dump.ended and dump.waiting <= MAX_RECORD:
            dump.grow()
            yield None
            continue
        shown, values = {"row": decode(dump.text[dump.at : dump.at + _MAX_SHOWN])}, _values(row[0]) if row else None
        if row is None or values is None:
            end = yield from dump.skip_row()
            problem = "is not a row of values." if end else "is incomplete, because the file ends inside it."
            yield table, Record(dict(shown), problem)
            if end == b";":
                return
            continue
        dump.at = row.end()
        if len(values) == len(table.columns):
            yield table, Record(dict[str, Any](zip(table.columns, values, strict=True)))
        else:
            yield table, Record(dict(shown), f"has {len(values)} values instead of {len(table.columns)}.")


def _values(row: bytes) -> list[str | None] | None:
    """Return the values of a row, or None if it is malformed."""
    values: list[str | None] = []
    at = 1
    while value := _VALUE.match(row, at):
        values.append(_decode(value))
        at = value.end()
        if value[5] == b")":
            return values if at == len(row) else None
    return None


def _decode(value: re.Match[bytes]) -> str | None:
    string, *digits, word, _ = value.groups()
    if string is not None:
        return decode(
            _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]) if escape[1] else b"'", string[1:-1])
        )
    if word is not None:
        return None if word.upper() == b"NULL" else decode(word)
    text = digits[0] or digits[1] or b""
    return decode(bytes.fromhex(text.decode().zfill(len(text) + len(text) % 2)))
