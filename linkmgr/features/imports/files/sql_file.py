"""Rows of the INSERT statements of an SQL dump, as mysqldump, phpMyAdmin and Adminer write it."""

import re
from collections.abc import Iterator
from typing import Any, TextIO

from linkmgr.features.imports.files import closed_links
from linkmgr.features.imports.files.text import CHUNK, HEAD, MAX_COLUMNS, Buffer, Entry, mended
from linkmgr.features.imports.rows import ReadError, Unreadable

_FLAGS = re.DOTALL | re.IGNORECASE
_STRING = r"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'"
_LEXEME = re.compile(
    _STRING + r'|"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+"'
    r"|`[^`]*+`"
    r"|(?:--(?=\s)|#)[^\n]*+(?:\n|\Z)"
    r"|/\*(?:[^*]++|\*(?=[^/]))*+\*/"
    r"|[^'\"`#/;()-]++|[;()]|/(?!\*)|-(?!-\s)",
    _FLAGS,
)
_NAME = r"(?:`[^`]*`\.|\"[^\"]*\"\.|\w+\.)?(`[^`]*`|\"[^\"]*\"|\w+)"
# Repetitions of spaces are possessive (*+): with backtracking, two beside each other take quadratic
# time.
_INSERT = re.compile(
    r"\s*+(?:INSERT|REPLACE)\s++(?:(?:IGNORE|DELAYED|LOW_PRIORITY|HIGH_PRIORITY)\s++)*+INTO\s++" + _NAME
    + r"\s*+(?:\(([^()']*)\))?+\s*+VALUES", _FLAGS)  # fmt: skip
_CREATE = re.compile(r"\s*+CREATE\s++TABLE\s++(?:IF\s++NOT\s++EXISTS\s++)?+" + _NAME + r"\s*+\(", _FLAGS)
_COLUMN = re.compile(r"^[^\S\n]*+(`[^`]+`|\"[^\"]+\"|\w++)\s++\w", re.MULTILINE)
# Patterns that begin with many letters are searched fast.
_LINKS_CREATED = re.compile(r"\nCREATE TABLE [^\n(]{1,200}url\W")
_LINKS_INSERTED = re.compile(r"\nINSERT INTO [^\n(]{1,200}url\W")
_OVERLAP = 1 << 12  # characters of the pieces that are searched
MAX_SEARCHED = 16 << 20  # characters before the table of links
_QUOTES = '`" \t\r\n'  # around names
_VALUE = re.compile(
    r"\s*+(?:(?:_\w+\s*+)?(?:(" + _STRING + r")|0x([0-9a-f]+)|x'([0-9a-f]*)')|([-+.\w]++))\s*+([,)])", _FLAGS
)
_FOLLOWING = re.compile(r"[\s,]*+(\()?+")  # what may be behind a row
_ESCAPE = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_KEYS = {"PRIMARY", "KEY", "UNIQUE", "INDEX", "FULLTEXT", "CONSTRAINT", "FOREIGN"}
_MALFORMED = "is no row of values, is incomplete, or is longer than 2 MiB. Correct the file."
_TOO_LONG = "The SQL file has a text of more than 2 MiB. Export only yourls_url and yourls_log."
_MAX_QUOTED = 500  # characters of a malformed row
_MAX_STATEMENT = 1 << 16  # characters of a statement before its rows
_MAX_TABLES = 100  # with links or visits; those of other tables are not kept

# Columns of YOURLS, for a dump without CREATE TABLE.
# https://github.com/YOURLS/YOURLS/blob/master/includes/functions-install.php
LINKS = ("keyword", "url", "title", "timestamp", "ip", "clicks")
VISITS = ("shorturl", "click_time")
_OPTIONS = ("option_id", "option_name", "option_value")
LOG = ("click_id", "click_time", "shorturl", "referrer", "user_agent", "ip_address", "country_code")
_DEFAULTS = {"url": LINKS, "log": LOG, "options": _OPTIONS}  # by the end of the name of a table


def _is_wanted(name: str, columns: list[str]) -> bool:
    is_known = any({*names} <= {*columns} for names in (LINKS[:2], VISITS))
    return len(columns) <= MAX_COLUMNS and (is_known or closed_links.is_noted(name, columns))


def is_visit(values: dict[str, Any]) -> bool:
    return values.keys() >= {*VISITS} and not values.keys() >= {*LINKS[:2]}


