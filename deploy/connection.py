"""Connections of a worker: what has arrived, what is to be sent, and until when."""

import select
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

from gunicorn.http import Request, errors

from deploy import framing

SECONDS = 10  # timeout of a request from its first byte, and of the first byte of a new connection
BLOCK = 64 << 10  # bytes
_MAX_HEAD = 64 << 10  # bytes
# Bytes of a response to buffer, more than the longest list; beyond that the thread waits
_MAX_UNSENT = 8 << 20
_MIN_RATE = 20 << 10  # bytes per second that a client must read while a thread waits for it
Steps = Generator[int]


class Connection(socket.socket):
    additional = 0  # threads that its request may use, or PASSWORDS (deploy/queues.py)
    held = 0  # bytes in memory while it waits
    is_partial = is_malformed = (
        False  # the application reads or refuses the rest of the body; it can only refuse it
    )
    is_overdue = False  # its request has waited too long for a thread
    is_closing = False  # its last response has been sent
    taking: Iterator[bool]  # of `body` from `received`

    def __init__(self, converse: Callable[["Connection"], Iterator[int]], listener: Any) -> None:
        accepted, self.address = listener.accept()
        super().__init__(fileno=accepted.detach())
        self.setblocking(False)
        self.server = listener.getsockname()
        self.head, self.received, self.body, self.unsent = self.buffers = tuple(bytearray() for _ in range(4))
        self.steps = converse(self)
        self.limit(SECONDS)

    def limit(self, seconds: float) -> None:
        self.since = time.monotonic()
        self.deadline = self.since + seconds

    def close(self) -> None:
        for buffer in self.buffers:
            buffer.clear()
        super().close()

    def until(self, event: int) -> Steps:
        if time.monotonic() >= self.deadline:
            raise TimeoutError
        yield event

    def receive(self) -> Steps:
        """Receive what has arrived by the deadline, or raise TimeoutError."""
        data = None
        while data is None:
            yield from self.until(select.EPOLLIN)
            data = self._arrived()
        if not data:
            raise EOFError
        self.received += data

    def _arrived(self) -> bytes | None:
        with suppress(BlockingIOError):
            return self.recv(BLOCK)
        return None

    def begins(self) -> Generator[int, None, bool]:
        """Return False if no request begins by the deadline."""
        with suppress(TimeoutError):
            yield from self.receive()
        return bool(self.received)

    def linger(self, seconds: float) -> Steps:
        """Discard what arrives. A client that sends to a closed connection loses the response."""
        self.is_closing = True
        self.shutdown(socket.SHUT_WR)
        self.limit(seconds)
        while time.monotonic() < self.deadline:
            self.received.clear()
            yield from self.receive()

    def receive_head(self) -> Steps:
        start = 0
        while (end := self.received.find(b"\r\n\r\n", start)) < 0 and len(self.received) <= _MAX_HEAD:
            start = max(0, len(self.received) - 3)
            yield from self.receive()
        size = end + 4 if end >= 0 else len(self.received)
        self.head += self.received[:size]
        del self.received[:size]

    def receive_body(self, request: Request, environ: dict[str, Any], limit: int) -> Steps:
        """Receive until the body is complete, larger than `limit`, or malformed: the application
        refuses it then."""
        size, coding = int(environ.get("CONTENT_LENGTH", 0)), environ.get("HTTP_TRANSFER_ENCODING", "")
        if coding.lower() not in ("", "chunked"):
            raise errors.UnsupportedTransferCoding(coding)
        chunks = framing.take_chunks(self.received, self.body, request.parse_headers)
        self.taking = chunks if coding else framing.take(self.received, self.body, size)
        while self.take() and max(size, len(self.body)) <= limit:
            yield from self.receive()

    def take(self) -> bool:
        """Return True if more of the body may arrive."""
        try:
            self.is_partial = not next(self.taking, True)
        except errors.ParseException:
            self.is_partial = self.is_malformed = True
        return self.is_partial and not self.is_malformed

    def read(self, size: int) -> bytes:
        while self.is_partial and len(self.body) < size:
            if self.is_malformed:
                raise errors.ParseException
            for event in self.receive():
                self.wait(event)
            self.take()
        data = bytes(self.body[:size])
        del self.body[:size]
        return data

    def sendall(self, data: bytes) -> None:  # type: ignore[override]
        self.unsent += data
        if len(self.unsent) > BLOCK:
            self.flush()
        if len(self.unsent) > _MAX_UNSENT:
            self.limit(SECONDS + len(self.unsent) / _MIN_RATE)
            while self.flush():
                self.wait(select.EPOLLOUT)

    def flush(self) -> bool:
        """Send what the client takes. Return True if there is more."""
        with suppress(BlockingIOError):
            while self.unsent:
                del self.unsent[: self.send(self.unsent)]
        return bool(self.unsent)

    def wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self, event)
        if not poll.poll(max(0.0, self.deadline - time.monotonic()) * 1000):
            raise TimeoutError
