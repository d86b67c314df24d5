"""Recognize an import file by its first bytes, and read its rows one by one.

A position is the number of the row before it and an offset in the unpacked file. For an SQL dump, it also names the
pass over the file (the links, then their visits) and the table to which the row belongs.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from linkmgr.imports import streams
from linkmgr.imports.cells import flatten
from linkmgr.imports.csv_file import csv_records, header
from linkmgr.imports.json_file import json_elements, json_lines
from linkmgr.imports.rows import MEMBERS, ImportRow, ReadError
from linkmgr.imports.services import SERVICES, read_service
from linkmgr.imports.sources import BY_NAME, Source, mapping_of, normalize, recognize_source
from linkmgr.imports.sql_file import LINKS, Table, sql_records
from linkmgr.imports.streams import Lines, Record
from linkmgr.imports.values import Converter, visit_row

__all__ = ("FILE_SOURCES", "HEAD_BYTES", "SERVICES", "WITH_VISITS", "Recognized", "read", "read_service", "recognize")

FILE_SOURCES = ("bitly", "dub", "kutt", "linkmgr", "rebrandly", "shlink", "shortio", "yourls")
WITH_VISITS = ("shlink", "yourls")  # sources whose visits follow their links
HEAD_BYTES = streams.HEAD  # recognize() needs at most so many
AUTO = "auto"

_SQL = re.compile(rb"\s*(?:--|/\*|(?:INSERT\s+INTO|REPLACE\s+INTO|(?:CREATE|DROP|LOCK)\s+TABLES?|SET|PRAGMA)\s)", re.I)
_JSON_LINES_LOOKED_AT = 5
_MAX_SHOWN = 50  # columns of a file in a message, and characters of each


class Recognized(NamedTuple):
    """The form of a file, recognized by its first bytes."""

    source: str | None  # a name of FILE_SOURCES, or None: a mapping is required
    format: str  # csv, json, jsonl or sql
    columns: list[str]  # as the file has them
    delimiter: str  # of CSV, else empty
    encoding: str
    mapping: dict[str, str]  # members of rows.MEMBERS to columns; guesses, if there is no source


class _Form(NamedTuple):
    """The form of a file, with what its readers need besides."""

    format: str
    columns: list[str]
    delimiter: str
    encoding: str
    source: Source | None
    start: int  # offset of the first row


def recognize(head: bytes) -> Recognized:
    """Return the format of a file, which may be packed with gzip. Raise ReadError if the format is not supported."""
    form = _form(head)
    mapping = mapping_of(form.source, form.columns)
    name = form.source.name if form.source else None
    return Recognized(name, form.format, form.columns, form.delimiter, form.encoding, mapping)


def _form(head: bytes) -> _Form:
    text, encoding = streams.head(head)
    text = text[:HEAD_BYTES]
    stripped = text.removeprefix("\ufeff".encode()).lstrip()
    if not stripped:
        raise ReadError("The file is empty.")
    if _SQL.match(stripped):
        return _Form("sql", list(LINKS), "", encoding, BY_NAME["yourls"], 0)
    if stripped.startswith((b"{", b"[")):
        file_format, record = _first_json(text)
        return _Form(file_format, list(record), "", encoding, recognize_source(flatten(record)), 0)
    columns, delimiter, start = header(text)
    return _Form("csv", columns, delimiter, encoding, recognize_source(columns), start)


def _first_json(head: bytes) -> tuple[str, dict[str, Any]]:
    """Return the format, and the members of the first link."""
    lines = Lines(iter([head]), 0)
    first_line = next((text for line in lines if (text := (line.text or b"").strip())), b"")
    is_object = first_line.endswith(b"}") and not first_line.startswith(b"[")
    for record in islice(json_lines(Lines(iter([head]), 0)), _JSON_LINES_LOOKED_AT if is_object else 0):
        if not record.problem and "url" in mapping_of(recognize_source(flatten(record.values)), list(record.values)):
            return "jsonl", record.values
    first = next((record for record in json_elements(iter([head]), 0) if not record.problem), None)
    if first is None and len(head) >= HEAD_BYTES:
        raise ReadError("The file has no link in its first 64 KiB. Import an array of links.")
    return "json", first.values if first else {}


def read(
    stream: BinaryIO, source: str | None = AUTO, mapping: Mapping[str, str] | None = None, position: Any = None
) -> Iterator[ImportRow]:
    """Read the rows of a file after `position`. `mapping` replaces columns of the source.

    The stream must support read(n) and seek(n). Raise ReadError for a file that cannot be read any further.
    """
    stream.seek(0)
    form = _form(stream.read(HEAD_BYTES))
    if not form.columns:  # an array without a link
        form = form._replace(source=BY_NAME["linkmgr"])
    if source in BY_NAME:
        form = form._replace(source=BY_NAME[source])
    columns = _columns(form, mapping or {})
    shown = mapping_of(form.source, form.columns) | dict(mapping or {})
    converter = Converter(form.source, columns, shown.get("url", "url"), is_csv=form.format == "csv")
    if form.format == "sql":
        yield from _sql_rows(stream, form, converter, position)
        return
    number, offset = position or (0, form.start)
    for record in _records(stream, form, offset):
        number += 1
        yield converter.row(number, record, [number, record.offset])


def _records(stream: BinaryIO, form: _Form, offset: int) -> Iterator[Record]:
    pieces = streams.pieces(stream, form.encoding, offset)
    if form.format == "json":
        return json_elements(pieces, offset)
    lines = Lines(pieces, offset)
    if form.format == "jsonl":
        return json_lines(lines)
    return csv_records(lines, form.columns, form.delimiter)


def _columns(form: _Form, mapping: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the normalized columns of each member, the best first."""
    if unknown := next((member for member in mapping if member not in MEMBERS), None):
        raise ReadError(f"'{unknown}' in the mapping is not a member of a link. Use: {', '.join(MEMBERS)}.")
    names = ", ".join(f"'{column[:_MAX_SHOWN]}'" for column in form.columns[:_MAX_SHOWN])
    available = {normalize(column) for column in form.columns}
    candidates = dict(form.source.columns) if form.source else {}
    for member, column in mapping.items():
        if normalize(column) not in available and form.format == "csv":
            raise ReadError(f"The file has no column '{column}'. Its columns are: {names}.")
        if normalize(column) not in candidates.get(member, ()):
            candidates[member] = (normalize(column),)
    if not form.source and "url" not in candidates:
        raise ReadError(
            f"In the mapping, set url to the name of the column that contains the target. The columns are: {names}."
        )
    if form.format == "csv" and not available & set(candidates["url"]):
        raise ReadError(f"This is not an export of {form.source and form.source.name}. Its columns are: {names}.")
    return candidates


def _sql_rows(stream: BinaryIO, form: _Form, converter: Converter, position: Any) -> Iterator[ImportRow]:
    """Read the links in one pass over the file and their visits in another, because a dump has the visits first."""
    number, offset, first_pass, *table = position or (0, 0, 0)
    start = Table(*table) if table else None
    for index in range(first_pass, 2):
        for row_table, record in sql_records(streams.pieces(stream, form.encoding, offset), offset, start):
            if not _is_of_pass(index, row_table):
                continue
            number += 1
            after = [number, record.offset, index, *row_table]
            yield visit_row(number, record, after) if index else converter.row(number, record, after)
        offset, start = 0, None
    if not number:
        raise ReadError("The SQL file has no rows of YOURLS. Export its tables yourls_url and yourls_log.")


def _is_of_pass(index: int, table: Table) -> bool:
    return table.has_visits if index else table.has_links
