"""A gunicorn worker that slow clients cannot block.

Its threads share one epoll. Each connection is a generator that yields the event to wait for. The
thread that gets the event owns the connection until it waits again: it reads what has arrived, and
serves the request once that is complete. A thread waits for a client only while it reads a large
upload or writes a large export. gunicorn parses heads and formats responses.
"""

import errno
import os
import resource
import select
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from gunicorn.http import Request, errors, wsgi
from gunicorn.http.unreader import IterUnreader
from gunicorn.workers import base

from deploy import queues
from deploy.connection import BLOCK, SECONDS, Connection, Steps

_SEND_SECONDS = 60  # timeout of a client that reads a response
_CLOSE_SECONDS = (
    2  # to discard the rest of a refused request, and to close idle connections when the worker stops
)
_CHECK_SECONDS = 0.5  # between two checks of the deadlines
_HELP_SECONDS = 0.05  # that all threads run requests before the additional ones help
# Bytes of all waiting connections; beyond that the one that has waited longest is closed
_MAX_HELD = 32 << 20
_STATUSES = {
    errors.LimitRequestLine: 414, errors.LimitRequestHeaders: 431, errors.NoMoreData: 431, OverflowError: 413,
    errors.ExpectationFailed: 417, errors.UnsupportedTransferCoding: 501, errors.ParseException: 400,
    TimeoutError: 408, EOFError: 400, queues.Overdue: 503,
}  # fmt: skip


