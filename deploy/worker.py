"""A gunicorn worker that slow clients cannot block.

Its threads share one epoll. Each connection is a generator that yields the event to wait for, and the thread that gets
the event continues it: it reads what has arrived, and serves the request once that is complete. A thread waits for a
client only while it reads a large upload or writes a large export. gunicorn parses requests and formats responses.
"""

import os
import resource
import select
import socket
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from gunicorn.http import errors, get_parser, wsgi
from gunicorn.workers import base

SECONDS = 10  # timeout of a request from its first byte, and of the first byte of a new connection
_SEND_SECONDS = 60  # timeout of a client that reads a response
_CLOSE_SECONDS = 2  # to discard the rest of a refused request, and to close idle connections when the worker stops
_OVERLAP_SECONDS = 0.3  # longer than a new worker takes to listen
_CHECK_SECONDS = 0.5  # between two checks of the deadlines
_MAX_HEAD = 64 << 10  # bytes
_MAX_UNSENT = 8 << 20  # bytes of a response to buffer, more than the longest list; beyond that the thread waits
_MIN_RATE = 20 << 10  # bytes per second that a client must read while a thread waits for it
_MAX_HELD = 32 << 20  # bytes of all waiting connections; beyond that the one that has waited longest is closed
_BLOCK = 64 << 10
_STATUSES = {
    errors.LimitRequestLine: 414, errors.LimitRequestHeaders: 431, errors.NoMoreData: 431, OverflowError: 413,
    errors.ExpectationFailed: 417, errors.UnsupportedTransferCoding: 501, TimeoutError: 408, EOFError: 400,
}  # fmt: skip
_Steps = Generator[int]


class Connection:
    """A client. gunicorn uses it as a socket: it reads from `received` and writes to `unsent`."""

    event = 0  # that it waits for
    head = held = 0  # bytes of a parsed head; bytes in memory while it waits
    is_partial = False  # the application reads or refuses the rest of the body

    def __init__(self, worker: "Worker", listener: Any) -> None:
        self.sock, self.address = listener.accept()
        self.sock.setblocking(False)
        self.fd, self.server = self.sock.fileno(), listener.getsockname()
        self.received, self.unsent = bytearray(), bytearray()
        self.steps = worker.converse(self)
        self.limit(SECONDS)

    def limit(self, seconds: float) -> None:
        self.since = time.monotonic()
        self.deadline = self.since + seconds

    def read(self) -> _Steps:
        data = None
        while data is None:
            yield select.EPOLLIN
            with suppress(BlockingIOError):  # the event was that of a closed connection with the same number
                data = self.sock.recv(_BLOCK)
        if not data:
            raise EOFError("the client stopped sending")
        self.received += data

    def read_head(self) -> _Steps:
        start = 0
        while self.received.find(b"\r\n\r\n", start) < 0 and (start := len(self.received)) <= _MAX_HEAD:
            yield from self.read()
            if start == 0:
                self.limit(SECONDS)
            start = max(0, start - 3)

    def read_body(self, headers: dict[str, str], limit: int) -> _Steps:
        """Read until the body is complete, larger than `limit`, or malformed: gunicorn refuses it then."""
        length = int(headers.get("CONTENT-LENGTH", 0))
        self.is_partial = length > limit
        while len(self.received) < length <= limit:
            yield from self.read()
        chunk, rest = 0, limit  # index of a chunk; bytes that this chunk and the next ones may have
        while "TRANSFER-ENCODING" in headers:
            if (end := self.received.find(b"\r\n", chunk)) >= 0:
                try:
                    size = int(self.received[chunk:end].partition(b";")[0], 16)
                except ValueError:
                    return
                self.is_partial = min(size, len(self.received) - end - 2) > rest
                if self.is_partial or (size <= 0 and self.received.find(b"\r\n\r\n", end) >= 0):
                    return
                if 0 < size <= len(self.received) - end - 4:
                    chunk, rest = end + size + 4, rest - size
                    continue
            if len(self.received) > 2 * limit:
                raise OverflowError("the framing of the chunks is too large")
            yield from self.read()

    def recv(self, size: int) -> bytes:
        if self.is_partial and not self.received:
            self.sock.settimeout(SECONDS)
            self.received += self.sock.recv(size)
            self.sock.setblocking(False)
        data = bytes(self.received[:size])
        del self.received[:size]
        return data

    def sendall(self, data: bytes) -> None:
        self.unsent += data
        if len(self.unsent) > _BLOCK:
            self.flush()
        if len(self.unsent) > _MAX_UNSENT:
            self.sock.settimeout(SECONDS + len(self.unsent) / _MIN_RATE)
            self.sock.sendall(self.unsent)
            self.sock.setblocking(False)
            self.unsent.clear()

    send = sendall

    def flush(self) -> None:
        """Send as much as the kernel accepts."""
        with suppress(BlockingIOError):
            while self.unsent:
                del self.unsent[: self.sock.send(self.unsent)]

    def is_late(self) -> bool:
        """Return True after the deadline, unless bytes have arrived that no thread had time to read."""
        if time.monotonic() < self.deadline:
            return False
        with suppress(OSError):
            return not (self.event == select.EPOLLIN and self.sock.recv(1, socket.MSG_PEEK))
        return True


