"""Bytes of an import file: unpacked, in UTF-8 or a single-byte encoding, in bounded pieces."""

import codecs
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from linkmgr.imports.rows import ReadError

HEAD = 1 << 16  # bytes from which a file is recognized
CHUNK = 1 << 16  # bytes that are read at a time
MAX_RECORD = 1 << 20  # bytes of a row
MAX_COLUMNS = 500
MAX_UNPACKED = 1 << 30
MAX_RATIO = 250  # texts of links reach about 50
_RATIO_APPLIES = 1 << 22  # a short text of repetitions is no attack

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_GZIP_WINDOW = 31  # zlib: the largest window, with a header of gzip
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Record(NamedTuple):
    """A row of a file before it is converted."""

    values: dict[str, Any]  # columns of the source
    problem: str | None  # the end of a sentence that begins with "Row 7"
    offset: int  # of the end of the row


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
    return (_transcode(start, encoding) if _is_wide(encoding) else start), encoding


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
    return encoding.startswith(("utf-16", "utf-32"))


def _transcode(start: bytes, encoding: str) -> bytes:
    return codecs.getincrementaldecoder(encoding)("replace").decode(start).encode()


def decode(text: bytes) -> str:
    """Decode a line of a file: some files have lines that were pasted from another encoding."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("windows-1252", "replace")


def pieces(stream: BinaryIO, encoding: str, offset: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from an offset: unpacked, and as UTF-8 if the encoding has wide characters.

    The offset counts the bytes that this function yields.
    """
    stream.seek(0)
    packed = stream.read(2) == _GZIP
    stream.seek(0 if packed or _is_wide(encoding) else offset)
    if not packed and not _is_wide(encoding):
        yield from iter(lambda: stream.read(CHUNK), b"")
        return
    texts = _unpack(stream) if packed else iter(lambda: stream.read(CHUNK), b"")
    if _is_wide(encoding):
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        texts = (decoder.decode(text).encode() for text in texts)
    for text in texts:
        if offset < len(text):
            yield text[offset:]
        offset = max(0, offset - len(text))


def _unpack(stream: BinaryIO) -> Iterator[bytes]:
    """Unpack gzip, also several files of gzip one after the other. Refuse what unpacks to far more than it is."""
    inflate, received, unpacked = zlib.decompressobj(_GZIP_WINDOW), 0, 0
    pending = b""
    while True:
        if not pending and not (pending := stream.read(CHUNK)):
            yield inflate.flush()
            if inflate.eof or not received:
                return
            raise _incomplete()
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
        _limit(received, unpacked)
        if text:
            yield text


def _limit(received: int, unpacked: int) -> None:
    if unpacked > MAX_UNPACKED:
        raise ReadError("The gzip file is larger than 1 GiB when unpacked. Divide it into several files.")
    if unpacked > max(_RATIO_APPLIES, MAX_RATIO * received):
        raise ReadError("The gzip file unpacks to far more than links do. Send the file unpacked.")


def _incomplete() -> ReadError:
    return ReadError("The gzip file is incomplete. Send the whole file.")


def _damaged() -> ReadError:
    return ReadError("The gzip file is damaged. Pack it again, or send it unpacked.")


class Line(NamedTuple):
    text: bytes | None  # with its end (CR, LF or CRLF), or None if it is longer than MAX_RECORD
    start: int
    end: int


class Lines:
    """The lines of a file, and their offsets."""

    def __init__(self, texts: Iterator[bytes], offset: int) -> None:
        self._texts, self._offset, self._rest, self._ended = texts, offset, b"", False
        self._lines: list[Line] = []  # in reverse

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        while not self._lines:
            if self._ended:
                raise StopIteration
            self._fill()
        return self._lines.pop()

    def push_back(self, lines: list[Line]) -> None:
        self._lines += reversed(lines)

    @property
    def offset(self) -> int:
        """Return the offset of the next line."""
        return self._lines[-1].start if self._lines else self._offset

    def _fill(self) -> None:
        text = next(self._texts, b"")
        self._ended = not text
        lines = (self._rest + text).splitlines(keepends=True)
        self._rest = b""
        if lines and not self._ended and not lines[-1].endswith(b"\n"):  # a CR at the end may belong to CRLF
            self._rest = lines.pop()
        for line in lines:
            self._add(line, len(line))
        if len(self._rest) > MAX_RECORD:
            self._skip()
        self._lines.reverse()

    def _add(self, text: bytes | None, size: int) -> None:
        self._lines.append(Line(text, self._offset, self._offset + size))
        self._offset += size

    def _skip(self) -> None:
        """Skip the rest of a line that is too long."""
        size = len(self._rest)
        self._rest = b""
        for text in self._texts:
            line = text.splitlines(keepends=True)[0]
            size += len(line)
            if line.endswith((b"\n", b"\r")):
                self._rest = text[len(line) :]
                break
        self._add(None, size)
