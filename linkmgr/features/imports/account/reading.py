"""Read exported accounts: their zip (export.py describes its files), and the CSV of their lines
that an import could not store.

That CSV can be mended and imported itself. Its columns are `file`, `line` and `error`. The ids in
the lines are those of the account, no longer those of the zip.
"""

import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count, islice
from typing import IO, Any

from linkmgr.core.errors import AppError
from linkmgr.core.fields import strict_json
from linkmgr.features.exports.account import FILES
from linkmgr.features.imports.files import text
from linkmgr.features.imports.files.csv_file import csv_entries
from linkmgr.features.imports.rows import ImportRow, ReadError, Unreadable
from linkmgr.features.imports.sources import normalize

SOURCE = "account"
# Visits, conversions and answers follow the rows that the import of the zip made.
_MENDED = tuple(name for name in FILES if name not in ("answers", "visits", "conversions"))
_MAX_DIRECTORY = 256 << 10  # bytes that name the files
# zipfile does not bound what other methods unpack at once.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MAX_LINE = 128 << 10  # characters of a line in the report
_NO_ARCHIVE = "This zip is not an export of an account. Unpack it, and send one of its files."
# Errors of zipfile and of the libraries that it uses: also of encrypted files, and of offsets
# outside the zip.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, RuntimeError, ValueError, OverflowError,
               EOFError, OSError)  # fmt: skip


def is_zip(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04")


def has_columns(columns: list[str]) -> bool:
    return {"file", "line"} <= set(map(normalize, columns))


class _Stream:
    """A zip. Until `is_listed`, a long read fails: it would load a long list of files into
    memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.is_listed = stream, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, size: int = -1) -> bytes:
        if not self.is_listed and size > _MAX_DIRECTORY:
            raise ReadError("This zip has too many files. Export the account again.")
        return self._stream.read(size)


def check(file: IO[bytes]) -> zipfile.ZipFile:
    """Return the zip. Raise ReadError if it is not the one of an account, or unpacks to far more
    than it is."""
    stream: Any = _Stream(file)
    try:
        archive = zipfile.ZipFile(stream)
        stream.is_listed = True
        infos = {info.filename: info for info in archive.infolist()}
    except _UNREADABLE:
        raise ReadError("This zip is damaged. Export the account again.") from None
    if "manifest.json" not in infos or "links.jsonl" not in infos:
        raise ReadError(_NO_ARCHIVE)
    size = file.seek(0, io.SEEK_END)
    text.check_ratio(size, sum(info.file_size for info in infos.values()), "zip")
    return archive


def read(stream: IO[bytes], files: Iterable[str] = FILES) -> Iterator[ImportRow | None]:
    """Read the lines of a zip or of the CSV, and return None after parts without one. Of a zip,
    read these files."""
    start = stream.read(text.HEAD)
    stream.seek(0)
    return _read_zip(check(stream), files) if is_zip(start) else _read_csv(stream)


def first_rows(stream: IO[bytes], limit: int) -> list[ImportRow]:
    return [_previewed(row) for row in islice(read(stream, ["links"]), 10 * limit) if row][:limit]


def _read_zip(archive: zipfile.ZipFile, files: Iterable[str]) -> Iterator[ImportRow | None]:
    names, numbers = set(archive.namelist()), count(1)
    for file in files:
        name = f"{file}.jsonl"
        if name not in names:
            continue
        try:
            if archive.getinfo(name).compress_type not in _METHODS:
                raise zipfile.BadZipFile
            with archive.open(name) as content:
                line = partial(_line, name, numbers, count(1))
                yield from map(line, text.lines(text.decoded(content)))
        except _UNREADABLE as error:
            raise ReadError(f"{name} in this zip cannot be read. Export the account again.") from error


def _line(name: str, numbers: Iterator[int], places: Iterator[int], line: str) -> ImportRow | None:
    if not line.strip():
        return None
    return _row(line, next(numbers), name.removesuffix(".jsonl"), f"Line {next(places)} of {name}")


def _read_csv(stream: IO[bytes]) -> Iterator[ImportRow | None]:
    number = 0

    def numbered(entry: text.Entry | None) -> ImportRow | None:
        nonlocal number
        number += entry is not None
        return entry and _mended(number, entry)

    try:
        with text.open_text(stream) as file:
            yield from map(numbered, csv_entries(file))
    except Unreadable as problem:
        raise ReadError(f"Row {number + 1} {problem}") from None


def _row(line: str, number: int, file: str, where: str) -> ImportRow:
    try:
        return ImportRow(number, strict_json.parse(line.encode() or b"[]"), file=file)
    except (strict_json.NotJson, AppError):
        raw = _raw(f"{file}.jsonl", line.strip())
        return ImportRow(number, raw=raw, unreadable="is not a valid JSON object.", place=where, file=file)


def _mended(number: int, entry: text.Entry) -> ImportRow:
    values = {normalize(name): value for name, value in entry.values.items()}
    name, line = values.get("file", ""), values.get("line", "")
    file, problem = name.strip().removesuffix(".jsonl"), entry.problem
    if file not in _MENDED:
        problem = f"must have one of these files: {', '.join(f'{name}.jsonl' for name in _MENDED)}."
    if problem:
        return ImportRow(number, raw=_raw(name, line), unreadable=problem)
    return _row(line, number, file, f"The line of row {number}")._replace(is_mended=True)


def _raw(file: str, line: str) -> dict[str, str]:
    return {"file": file[:_MAX_LINE], "line": "" if '"password"' in line else line[:_MAX_LINE]}


def report(row: ImportRow) -> dict[str, str]:
    record = {name: value for name, value in row.members.items() if name != "password"}
    line = json.dumps(record, ensure_ascii=False)
    if len(line) > _MAX_LINE and "image" in record:  # a logo, which can be added later
        line = json.dumps(record | {"image": None}, ensure_ascii=False)
    return row.raw or {"file": f"{row.file}.jsonl", "line": line[:_MAX_LINE]}


def _previewed(row: ImportRow) -> ImportRow:
    record, date, clicks = row.members, row.members.get("date"), row.members.get("clicks")
    return row._replace(
        members={name: str(record.get(name) or "") for name in ("url", "custom", "title")},
        created=date if isinstance(date, str) else None,
        clicks=clicks if isinstance(clicks, int) and clicks >= 0 else None,
    )
