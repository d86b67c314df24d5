"""Deadlines of statements, and servers that do not meet them.

A server that hangs reports no timeout, and its kernel acknowledges what libpq's `keepalives` and
`tcp_user_timeout` watch. A thread therefore shuts the socket of a connection whose statement is
past its deadline. Asynchronous connections, which can wait with a timeout, cost a redirect about 7
% more processor time.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg2
from flask import Flask
from psycopg2.extensions import connection as Connection

from linkmgr.core.settings import this_app

_CHECK_SECONDS = 0.1
_RECONNECT_SECONDS = 0.2  # between two attempts
_SLOW_SECONDS = 1.5  # to fail to connect; a server that is stopped refuses at once
_running: dict[Connection, float] = {}  # deadlines by time.monotonic()
_shutting, _starting = threading.Lock(), threading.Lock()
_thread = threading.Thread()


class TimedOut(psycopg2.OperationalError):
    """The server did not respond. It may have executed the statement."""


class Deadline:
    """The deadline of the block, which executes statements on the connection."""

    __slots__ = ("connection", "seconds")

    def __init__(self, connection: Connection, seconds: float) -> None:
        self.connection, self.seconds = connection, seconds

    def __enter__(self) -> None:
        _running[self.connection] = time.monotonic() + self.seconds

    def __exit__(self, _type: Any, error: BaseException | None, _traceback: Any) -> None:
        if _running.pop(self.connection, None) is None:
            with _shutting:  # another connection may get the file descriptor when this one is closed
                pass
            if isinstance(error, psycopg2.Error):
                raise TimedOut from error


def start() -> None:
    """Start the thread, unless this process has it. A thread does not survive a fork."""
    global _thread  # noqa: PLW0603 - one thread for all databases
    with _starting:
        if not _thread.is_alive():
            _thread = threading.Thread(target=_check, daemon=True)
            _thread.start()


def _check() -> None:
    while True:
        time.sleep(_CHECK_SECONDS)
        now = time.monotonic()
        for connection, deadline in list(_running.items()):
            if deadline < now:
                with _shutting, suppress(OSError, psycopg2.Error):
                    if _running.pop(connection, None):
                        with socket.fromfd(
                            connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM
                        ) as duplicate:
                            duplicate.shutdown(socket.SHUT_RDWR)


class Server:
    """The state of a server. `reconnect` makes a connection, or raises the error of psycopg2."""

    is_suspect = False  # a statement has timed out, and since then no new connection has been made
    is_hung = False  # nor refused

    def __init__(self, reconnect: Callable[[], None]) -> None:
        self._reconnect, self._recovering = reconnect, threading.Lock()

    @contextmanager
    def connecting(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        except psycopg2.Error:
            self.is_hung = time.monotonic() - started > _SLOW_SECONDS
            if self.is_hung:
                self.suspect()
            raise

    def suspect(self) -> None:
        """Connect in a thread until that works."""
        with self._recovering:
            if not self.is_suspect:
                self.is_suspect = True
                threading.Thread(target=self._recover, args=(this_app(),), daemon=True).start()

    def _recover(self, app: Flask) -> None:
        with app.app_context():
            while self.is_suspect:
                try:
                    self._reconnect()
                    self.is_suspect = self.is_hung = False
                except psycopg2.Error:
                    time.sleep(_RECONNECT_SECONDS)
