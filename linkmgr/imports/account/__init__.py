"""Exported accounts: their zip, and the CSV of their lines that an import could not store.

That CSV can be mended and imported itself. Its columns are `file`, `line` and `error`. The ids in the lines are those
of the account, no longer those of the zip.
"""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from linkmgr.imports.account import zip_file
from linkmgr.imports.account.zip_file import FILES, Line
from linkmgr.imports.files import text
from linkmgr.imports.files.csv_file import csv_records
from linkmgr.imports.rows import ImportRow, ReadError, Unreadable
from linkmgr.imports.sources import normalize

SOURCE = "account"
# Visits and answers follow the rows that the import of the zip made.
_MENDED = tuple(name for name in FILES if name not in ("answers", "visits"))


def has_columns(columns: list[str]) -> bool:
    return {"file", "line"} <= set(map(normalize, columns))


def read(stream: BinaryIO) -> Iterator[Line | None]:
    """Read the lines of a zip or of the CSV, and return None after parts without one."""
    start = stream.read(text.HEAD)
    stream.seek(0)
    if zip_file.is_zip(start):
        yield from zip_file.read_zip(stream)
        return
    number = 0
    try:
        with text.open_text(stream) as file:
            for record in csv_records(file):
                number += record is not None
                yield record and _line(number, record)
    except Unreadable as problem:
        raise ReadError(f"Row {number + 1} {problem}") from None


def _line(number: int, record: text.Record) -> Line:
    values = {normalize(name): value for name, value in record.values.items()}
    kind, line = values.get("file", "").strip().removesuffix(".jsonl"), values.get("line", "")
    parsed = zip_file.parse(line, number, kind, f"The line of row {number}", is_mended=True)
    if record.problem:
        problem = f"Row {number} {record.problem}"
    elif kind not in _MENDED:
        problem = f"Row {number} must have one of these files: {', '.join(f'{name}.jsonl' for name in _MENDED)}."
    else:
        return parsed
    return parsed._replace(record={}, problem=problem, text="" if '"password"' in line else line)


def first_rows(stream: BinaryIO, limit: int) -> list[ImportRow]:
    """Return the first rows of the CSV, or the first links of a zip, for a preview."""
    start = stream.read(text.HEAD)
    stream.seek(0)
    lines = zip_file.read_file(zip_file.check(stream), "links", 0) if zip_file.is_zip(start) else read(stream)
    return [_to_row(line) for line in islice(lines, 10 * limit) if line][:limit]


def _to_row(line: Line) -> ImportRow:
    record, date, clicks = line.record, line.record.get("date"), line.record.get("clicks")
    link = {name: str(record.get(name) or "") for name in ("url", "custom", "metatitle")}
    created = date if isinstance(date, str) else None
    total = clicks if isinstance(clicks, int) and clicks >= 0 else None
    return ImportRow(line.number, link, created=created, clicks=total, problem=line.problem)
