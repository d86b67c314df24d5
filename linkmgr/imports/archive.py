"""The zip of GET /api/account/export (linkmgr/repository/export_account.py describes its files)."""

import io
import json
import lzma
import struct
import zipfile
import zlib
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
MAX_UNPACKED = 2 << 30  # bytes; accounts unpack to at most 15 times the size of their zip
_MAX_DIRECTORY = 256 << 10  # bytes that name the files
_MAX_LINE = 128 << 10  # bytes; a body of the API has at most 64 KiB
_MAX_SKIPPED = 16 << 20  # bytes of a line that is too long; other imports wait while it is skipped
_MAX_LOGO = 4 << 20  # bytes; a logo has at most 1 MiB, and a third more in base64
_NO_ARCHIVE = "This zip is not an export of an account. Unpack it, and send one of its files."
# Errors of zipfile and of the libraries that it uses: also of encrypted files, and of offsets outside the zip.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, RuntimeError, ValueError, OverflowError,
               EOFError, OSError)  # fmt: skip


class Line(NamedTuple):
    """A line of a file of the zip."""

    number: int  # from 1, over all files
    kind: str  # of FILES
    record: Row
    problem: str | None
    position: Any
    text: str = ""  # the line itself, if it has a problem
    is_mended: bool = False  # its ids are those of the account, see linkmgr/imports/archive_errors.py

    @property
    def visits(self) -> list[RawVisit]:
        return []

    @property
    def is_alone(self) -> bool:
        """Return True for a line that is a batch of its own: it takes a request to another host, or much memory."""
        return self.kind in ("domains", "logos")

    @property
    def raw(self) -> Row:
        line = self.text if self.problem else json.dumps(self.record, ensure_ascii=False)
        if len(line) > _MAX_LINE and "image" in self.record:  # a logo, which can be added later
            line = json.dumps(self.record | {"image": None}, ensure_ascii=False)
        return {"file": f"{self.kind}.jsonl", "line": line[:_MAX_LINE]}


def is_archive(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04")


class _Stream(io.BufferedIOBase):
    """A zip. Until `is_listed`, a long read fails: it would load a long list of files into memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self.is_listed = False

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int | None = -1) -> bytes:
        if not self.is_listed and (size or 0) > _MAX_DIRECTORY:
            raise ReadError("This zip has too many files. Export the account again.")
        return self._stream.read(-1 if size is None else size)


def _open(file: IO[bytes]) -> zipfile.ZipFile:
    stream = _Stream(file)
    try:
        archive = zipfile.ZipFile(stream)
        stream.is_listed = True
        infos = {info.filename: info for info in archive.infolist()}
    except _UNREADABLE:
        raise ReadError("This zip is damaged. Export the account again.") from None
    if "manifest.json" not in infos or "links.jsonl" not in infos:
        raise ReadError(_NO_ARCHIVE)
    if sum(info.file_size for info in infos.values()) > MAX_UNPACKED:
        raise ReadError(f"This zip has more than {MAX_UNPACKED >> 30} GiB when it is unpacked.")
    return archive


def read(stream: IO[bytes], position: Any = None) -> Iterator[Line]:
    """Read the lines after `position`: the number of the line before, its file, its number in this file, and the
    offset of its end."""
    number, kind, place, offset = position or (0, FILES[0], 0, 0)
    archive = _open(stream)
    names = set(archive.namelist())
    for name in FILES[FILES.index(kind) :]:
        if f"{name}.jsonl" in names:
            for line in _read_file(archive, name, number, place, offset):
                yield line
                number = line.number
        place = offset = 0


def _read_file(archive: zipfile.ZipFile, kind: str, number: int, place: int, offset: int) -> Iterator[Line]:
    limit = _MAX_LOGO if kind in ("domains", "logos") else _MAX_LINE
    try:
        with archive.open(f"{kind}.jsonl") as file:
            file.seek(offset)
            while text := file.readline(limit):
                offset += len(text)
                if len(text) >= limit and not text.endswith(b"\n"):
                    offset += _skip_line(file, kind, limit)
                    text = b""
                number, place = number + 1, place + 1
                record, problem = parse(text, limit)
                sentence = problem and f"Line {place} of {kind}.jsonl {problem}"
                shown = text.decode(errors="replace").strip() if problem else ""
                yield Line(number, kind, record, sentence, [number, kind, place, offset], shown)
    except _UNREADABLE as error:
        raise ReadError(f"{kind}.jsonl in this zip cannot be read. Export the account again.") from error


def _skip_line(file: IO[bytes], kind: str, limit: int) -> int:
    """Read the rest of a line, and return its number of bytes."""
    skipped = 0
    while part := file.readline(limit):
        skipped += len(part)
        if skipped > _MAX_SKIPPED:
            raise ReadError(f"{kind}.jsonl has a line of more than {_MAX_SKIPPED >> 20} MiB. Export the account again.")
        if part.endswith(b"\n"):
            break
    return skipped


def parse(text: bytes, limit: int = _MAX_LINE) -> tuple[Row, str | None]:
    """Return the members of a line, and a problem or None. An empty text stands for a line that is too long."""
    if not text:
        return {}, f"is longer than {limit >> 10} KiB."
    try:
        return strict_json.parse(text), None
    except (strict_json.NotJson, AppError):
        return {}, "is not a valid JSON object."


def preview(stream: IO[bytes], limit: int) -> list[Row]:
    """Return the first links."""
    archive = _open(stream)
    return [describe(line) for line in islice(_read_file(archive, "links", 0, 0, 0), limit)]


def describe(line: Line) -> Row:
    """Return a line as a row of a preview."""
    return {
        "number": line.number,
        "link": {name: str(line.record.get(name) or "") for name in ("url", "custom", "metatitle")},
        "channels": [],
        "created": line.record.get("date") if isinstance(line.record.get("date"), str) else None,
        "clicks": clicks if isinstance(clicks := line.record.get("clicks"), int) and clicks >= 0 else None,
        "visits": 0,
        "problem": line.problem,
    }
