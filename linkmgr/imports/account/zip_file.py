"""The zip of GET /api/account/export (linkmgr/imports/export_account.py describes its files)."""

import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields import strict_json
from linkmgr.imports.files import text
from linkmgr.imports.rows import MAX_NAME, ReadError

# In an order in which a line refers to earlier lines only.
FILES = ("domains", "campaigns", "channels", "pixels", "splash", "overlays", "answers", "links", "qr", "logos", "bio",
         "visits")  # fmt: skip
_MAX_DIRECTORY = 256 << 10  # bytes that name the files
_MAX_LINE = 128 << 10  # characters of a line in the report
_NO_ARCHIVE = "This zip is not an export of an account. Unpack it, and send one of its files."
# Errors of zipfile and of the libraries that it uses: also of encrypted files, and of offsets outside the zip.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, RuntimeError, ValueError, OverflowError,
               EOFError, OSError)  # fmt: skip


class Line(NamedTuple):
    """A line of a file of the zip."""

    number: int  # from 1, over all files
    kind: str  # of FILES
    record: Row
    problem: str | None = None
    text: str = ""  # the line itself, if it has a problem
    is_mended: bool = False  # its ids are those of the account, see linkmgr/imports/account/__init__.py

    @property
    def name(self) -> str:
        """Return the id in the source, to which other lines refer, or ""."""
        return str(self.record["id"])[:MAX_NAME] if isinstance(self.record.get("id"), int) else ""

    @property
    def is_visits(self) -> bool:
        return self.kind == "visits" and not self.problem

    @property
    def raw(self) -> Row:
        record = {name: value for name, value in self.record.items() if name != "password"}
        line = self.text if self.problem else json.dumps(record, ensure_ascii=False)
        if len(line) > _MAX_LINE and "image" in record:  # a logo, which can be added later
            line = json.dumps(record | {"image": None}, ensure_ascii=False)
        return {"file": f"{self.kind}.jsonl", "line": line[:_MAX_LINE]}


def is_zip(head: bytes) -> bool:
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


def check(file: IO[bytes]) -> zipfile.ZipFile:
    """Return the zip. Raise ReadError if it is not the one of an account, or unpacks to far more than it is."""
    stream = _Stream(file)
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


def read_zip(stream: IO[bytes]) -> Iterator[Line | None]:
    """Read the lines, and return None after parts without one."""
    archive, number = check(stream), 0
    names = set(archive.namelist())
    for name in FILES:
        if f"{name}.jsonl" in names:
            for line in read_file(archive, name, number):
                number = line.number if line else number
                yield line


def read_file(archive: zipfile.ZipFile, kind: str, number: int) -> Iterator[Line | None]:
    place = 0
    try:
        with archive.open(f"{kind}.jsonl") as file:
            for line in text.lines(text.decoded(file)):
                if line.strip():
                    place += 1
                    yield parse(line, number + place, kind, f"Line {place} of {kind}.jsonl")
                else:
                    yield None
    except _UNREADABLE as error:
        raise ReadError(f"{kind}.jsonl in this zip cannot be read. Export the account again.") from error


def parse(line: str, number: int, kind: str, where: str, *, is_mended: bool = False) -> Line:
    """Return a line. A problem with it begins with `where`."""
    try:
        return Line(number, kind, strict_json.parse(line.encode() or b"[]"), is_mended=is_mended)
    except (strict_json.NotJson, AppError):
        shown = "" if '"password"' in line else line.strip()
        return Line(number, kind, {}, f"{where} is not a valid JSON object.", shown, is_mended)
