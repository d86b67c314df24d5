"""Recognize an import file by its first bytes, and read its rows one by one."""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import IO, Any, NamedTuple, TextIO

from linkmgr.features.imports.cells import expand
from linkmgr.features.imports.files import text
from linkmgr.features.imports.files.closed_links import ClosedLinks
from linkmgr.features.imports.files.csv_file import csv_entries, read_header
from linkmgr.features.imports.files.json_file import first_objects, has_array, json_elements, json_lines
from linkmgr.features.imports.files.sql_file import LINKS, is_visit, links_table, sql_entries
from linkmgr.features.imports.files.text import Entry, Head
from linkmgr.features.imports.raw_visits import visit_row
from linkmgr.features.imports.rows import NESTED, ImportRow, ReadError, Unreadable
from linkmgr.features.imports.sources import BY_NAME, Source, mapping_of, normalize, recognize_source
from linkmgr.features.imports.values import Converter, ignored_names, with_mapping

_SQL = re.compile(
    r"\s*(?:--|/\*|(?:INSERT\s+INTO|REPLACE\s+INTO|(?:CREATE|DROP|LOCK)\s+TABLES?|SET|PRAGMA)\s)", re.I
)
_READERS: dict[str, Callable[[TextIO], Iterator[Entry | None]]] = {
    "csv": csv_entries, "json": json_elements, "jsonl": json_lines, "sql": sql_entries,
}  # fmt: skip
_POSTGRES = re.compile(r"^(?:-- PostgreSQL database dump|COPY \S+ \(.*\) FROM stdin;)", re.MULTILINE)
_OF_KUTT = (
    "This is a dump of PostgreSQL, such as that of Kutt. Import the links of Kutt with its API key, or the CSV that "
    'this command writes: psql -c "\\copy (SELECT links.*, domains.address AS domain FROM links LEFT JOIN domains ON '
    "domains.id = links.domain_id) TO 'links.csv' CSV HEADER\"."
)
_MAX_QUOTED = 50  # columns of a file in a message, and characters of each


class Form(NamedTuple):
    format: str  # csv, json, jsonl or sql
    columns: list[str]  # as the file has them
    names: list[str]  # as rows have them: members of objects are columns too
    source: Source | None  # None: a mapping is required

    @property
    def mapping(self) -> dict[str, str]:
        return mapping_of(self.source, self.columns)


def recognize(start: bytes) -> Form:
    """Return the form of a file, which may be packed with gzip. Raise ReadError if it is not
    supported."""
    head = text.head(start)
    stripped = head.text.lstrip()
    if stripped.startswith(("PGDMP", "COPY ")) or (_SQL.match(stripped) and _POSTGRES.search(stripped)):
        raise ReadError(_OF_KUTT)
    if _SQL.match(stripped):
        return Form("sql", list(LINKS), [], BY_NAME["yourls"])
    if stripped.startswith(("{", "[")):
        return _recognize_json(head)
    columns, _ = read_header(text.lines(io.StringIO(_whole_lines(head), newline="")))
    return Form("csv", columns, columns, recognize_source(columns))


def _recognize_json(head: Head) -> Form:
    first_line = next(filter(str.strip, text.lines(io.StringIO(head.text, newline="")))).strip()
    objects = first_objects(json_lines, head)
    form = _json_form("jsonl", objects)
    is_object = first_line.startswith("{") and first_line.endswith("}") and objects
    if is_object and (len(objects) > 1 or "url" in form.mapping or not has_array(head.text)):
        return form
    elements = first_objects(json_elements, head)
    if not elements and not head.is_whole:
        raise ReadError("The file has no link in its first 64 KiB. Import an array of links.")
    return _json_form("json", elements)


def _json_form(file_format: str, objects: list[dict[str, Any]]) -> Form:
    columns = dict.fromkeys(name for members in objects for name in members)
    source = recognize_source({name for members in objects for name in expand(members)})
    nested = {name for member in NESTED for name in (source.columns.get(member, ()) if source else ())}
    names = dict.fromkeys(name for members in objects for name in expand(members, nested))
    return Form(file_format, [*columns], [*names], source)


def _whole_lines(head: Head) -> str:
    if head.is_whole:
        return head.text
    end = max(head.text.rfind("\n"), head.text.rfind("\r")) + 1
    if not head.text[:end].strip():
        raise ReadError(
            "The first line with a text is not in the first 64 KiB, or is longer. Correct the file."
        )
    return head.text[:end]


def read(
    stream: IO[bytes], source: str = "", mapping: Mapping[str, str | None] | None = None
) -> Iterator[ImportRow | None]:
    """Yield None after each piece of the file. `mapping` replaces columns of the source, and
    ignores those that it maps to None. The stream must support read(n) and seek(n). Raise ReadError
    for a file that cannot be read any further."""
    stream.seek(0)
    form, mapping = recognize(stream.read(text.HEAD)), mapping or {}
    form = form._replace(source=BY_NAME.get(source, form.source))
    columns, ignored = with_mapping(form.source, mapping), ignored_names(mapping)
    if form.format == "csv" and not set(map(normalize, form.columns)) & set(columns.get("url", ())):
        names = ", ".join(f"'{column[:_MAX_QUOTED]}'" for column in form.columns[:_MAX_QUOTED])
        raise ReadError(f"This is not an export of {source or 'links'}. Its columns are: {names}.")
    target = mapping.get("url") or form.mapping.get("url", "url")
    converter = Converter(form.source, columns, target, is_csv=form.format == "csv", ignored=ignored)
    closed, number = ClosedLinks(ignored), 0

    def numbered(entry: Entry | None) -> list[ImportRow] | list[None]:
        nonlocal number
        if entry is None or entry.table:
            closed.note(entry, number)
            return [None]
        is_link = form.format != "sql" or not is_visit(entry.values)
        rows = (
            [*map(closed.check, converter.rows(number + 1, entry))]
            if is_link
            else [visit_row(number + 1, entry)]
        )
        rows = [row._replace(number=n) for n, row in enumerate(rows, number + 1)]
        number += len(rows)
        return rows

    try:
        with text.open_text(stream) as file:
            yield from chain.from_iterable(map(numbered, _READERS[form.format](file)))
    except Unreadable as problem:
        raise ReadError(f"Row {number + 1} {problem}") from None
    if form.format == "sql" and not number:
        raise ReadError("The SQL file has no rows of YOURLS. Export its tables yourls_url and yourls_log.")


def first_rows(
    stream: IO[bytes], source: str, mapping: Mapping[str, str | None], limit: int
) -> list[ImportRow]:
    """Return the first rows of a file: links, or visits if its first bytes and the search for a
    table have none. The work does not depend on the size of the file."""
    start = stream.read(text.HEAD)
    head = text.head(start)
    rows = _rows_of(head, source, mapping)
    if not head.is_whole and recognize(start).format == "sql" and all(row.is_visits for row in rows):
        with text.open_text(stream) as file:
            table = links_table(file)
        piece = head._replace(text=table, is_whole=len(table) < text.HEAD)
        rows = _rows_of(piece, source, mapping) if table else rows
    return sorted(rows, key=lambda row: row.is_visits)[:limit]


def _rows_of(head: Head, source: str, mapping: Mapping[str, str | None]) -> list[ImportRow]:
    content, rows = io.BytesIO(head.text.encode(errors="surrogateescape")), list[ImportRow]()
    try:
        rows += filter(None, read(content, source, mapping))
    except ReadError:
        if head.is_whole and not rows:
            raise
        return rows
    return rows if head.is_whole else rows[:-1]  # the last one may be cut
