"""Text of an import file: unpacked, decoded, and read in bounded pieces.

Readers map the lines and entries instead of yielding them in loops, whose variables would hold the
last one, which may be long, while other files are read.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import count
from typing import IO, Any, NamedTuple, TextIO

from linkmgr.features.imports.rows import ReadError, Unreadable

HEAD = 1 << 16  # bytes from which a file is recognized, and that a preview reads
CHUNK = 1 << 16  # characters that are read at a time
MAX_ENTRY = 2 << 20  # characters of a row; the logo of an exported QR code has at most 1 MiB, in base64
MAX_COLUMNS = 500
MAX_UNPACKED = 1 << 30
MAX_RATIO = 250  # texts of links reach about 50
RATIO_APPLIES = 1 << 22  # a short text of repetitions is no attack

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_GZIP_WINDOW = 31  # zlib: the largest window, with a header of gzip
_DAMAGED = "The gzip file is damaged. Pack it again, or send it unpacked."
_INCOMPLETE = "The gzip file is incomplete. Send the whole file."


class Entry(NamedTuple):
    """A row of a file before it is converted."""

    values: dict[str, Any]  # columns of the source
    problem: str | None = None  # the end of a sentence that begins with "Row 7"
    table: str = ""  # of an SQL dump, if it says which links are closed


class Head(NamedTuple):
    text: str
    encoding: str
    is_whole: bool  # the file has no more


def head(start: bytes) -> Head:
    if start.startswith(_ZIP):
        raise ReadError("This is a ZIP archive. Unpack it, and import the files in it one by one.")
    if start.startswith(_GZIP):
        inflate = zlib.decompressobj(_GZIP_WINDOW)
        try:
            start = inflate.decompress(start, HEAD)
        except zlib.error:
            raise ReadError(_DAMAGED) from None
        if not (start or inflate.eof):
            raise ReadError(_INCOMPLETE)
    encoding = _encoding(start)
    text = codecs.getincrementaldecoder(encoding)(_errors(encoding)).decode(start)
    return Head(text, encoding, len(start) < HEAD)


def _encoding(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = start[:1000].count(0)
    if zeros > len(start[:1000]) // 4:  # UTF-16 without its mark, if the text is mostly ASCII
        return "utf-16-le" if start[1:1000:2].count(0) > zeros // 2 else "utf-16-be"
    return "utf-8-sig"


def _errors(encoding: str) -> str:
    return "surrogateescape" if encoding == "utf-8-sig" else "replace"


def mended(text: str) -> str:
    """Return a line whose bytes are not UTF-8 in windows-1252: some files have lines from another
    encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape").decode("windows-1252", "replace")
    return text


def open_text(stream: IO[bytes]) -> TextIO:
    stream.seek(0)
    start = stream.read(HEAD)
    stream.seek(0)
    return decoded(_Unpacked(stream) if start.startswith(_GZIP) else stream, head(start).encoding)


def decoded(file: IO[bytes] | gzip.GzipFile, encoding: str = "utf-8-sig") -> TextIO:
    return io.TextIOWrapper(file, encoding, _errors(encoding), newline="")


class _Unpacked(gzip.GzipFile):
    """A file that was packed with gzip. What unpacks to far more than it is, is refused."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__(fileobj=packed)
        self._packed = packed

    def read1(self, size: int | None = -1) -> bytes:
        try:
            text = super().read1(-1 if size is None else size)
        except EOFError:
            raise ReadError(_INCOMPLETE) from None
        except (gzip.BadGzipFile, zlib.error):
            raise ReadError(_DAMAGED) from None
        check_ratio(self._packed.tell(), self.tell(), "gzip file")
        return text


def check_ratio(packed: int, unpacked: int, name: str) -> None:
    if unpacked > MAX_UNPACKED:
        raise ReadError(f"The {name} is larger than {MAX_UNPACKED >> 30} GiB when unpacked. Divide it.")
    if unpacked > max(RATIO_APPLIES, MAX_RATIO * packed):
        raise ReadError(f"The {name} unpacks to far more than links do. Send it unpacked.")


def lines(text: TextIO) -> Iterator[str]:
    """Yield the lines with their ends (CR, LF or CRLF). One that is too long ends the file."""
    return map(_line, count(1), iter(lambda: text.readline(MAX_ENTRY + 1), ""))


def _line(number: int, line: str) -> str:
    if len(line) > MAX_ENTRY:
        raise ReadError(f"Line {number} is longer than 2 MiB. Correct the file.")
    return line if line.isascii() else mended(line)


class Buffer:
    def __init__(self, text: TextIO) -> None:
        self._file, self.text, self.at, self.ended = text, "", 0, False

    @property
    def waiting(self) -> int:
        return len(self.text) - self.at

    def grow(self, problem: ReadError | Unreadable) -> None:
        """Read on. Raise `problem` if a row does not end in as many characters as a row may
        have."""
        if self.waiting > MAX_ENTRY:
            raise problem
        piece = self._file.read(CHUNK)
        self.ended = not piece
        self.text, self.at = self.text[self.at :] + piece, 0
