"""Detect when a request has arrived completely, without parsing it."""

import re

MAX_HEAD = 64 << 10  # bytes
MAX_BODY = 64 << 10  # bytes; the application answers 413 to a larger one
MAX_BULK_BODY = 2 << 20  # bytes, of bulk requests
_MAX_LINE = 8190  # bytes of the request line, gunicorn's maximum
_BULK = re.compile(rb"(?:POST|PUT) /api/(?:urls/bulk(?:/delete)?|qr/bulk)/?[? ]")
_FIELDS = re.compile(rb"\r\n(content-length|transfer-encoding|expect)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect:[^\r\n]*", re.IGNORECASE)


class Incoming:
    """The bytes of one request.

    Passing them on late is harmless. Passing them on early makes a thread wait for the rest.
    """

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.body = 0  # index of the body; 0 until the headers are complete
        self.partial = False  # passed on without the rest, because gunicorn or the application will refuse it
        self.expects_continue = False
        self._max_body = MAX_BODY
        self._length: int | None = 0  # of the body, or None if it is chunked
        self._next = 0  # index from which to look for the end of the headers, or for the next chunk
        self._decoded = 0  # bytes of the chunks before that index

    def is_complete(self) -> bool:
        if not self.body:
            end = self.data.find(b"\r\n\r\n", self._next)
            if end < 0:
                self._next = max(0, len(self.data) - 3)
                return False
            self._read_head(end)
        if self.partial:
            return True
        if self._length is None:
            return self._has_all_chunks()
        return len(self.data) >= self.body + self._length

    def excess(self) -> tuple[int, str] | None:
        """Return the status and reason phrase for an incomplete request that is already too large."""
        if self.body:
            too_large = len(self.data) - self.body > 2 * self._max_body  # with the framing of chunks
            return (413, "Content Too Large") if too_large else None
        if b"\n" not in self.data[: _MAX_LINE + 2] and len(self.data) > _MAX_LINE + 1:
            return 414, "URI Too Long"
        return (431, "Request Header Fields Too Large") if len(self.data) > MAX_HEAD else None

    def _read_head(self, end: int) -> None:
        self.body = self._next = end + 4
        if _BULK.match(self.data):
            self._max_body = MAX_BULK_BODY
        fields = [(name.lower(), value.strip().lower()) for name, value in _FIELDS.findall(self.data, 0, end)]
        if not fields:
            return
        lengths = [value for name, value in fields if name == b"content-length"]
        codings = [value for name, value in fields if name == b"transfer-encoding"]
        if codings:
            self._length = None
            self.partial = bool(lengths) or not any(b"chunked" in coding for coding in codings)
        elif lengths:
            digits = lengths[0].lstrip(b"0") or b"0"
            self.partial = len(lengths) > 1 or not digits.isdigit() or len(digits) > len(str(self._max_body))
            self._length = 0 if self.partial else int(digits)
            self.partial |= self._length > self._max_body
        if (b"expect", b"100-continue") in fields and b" HTTP/1.1\r\n" in self.data[:end]:
            self._remove_expectation(end)

    def _remove_expectation(self, end: int) -> None:
        """Remove the header. gunicorn would send 100 Continue only after a thread gets the request."""
        head = _EXPECT.sub(b"", self.data[:end])
        self.data[:end] = head
        self.body = self._next = len(head) + 4
        self.expects_continue = True

    def _has_all_chunks(self) -> bool:
        """Advance over the chunks that have arrived. gunicorn refuses malformed ones."""
        while (end := self.data.find(b"\r\n", self._next)) >= 0:
            try:
                size = int(self.data[self._next : end].partition(b";")[0], 16)
            except ValueError:
                self.partial = True
                return True
            start = end + 2
            if size <= 0:
                return self.data.startswith(b"\r\n", start) or self.data.find(b"\r\n\r\n", start) >= 0
            if self._decoded + min(size, len(self.data) - start) > self._max_body:
                self.partial = True
                return True
            if len(self.data) < start + size + 2:
                return False
            if not self.data.startswith(b"\r\n", start + size):
                self.partial = True
                return True
            self._decoded += size
            self._next = start + size + 2
        return False
