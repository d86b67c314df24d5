"""The CSV of the lines of an exported account that an import could not store. It can be mended and imported itself.

Its columns are `file`, `line` and `error`. The ids in the lines are those of the account, no longer those of the zip.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from linkmgr.db.statements import Row
from linkmgr.imports import archive, streams
from linkmgr.imports.archive import Line
from linkmgr.imports.csv_file import csv_records, header
from linkmgr.imports.sources import normalize

# Visits and answers follow the rows that the import of the zip made.
FILES = tuple(name for name in archive.FILES if name not in ("answers", "visits"))


def has_columns(columns: list[str]) -> bool:
    return {"file", "line"} <= set(map(normalize, columns))


def read(stream: BinaryIO, position: Any = None) -> Iterator[Line]:
    """Read the lines of the CSV, or of a zip, after `position`. That of a CSV is the number of the line before, and
    the offset of its end."""
    start = stream.read(streams.HEAD)
    if archive.is_archive(start):
        yield from archive.read(stream, position)
        return
    text, encoding = streams.head(start)
    columns, delimiter, offset = header(text)
    number, offset = position or (0, offset)
    lines = streams.Lines(streams.pieces(stream, encoding, offset), offset)
    for record in csv_records(lines, [normalize(column) for column in columns], delimiter):
        number += 1
        yield _line(number, record)


def _line(number: int, record: streams.Record) -> Line:
    kind = record.values.get("file", "").strip().removesuffix(".jsonl")
    text, position = record.values.get("line", ""), [number, record.offset]
    members: Row = {}
    if record.problem:
        problem: str | None = f"Row {number} {record.problem}"
    elif kind not in FILES:
        problem = f"Row {number} must have one of these files: {', '.join(f'{name}.jsonl' for name in FILES)}."
    else:
        members, problem = archive.parse(text.encode() or b"[]")  # an empty text would stand for a long line
        problem = problem and f"The line of row {number} {problem}"
    return Line(number, kind, members, problem, position, text, is_mended=True)


def preview(stream: BinaryIO, limit: int) -> list[Row]:
    """Return the first rows of the CSV, or the first links of a zip."""
    if archive.is_archive(stream.read(4)):
        return archive.preview(stream, limit)
    stream.seek(0)
    return [archive.describe(line) for line in islice(read(stream), limit)]
