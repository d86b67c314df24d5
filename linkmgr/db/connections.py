"""Connections that wait for their server no longer than a deadline.

A server that hangs reports no timeout, and its kernel acknowledges what libpq's `keepalives` and `tcp_user_timeout`
watch. The connections are therefore asynchronous, and this module waits with a timeout.
"""

import select
import time
from typing import Any

import psycopg2
from psycopg2 import extensions

from linkmgr.db import session

CONNECT_SECONDS = 2.0  # for one host


class TimedOut(psycopg2.OperationalError):
    """The server did not respond. It may have executed the statement."""


class ConnectTimedOut(TimedOut):
    pass


class Connection(extensions.connection):
    seconds: float | None = CONNECT_SECONDS  # of each wait, or None for no deadline

    def wait(self) -> None:
        end = None if self.seconds is None else time.monotonic() + self.seconds
        while (state := self.poll()) != extensions.POLL_OK:
            poll = select.poll()
            poll.register(self, select.POLLIN if state == extensions.POLL_READ else select.POLLOUT)
            if not poll.poll(None if end is None else max(0, end - time.monotonic()) * 1000):
                raise TimedOut


class Cursor(extensions.cursor):
    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - psycopg2's name
        super().execute(query, vars)
        self.connection.wait()  # type: ignore[attr-defined]


def hosts(dsn: str) -> list[dict[str, str]]:
    """Return the parameters of each host of a DSN. libpq connects to the next host only if one refuses, unless it is
    blocking."""
    parameters = extensions.parse_dsn(dsn)
    lists = {name: parameters[name].split(",") for name in ("host", "hostaddr", "port") if name in parameters}
    number = max(map(len, lists.values()), default=1)
    return [{name: values[host % len(values)] for name, values in lists.items()} for host in range(number)]


def connect(dsn: str, host: dict[str, str], seconds: float, options: dict[str, Any]) -> Connection:
    connection: Connection = psycopg2.connect(
        dsn, async_=True, connection_factory=Connection, cursor_factory=Cursor, **(options | host)
    )
    connection.seconds = seconds
    try:
        connection.wait()
    except TimedOut:
        connection.close()
        raise ConnectTimedOut from None
    session.register_types(connection)
    return connection