def _lexemes(buffer: Buffer) -> Iterator[str | None]:
    """Yield strings, names, brackets, semicolons and the text between them, and None for a comment
    and after each piece of the file."""
    while buffer.waiting or not buffer.ended:
        lexeme = _LEXEME.match(buffer.text, buffer.at)
        if not buffer.ended and (not lexeme or lexeme.end() + 2 > len(buffer.text)):  # it may continue
            buffer.grow(ReadError(_TOO_LONG))
            yield None
        elif not lexeme:
            return
        else:
            buffer.at = lexeme.end()
            yield None if lexeme[0].startswith(("--", "#", "/*")) else lexeme[0]


def links_table(file: TextIO) -> str:
    """Return a piece of a dump from the table of links on, or "" if that is too far behind. Only a
    statement begins a line, because the strings of a dump have no line breaks."""
    text = ""
    for _ in range(MAX_SEARCHED // CHUNK):
        piece = file.read(CHUNK)
        text = text[-_OVERLAP:] + piece
        if inserted := _LINKS_INSERTED.search(text):
            starts = [inserted, *_LINKS_CREATED.finditer(text, 0, inserted.start())]
            return (text[starts[-1].start() :] + file.read(CHUNK))[:HEAD]
        if not piece:
            break
    return ""


def sql_entries(file: TextIO) -> Iterator[Entry | None]:
    buffer, tables, statement = Buffer(file), dict[str, list[str]](), ""
    for lexeme in _lexemes(buffer):
        if lexeme is None:
            yield None
        elif lexeme == ";":
            if len(tables) < _MAX_TABLES:
                tables |= _created(statement)
            statement = ""
        elif lexeme == "(" and (inserted := _inserted(statement, tables)):
            yield from _rows(buffer, *inserted)
            statement = ""
        elif len(statement) < _MAX_STATEMENT:
            statement += lexeme


def _created(statement: str) -> dict[str, list[str]]:
    if not (create := _CREATE.match(statement)):
        return {}
    names = [column[1].strip(_QUOTES) for column in _COLUMN.finditer(statement, create.end())]
    columns = [name for name in names if name.upper() not in _KEYS]
    name = create[1].strip(_QUOTES)
    return {name: columns} if _is_wanted(name, columns) else {}


def _inserted(statement: str, tables: dict[str, list[str]]) -> tuple[str, list[str]] | None:
    if statement.rstrip()[-6:].upper() != "VALUES" or not (insert := _INSERT.fullmatch(statement.rstrip())):
        return None
    name, listed = insert[1].strip(_QUOTES), insert[2]
    default = [*next((names for end, names in _DEFAULTS.items() if name.endswith(end)), ())]
    columns = [name.strip(_QUOTES) for name in listed.split(",")] if listed else tables.get(name, default)
    return (name, columns) if _is_wanted(name, columns) else None


def _rows(buffer: Buffer, name: str, columns: list[str]) -> Iterator[Entry | None]:
    is_row, table = True, name if closed_links.is_noted(name, columns) else ""
    while is_row:
        values, end = _values(buffer)
        following = _FOLLOWING.match(buffer.text, end)
        # It may continue
        if not buffer.ended and (not end or not following or following.end() == len(buffer.text)):
            buffer.grow(Unreadable(_MALFORMED))
            yield None
            continue
        if not end or not following:
            raise Unreadable(_MALFORMED)
        if len(values) == len(columns):
            yield Entry(dict[str, Any](zip(columns, values, strict=True)), table=table)
        else:
            quoted = mended(buffer.text[buffer.at : end][:_MAX_QUOTED])
            yield Entry({"row": f"({quoted}"}, f"has {len(values)} values instead of {len(columns)}.", table)
        buffer.at, is_row = following.end(), bool(following[1])


def _values(buffer: Buffer) -> tuple[list[str | None], int]:
    """Return the values of the row at the position, and its end, which is 0 if it does not end in
    the buffer."""
    values: list[str | None] = []
    at = buffer.at
    while value := _VALUE.match(buffer.text, at):
        values.append(_decode(value))
        at = value.end()
        if value[5] == ")":
            return values, at
    return [], 0


def _decode(value: re.Match[str]) -> str | None:
    string, hex_digits, hex_string, word, _ = value.groups()
    if string is not None:
        return mended(_ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1] or "'"), string[1:-1]))
    if word is not None:
        return None if word.upper() == "NULL" else word
    digits = hex_digits or hex_string or ""
    return mended(bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)).decode(errors="surrogateescape"))