class Worker(base.Worker):  # type: ignore[misc]
    alive: bool
    idle_until = float("inf")  # by the monotonic clock: a stopping worker then closes idle connections

    def run(self) -> None:
        # Imported here, because the master would keep the old code on reload.
        from linkmgr.core.fields import aliases  # noqa: PLC0415
        from linkmgr.core.web import middleware, operation, request  # noqa: PLC0415

        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # 1024 may be too few
        self.malformed, self.max_body, self.epoll = middleware.malformed, request.MAX_BODY, select.epoll()
        # The rest are files of the application
        self.max_connections = min(self.cfg.worker_connections, limit // 2)
        self.connections: dict[int, Connection] = {}
        self.waiting: dict[Connection, int] = {}  # by event; the thread that removes one owns it
        self.line = queues.Line()
        self.epoll.register(self.line, select.EPOLLIN)
        self.listeners = {listener.fileno(): listener for listener in self.sockets}
        self.accepting = threading.Lock()
        for fd, listener in self.listeners.items():
            listener.setblocking(False)
            self.epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        self.queues = queues.Queues(self.cfg.threads)
        is_service = isinstance(self.wsgi, request.Service)
        self.pages = aliases.reserved_words(self.wsgi.url_map) if is_service else frozenset()
        self.body_limits = operation.body_limits(self.wsgi) if is_service else {}
        for target in [self._work] * self.cfg.threads + [self._help] * queues.HEALTH:
            threading.Thread(target=target, daemon=True).start()
        while self.alive and self.ppid == os.getppid():
            self._check(_CHECK_SECONDS)
        self.alive = False
        with self.accepting:  # a thread that has accepted a connection is about to register it
            while self.listeners:
                fd, listener = self.listeners.popitem()
                self.epoll.unregister(fd)  # closing does not suffice, because the launcher keeps it open
                self._accept(listener)
                listener.close()
        self.idle_until = time.monotonic() + _CLOSE_SECONDS
        end = time.monotonic() + self.cfg.graceful_timeout
        while self.connections and time.monotonic() < end:
            self._check(_CHECK_SECONDS / 10)

    def _check(self, seconds: float) -> None:
        time.sleep(seconds)
        self.notify()
        self._expire()

    def _work(self) -> None:
        while True:
            self.queues.free_at = time.monotonic()
            self._step()

    def _help(self) -> None:
        """Work while all other threads wait. At other times one more thread only takes the
        interpreter from them."""
        while True:
            time.sleep(_HELP_SECONDS)
            while self.queues.are_all_busy(_HELP_SECONDS):
                self._step(_HELP_SECONDS)

    def _step(self, seconds: float | None = None) -> None:
        try:
            if connection := self.queues.start() or self._next(seconds):
                before = connection.held
                self._advance(connection)
                if connection.held // BLOCK > before // BLOCK:  # not for each byte
                    self._expire()
        except Exception:
            self.log.exception("Error in a thread")

    def _next(self, seconds: float | None) -> Connection | None:
        """Wait for an event. Return its connection, unless another thread has it."""
        for fd, _ in self.epoll.poll(seconds, maxevents=1):
            if fd in self.listeners:
                with self.accepting:
                    if listener := self.listeners.get(fd):  # the worker has not stopped meanwhile
                        self._accept(listener)
                return None
            connection = self.line.take() if fd == self.line.fileno() else self.connections.get(fd)
            return connection if connection and self.waiting.pop(connection, 0) else None
        return None

    def _accept(self, listener: Any) -> None:
        try:
            while connection := Connection(self.converse, listener):
                self.waiting[connection] = event = next(connection.steps)
                self.connections[connection.fileno()] = connection
                self.epoll.register(connection, event | select.EPOLLONESHOT)
                if len(self.connections) > self.max_connections:
                    self._expire()
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._expire(1):
                time.sleep(_CHECK_SECONDS / 10)
        finally:
            with suppress(OSError, ValueError):  # the worker is stopping
                self.epoll.modify(listener.fileno(), select.EPOLLIN | select.EPOLLONESHOT)

    def _advance(self, connection: Connection) -> None:
        event = 0
        try:
            event = next(connection.steps, 0)
        except Exception:
            self.log.exception("Error on a connection")
        connection.held = sum(map(len, connection.buffers))
        if not event:
            self._close(connection)
        elif event == queues.WAIT:
            self.queues.add(connection)
        else:
            self.waiting[connection] = event
            if event == queues.LINE:
                self.line.add(connection)
            else:
                with suppress(OSError, ValueError):  # it has expired in this moment
                    self.epoll.modify(connection, event | select.EPOLLONESHOT)

    def _close(self, connection: Connection) -> None:
        del self.connections[connection.fileno()]
        connection.close()

    def _expire(self, number: int = 0) -> bool:
        """Expire the connections past their deadline, the idle ones after `idle_until`, a number of
        those that have waited longest, and more while there are too many or their buffers are too
        large. Return True if one expires."""
        now, has_expired = time.monotonic(), False
        connections = list(self.connections.values())
        in_use = sum(not connection.is_closing for connection in connections)
        number = max(number, in_use - self.max_connections)
        size = sum(connection.held for connection in connections) - _MAX_HELD
        if number > 0 or size > 0:
            # Connections that are closing come first. Small requests are not closed for the bytes
            # of slow readers.
            connections.sort(key=lambda one: (not one.is_closing, size > 0 and one.held < BLOCK, one.since))
        for connection in connections:
            is_idle = not (connection.held or connection.is_closing)
            is_late = connection.deadline <= now or (self.idle_until <= now and is_idle)
            if (is_late or number > 0 or (size > 0 and connection.held)) and self._take(connection):
                number, size, has_expired = number - 1, size - connection.held, True
                if not (is_idle and connection.held):  # a request has begun meanwhile
                    connection.deadline = now
                self._advance(connection)
                self.line.wake()  # a thread for its request, if it has just become complete
        return has_expired

    def _take(self, connection: Connection) -> bool:
        """Return False if a thread has it."""
        if self.queues.remove(connection):
            connection.is_overdue = True
            return True
        return self.waiting.pop(connection, 0) != 0

    def converse(self, connection: Connection) -> Steps:
        """Serve one request after the other. What a request holds is freed before its response is
        sent."""
        with suppress(EOFError, OSError):  # the client has disconnected
            keep = True
            while keep and (connection.received or (yield from connection.begins())):
                connection.limit(SECONDS)
                keep = yield from self._serve(connection)
                connection.head.clear()
                connection.body.clear()
                connection.limit(_SEND_SECONDS)
                while connection.flush():
                    yield from connection.until(select.EPOLLOUT)
                connection.limit(self.cfg.keepalive)
                if connection.received and keep:
                    yield queues.LINE  # the requests of others come first
                    keep = time.monotonic() < connection.deadline
            # The client may send more than was read. It would lose the response if the connection
            # were closed now.
            if keep or connection.is_partial or connection.received:
                yield from connection.linger(_CLOSE_SECONDS)

    def _serve(self, connection: Connection) -> Generator[int, None, bool]:
        response: Any = None
        try:
            yield from connection.receive_head()
            request = Request(self.cfg, IterUnreader([bytes(connection.head)]), connection.address)
            response, environ = wsgi.create(
                request, connection, connection.address, connection.server, self.cfg
            )
            limit = self.body_limits.get(environ["PATH_INFO"].rstrip("/"), self.max_body)
            yield from connection.receive_body(request, environ, limit)
            environ["wsgi.input"] = connection
            if not connection.is_partial and environ.pop("HTTP_TRANSFER_ENCODING", None):
                environ["CONTENT_LENGTH"] = str(len(connection.body))
            connection.additional = queues.additional(environ, self.pages)
            seconds = connection.deadline - time.monotonic()
            connection.limit(_SEND_SECONDS)
            yield queues.WAIT
            if connection.is_overdue:
                raise queues.Overdue
            connection.limit(seconds)
            try:
                self._respond(connection, request, response, environ)
            finally:
                self.queues.end(connection)
            # No request may begin behind a bad body
            return not (response.should_close() or connection.is_partial)
        except (ConnectionError, BlockingIOError):  # the client has disconnected, or lets `100 Continue` wait
            raise
        except Exception as error:
            status = next((_STATUSES[cause] for cause in type(error).__mro__ if cause in _STATUSES), None)
            if status is None:
                self.log.exception("Error on a connection")
            elif isinstance(error, errors.ParseException):
                self.log.warning(
                    "Invalid request from ip=%s: %s", connection.address and connection.address[0], error
                )
            if not (response and response.headers_sent):
                data, environ = self.malformed(status or 500)
                connection.sendall(data)
                self.log.access(SimpleNamespace(status_code=status or 500), None, environ, timedelta())
            connection.received.clear()
            connection.is_partial = True
            return False

    def _respond(
        self, connection: Connection, request: Request, response: Any, environ: dict[str, Any]
    ) -> None:
        started = datetime.now()
        environ["wsgi.multithread"] = True
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
        finally:
            self.log.access(response, request, environ, datetime.now() - started)
