"""Bodies of requests without their framing. Each byte that has arrived is read once, and the
framing is bounded by the payload, so that a body in chunks costs about as much as one with a
length.

Both functions move bytes from `received` to `body`, and yield False whenever more must arrive."""

import re
from collections.abc import Callable, Generator
from typing import Any

from gunicorn.http import errors
from gunicorn.http.body import CHUNK_EXT_RE

_MAX_FRAMING = 16 << 10  # bytes of sizes, extensions and trailers
_PAYLOAD = 64  # bytes of a chunk that allow one more byte of framing
_MAX_ALLOWED = 64 << 10  # bytes of framing that are still allowed, however large the payload is
_SIZE = re.compile(rb"\r\n([0-9A-Fa-f]{1,20})(;.*)?", re.DOTALL)


def take(received: bytearray, body: bytearray, size: int) -> Generator[bool]:
    while size:
        body += (part := received[:size])
        del received[:size]
        if size := size - len(part):
            yield False


def take_chunks(received: bytearray, body: bytearray, parse_trailers: Callable[..., Any]) -> Generator[bool]:
    received[:0] = b"\r\n"  # so that each size is between two line breaks
    size, allowed = -1, _MAX_FRAMING
    while size:
        end = yield from _find(received, b"\r\n", 2, allowed)
        line = _SIZE.fullmatch(received, 0, end)
        if not line or (line[2] and not CHUNK_EXT_RE.fullmatch(line[2])):
            raise errors.InvalidChunkSize(received[:end])
        size = int(line[1], 16)
        allowed = min(allowed + size // _PAYLOAD - end - 2, _MAX_ALLOWED)
        del received[: end + 2 if size else end]
        yield from take(received, body, size)
    if end := (yield from _find(received, b"\r\n\r\n", 0, allowed)):
        parse_trailers(bytes(received[2:end]), from_trailer=True)
    del received[: end + 4]


def _find(received: bytearray, end: bytes, start: int, most: int) -> Generator[bool, None, int]:
    while (index := received.find(end, start)) < 0 and len(received) <= most:
        start = max(start, len(received) - len(end) + 1)  # what has been searched is not searched again
        yield False
    if not 0 <= index <= most:
        raise OverflowError("the framing of the chunks is too large")
    return index