class Worker(base.Worker):  # type: ignore[misc]
    alive: bool

    def run(self) -> None:
        # Imported here, because the master would keep the old code on reload.
        from linkmgr.web import middleware, request  # noqa: PLC0415

        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # 1024 may be too few
        self.malformed, self.body_limit = middleware.malformed, request.body_limit
        self.epoll, self.lock, self.held = select.epoll(), threading.Lock(), 0
        self.connections: dict[int, Connection] = {}
        self.waiting: dict[Connection, bool] = {}  # those in it are armed; the thread that removes one owns it
        self.listeners = {listener.fileno(): listener for listener in self.sockets}
        for fd, listener in self.listeners.items():
            listener.setblocking(False)
            self.epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        for _ in range(self.cfg.threads):
            threading.Thread(target=self._work, daemon=True).start()
        while self.alive and self.ppid == os.getppid():
            self._check(_CHECK_SECONDS)
        self.alive = False
        time.sleep(_OVERLAP_SECONDS)  # with `reuse_port`, connections arrive as long as this worker listens
        while self.listeners:
            _, listener = self.listeners.popitem()
            self._accept(listener)
            listener.close()
        now = time.monotonic()
        while self.connections and time.monotonic() < now + self.cfg.graceful_timeout:
            for idle in [connection for connection in list(self.waiting) if not connection.held]:
                idle.deadline = min(idle.deadline, now + _CLOSE_SECONDS)
            self._check(_CHECK_SECONDS / 10)

    def _check(self, seconds: float) -> None:
        """Close the connections whose deadline has passed."""
        time.sleep(seconds)
        self.notify()
        for connection in list(self.waiting):
            if connection.is_late():
                self._continue(connection, TimeoutError("timeout"))

    def _work(self) -> None:
        while True:
            try:
                [(fd, _)] = self.epoll.poll(maxevents=1)
                if listener := self.listeners.get(fd):
                    self._accept(listener)
                elif connection := self.connections.get(fd):
                    self._continue(connection)
            except Exception:
                self.log.exception("Error in a thread")

    def _accept(self, listener: Any) -> None:
        try:
            while connection := Connection(self, listener):
                self.connections[connection.fd] = connection
                self.epoll.register(connection.fd, select.EPOLLONESHOT)
                self._advance(connection)
        except BlockingIOError:
            pass
        except OSError:  # such as too many open files
            time.sleep(_CHECK_SECONDS)
        finally:
            with suppress(OSError, ValueError):  # the worker is stopping
                self.epoll.modify(listener.fileno(), select.EPOLLIN | select.EPOLLONESHOT)

    def _continue(self, connection: Connection, error: Exception | None = None) -> None:
        """Let a connection that waits advance, unless another thread does."""
        with self.lock:
            is_waiting = self.waiting.pop(connection, False)
        if is_waiting:
            self._advance(connection, error)

    def _advance(self, connection: Connection, error: Exception | None = None) -> None:
        """Let a connection advance to its next event, or to its end."""
        event = size = 0
        try:
            event = connection.steps.throw(error) if error else next(connection.steps)
            size = connection.head + len(connection.received) + len(connection.unsent)
        except (StopIteration, EOFError, OSError):  # the client has disconnected
            pass
        except Exception:
            self.log.exception("Error on a connection")
        with self.lock:
            self.held += size - connection.held
            connection.held, connection.event = size, event
            if event:
                self.waiting[connection] = True
                self.epoll.modify(connection.fd, event | select.EPOLLONESHOT)
        if event:
            self._make_room()
        else:
            del self.connections[connection.fd]
            connection.sock.close()

    def _make_room(self) -> None:
        """Close the connections that have waited longest, while there are too many or their buffers are too large."""
        while (full := self.held > _MAX_HELD) or len(self.connections) > self.cfg.worker_connections:
            candidates = [connection for connection in list(self.waiting) if connection.held or not full]
            if not candidates:
                return
            longest = min(candidates, key=lambda connection: connection.since)
            self._continue(longest, TimeoutError("timeout"))

    def converse(self, connection: Connection) -> _Steps:
        """Serve the requests of a connection, one after the other."""
        parser, keep = get_parser(self.cfg, connection, connection.address), True
        try:
            while keep:
                yield from connection.read_head()
                connection.head, connection.is_partial = len(connection.received), False
                request = next(parser)
                connection.received[:0] = parser.unreader.take_buffered()
                connection.head -= len(connection.received)
                response, environ = wsgi.create(request, connection, connection.address, connection.server, self.cfg)
                connection.flush()  # 100 Continue
                yield from connection.read_body(dict(request.headers), self.body_limit(environ["PATH_INFO"])[0])
                keep = self._serve(connection, parser, response, environ)
                connection.limit(_SEND_SECONDS)
                while connection.unsent:
                    yield select.EPOLLOUT
                    connection.flush()
                connection.received[:0] = parser.unreader.take_buffered()
                connection.head = 0
                connection.limit(SECONDS if connection.received else self.cfg.keepalive)
                if connection.received and keep:
                    yield select.EPOLLOUT  # the requests of others come first
        except (errors.ParseException, *_STATUSES) as error:
            if connection.unsent or not (connection.received or connection.head):
                return
            if isinstance(error, errors.ParseException):
                self.log.warning("Invalid request from ip=%s: %s", connection.address and connection.address[0], error)
            self._refuse(connection, _STATUSES.get(type(error), 400))
            if isinstance(error, TimeoutError):
                return
            connection.is_partial = True
        if connection.is_partial or connection.received:  # the client would lose the response if closed now
            connection.received.clear()
            connection.sock.shutdown(socket.SHUT_WR)
            connection.limit(_CLOSE_SECONDS)
            while time.monotonic() < connection.deadline:
                yield from connection.read()
                connection.received.clear()

    def _serve(self, connection: Connection, parser: Any, response: Any, environ: dict[str, Any]) -> bool:
        """Return True if the connection stays open."""
        started = datetime.now()
        environ |= {"gunicorn.socket": connection.sock, "wsgi.multithread": True}
        self.nr += 1
        if self.nr >= self.max_requests:
            self.alive = False
        if connection.is_partial or not (self.alive and self.cfg.keepalive):
            response.force_close()
        try:
            body = self.wsgi(environ, response.start_response)
            try:
                for part in body:
                    response.write(part)
                response.close()
                connection.flush()
            finally:
                getattr(body, "close", bool)()
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            self.log.exception("Error on a connection")
            if not response.headers_sent:
                self._refuse(connection, 500)
            return False
        finally:
            self.log.access(response, parser.mesg, environ, datetime.now() - started)
        with suppress(errors.ParseException, OSError):  # nothing read the body, and it is malformed
            return not response.should_close() and parser.finish_body()
        return False

    def _refuse(self, connection: Connection, status: int) -> None:
        data, environ = self.malformed(status)
        connection.sendall(data)
        connection.flush()
        self.log.access(SimpleNamespace(status_code=status), None, environ, timedelta())
