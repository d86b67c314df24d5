"""Text of an import file: unpacked, in UTF-8 or a single-byte encoding, in bounded pieces."""

import codecs
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from linkmgr.imports.rows import ReadError

HEAD = 1 << 16  # bytes from which a file is recognized, and that a preview reads
CHUNK = 1 << 16  # bytes that are read at a time
MAX_RECORD = 1 << 20  # bytes of a row
MAX_COLUMNS = 500
MAX_UNPACKED = 1 << 30
MAX_RATIO = 250  # texts of links reach about 50
RATIO_APPLIES = 1 << 22  # a short text of repetitions is no attack

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_GZIP_WINDOW = 31  # zlib: the largest window, with a header of gzip
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Record(NamedTuple):
    """A row of a file before it is converted."""

    values: dict[str, Any]  # columns of the source
    problem: str | None = None  # the end of a sentence that begins with "Row 7"


def head(start: bytes) -> tuple[bytes, str]:
    """Return the first bytes of a file, unpacked and transcoded as `pieces` does, and the encoding of the file."""
    if start.startswith(_ZIP):
        raise ReadError("This is a ZIP archive. Unpack it, and import the files in it one by one.")
    if start.startswith(_GZIP):
        inflate = zlib.decompressobj(_GZIP_WINDOW)
        try:
            start = inflate.decompress(start, HEAD)
        except zlib.error:
            raise _damaged() from None
        if not (start or inflate.eof):
            raise _incomplete()
    encoding = _encoding(start)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(start).encode() if _is_wide(encoding) else start
    return text[:HEAD], encoding


def _encoding(start: bytes) -> str:
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            return encoding
    zeros = start[:1000].count(0)
    if zeros > len(start[:1000]) // 4:  # UTF-16 without its mark, if the text is mostly ASCII
        return "utf-16-le" if start[1:1000:2].count(0) > zeros // 2 else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # which allows a character that is cut off
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


def _is_wide(encoding: str) -> bool:
    return encoding.startswith("utf-16")


def decode(text: bytes) -> str:
    """Decode a line of a file: some files have lines that were pasted from another encoding."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("windows-1252", "replace")


def pieces(stream: BinaryIO, encoding: str) -> Iterator[bytes]:
    """Yield the bytes of a file: unpacked, and as UTF-8 if the encoding has wide characters."""
    stream.seek(0)
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    texts = _unpack(stream) if packed else iter(lambda: stream.read(CHUNK), b"")
    if not _is_wide(encoding):
        yield from texts
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for text in texts:
        yield decoder.decode(text).encode() or b" "  # an empty piece would end the file


def _unpack(stream: BinaryIO) -> Iterator[bytes]:
    """Unpack gzip, also several files of gzip one after the other. Refuse what unpacks to far more than it is."""
    inflate, received, unpacked = zlib.decompressobj(_GZIP_WINDOW), 0, 0
    pending = b""
    while pending or (pending := stream.read(CHUNK)):
        received += len(pending)
        if inflate.eof:
            if not pending.startswith(_GZIP[: len(pending)]):  # padding
                return
            inflate = zlib.decompressobj(_GZIP_WINDOW)
        try:
            text = inflate.decompress(pending, CHUNK)
        except zlib.error:
            raise _damaged() from None
        pending = inflate.unconsumed_tail or inflate.unused_data
        received -= len(pending)
        unpacked += len(text)
        check_ratio(received, unpacked, "gzip file")
        if text:
            yield text
    if rest := inflate.flush():
        yield rest
    if received and not inflate.eof:
        raise _incomplete()


def check_ratio(packed: int, unpacked: int, name: str) -> None:
    if unpacked > MAX_UNPACKED:
        raise ReadError(f"The {name} is larger than {MAX_UNPACKED >> 30} GiB when unpacked. Divide it.")
    if unpacked > max(RATIO_APPLIES, MAX_RATIO * packed):
        raise ReadError(f"The {name} unpacks to far more than links do. Send it unpacked.")


def _incomplete() -> ReadError:
    return ReadError("The gzip file is incomplete. Send the whole file.")


def _damaged() -> ReadError:
    return ReadError("The gzip file is damaged. Pack it again, or send it unpacked.")


class Lines:
    """The lines of a file with their ends (CR, LF or CRLF). None stands for one that is longer than MAX_RECORD."""

    def __init__(self, texts: Iterator[bytes]) -> None:
        self._texts, self._rest, self._skips, self.ended = texts, b"", False, False
        self.ready: deque[bytes | None] = deque()

    def fill(self) -> None:
        """Read another piece, and add the lines that it completes."""
        text = next(self._texts, b"")
        self.ended = not text
        if self._skips and text:
            first = text.splitlines(keepends=True)[0]
            if not first.endswith((b"\n", b"\r")):
                return
            self._skips, text = False, text[len(first) :]
        lines = (self._rest + text).splitlines(keepends=True)
        self._rest = b""
        if lines and not self.ended and not lines[-1].endswith(b"\n"):  # a CR at the end may belong to CRLF
            self._rest = lines.pop()
        self.ready.extend(lines)
        if len(self._rest) > MAX_RECORD:
            self._rest, self._skips = b"", True
            self.ready.append(None)
