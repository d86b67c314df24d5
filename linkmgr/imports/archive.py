"""The zip of GET /api/account/export (linkmgr/repository/export_account.py describes its files)."""

import json
import zipfile
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, NamedTuple

from linkmgr.db.statements import Row
from linkmgr.fields import strict_json
from linkmgr.imports.rows import RawVisit, ReadError
from linkmgr.web.errors import AppError

SOURCE = "account"
# In an order in which a line refers to earlier lines only.
FILES = ("domains", "campaigns", "channels", "pixels", "splash", "overlays", "answers", "links", "qr", "logos", "bio",
         "visits")  # fmt: skip
MAX_UNPACKED = 8 << 30  # bytes
_MAX_LINE = 4 << 20  # bytes; a logo has at most 1 MiB, and a third more in base64
_NO_ARCHIVE = "This zip is not an export of an account. Unpack it, and send one of its files."


class Line(NamedTuple):
    """A line of a file of the zip."""

    number: int  # from 1, over all files
    kind: str  # of FILES
    record: Row
    problem: str | None
    position: Any

    @property
    def visits(self) -> list[RawVisit]:
        return []

    @property
    def is_alone(self) -> bool:
        """Return True for a line that is a batch of its own: it takes a request to another host, or much memory."""
        return self.kind in ("domains", "logos")

    @property
    def raw(self) -> Row:
        return {"file": f"{self.kind}.jsonl", "line": json.dumps(self.record, ensure_ascii=False)}


def is_archive(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04")


def _open(stream: IO[bytes]) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(stream)
        infos = {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise ReadError("This zip is damaged. Export the account again.") from None
    if "manifest.json" not in infos or "links.jsonl" not in infos:
        raise ReadError(_NO_ARCHIVE)
    if sum(info.file_size for info in infos.values()) > MAX_UNPACKED:
        raise ReadError(f"This zip has more than {MAX_UNPACKED >> 30} GiB when it is unpacked.")
    return archive


def read(stream: IO[bytes], position: Any = None) -> Iterator[Line]:
    """Read the lines after `position`: the number of the line before, its file, and its number in this file."""
    number, kind, skip = position or (0, FILES[0], 0)
    archive = _open(stream)
    names = set(archive.namelist())
    for name in FILES[FILES.index(kind) :]:
        if f"{name}.jsonl" in names:
            for line in _read_file(archive, name, number, skip):
                yield line
                number = line.number
        skip = 0


def _read_file(archive: zipfile.ZipFile, kind: str, number: int, skip: int) -> Iterator[Line]:
    try:
        with archive.open(f"{kind}.jsonl") as file:
            for place, text in enumerate(iter(lambda: file.readline(_MAX_LINE), b""), 1):
                if place > skip:
                    number += 1
                    yield _parse(text, kind, number, place)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ReadError(f"{kind}.jsonl in this zip cannot be read. Export the account again.") from error


def _parse(text: bytes, kind: str, number: int, place: int) -> Line:
    record, problem = {}, None
    try:
        record = strict_json.parse(text)
    except (strict_json.NotJson, AppError):
        problem = f"Line {place} of {kind}.jsonl is not a valid JSON object."
    return Line(number, kind, record, problem, [number, kind, place])


def preview(stream: IO[bytes], limit: int) -> list[Row]:
    """Return the first links."""
    archive = _open(stream)
    return [
        {
            "number": line.number,
            "link": {name: str(line.record.get(name) or "") for name in ("url", "custom", "metatitle")},
            "channels": [],
            "created": line.record.get("date") if isinstance(line.record.get("date"), str) else None,
            "clicks": clicks if isinstance(clicks := line.record.get("clicks"), int) and clicks >= 0 else None,
            "visits": 0,
            "problem": line.problem,
        }
        for line in islice(_read_file(archive, "links", 0, 0), limit)
    ]
