"""Streaming replica for reads that may lag: lists, and records with their statistics.

The replica never makes a request fail. If it times out, fails or returns no rows, the primary
executes the statement, and after a failure the replica is not used for some seconds. It is used
while its last replayed commit is recent by the clock of the primary. A regular commit on the
primary guarantees that there is something to replay.

Server-side timeouts do not help if the server or the network hangs. The connections are therefore
asynchronous, and this module waits with a timeout.

Without the primary, visitors are served from it (lookups.py). Then it is enough that it has
replayed what it received.
"""

import select
import time
from typing import Any

import psycopg2
from flask import current_app
from psycopg2 import extensions

from linkmgr.core.database.deadlines import TimedOut
from linkmgr.core.database.statements import UNSYNCED, Database, Row, database, register_types
from linkmgr.core.settings import settings

TIMEOUT_SECONDS = 1.0  # to connect, and to execute a statement
MAX_LAG_SECONDS = 5
MAX_LAG_BYTES = 1 << 20  # between what is received and what is replayed
CHECK_SECONDS = 1
PAUSE_SECONDS = 5
_COMMIT = """
    SELECT extract(epoch FROM clock_timestamp())::float8 AS now,
           pg_logical_emit_message(true, 'linkmgr', '')
"""
_REPLAYED = """
    SELECT extract(epoch FROM pg_last_xact_replay_timestamp())::float8 AS until,
           pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::float8 AS waiting
"""


def _wait(connection: extensions.connection) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while (state := connection.poll()) != extensions.POLL_OK:
        poll = select.poll()
        poll.register(connection, select.POLLIN if state == extensions.POLL_READ else select.POLLOUT)
        if not poll.poll(max(0, end - time.monotonic()) * 1000):
            raise TimedOut


class _Cursor(extensions.cursor):
    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - psycopg2's name
        super().execute(query, vars)
        _wait(self.connection)


class Replica(Database):
    def __init__(self, dsn: str, primary: Database) -> None:
        super().__init__(dsn, primary.prepare)
        self.primary = primary
        self._is_usable = False
        self._lag: float | None = None
        self._next_check = self._paused_until = 0.0

    def connect(self) -> extensions.connection:
        connection = psycopg2.connect(self.dsn, async_=True, cursor_factory=_Cursor, **self.options)
        _wait(connection)
        return register_types(connection)

    def read(self, sql: str, params: Row) -> list[Row]:
        return self._read(sql, params) or self.primary.read(sql, params)

    def read_alone(self, sql: str, params: Row) -> list[Row]:
        """Read without the primary. Return no rows if the replica lags or fails."""
        try:
            if time.monotonic() >= self._paused_until:
                [replayed] = self._execute_once(_REPLAYED, {}, "")
                if (replayed["waiting"] or 0) < MAX_LAG_BYTES:
                    return self._execute_once(sql, params, "")
        except psycopg2.Error as error:
            self._pause(error)
        return []

    def _read(self, sql: str, params: Row) -> list[Row]:
        try:
            if time.monotonic() >= self._next_check:
                self._check_lag()
            return self._execute_once(sql, params, "") if self._is_usable else []
        except psycopg2.Error as error:
            self._pause(error)
            return []

    def _check_lag(self) -> None:
        self._next_check = time.monotonic() + CHECK_SECONDS
        self._is_usable = False
        try:
            [committed] = self.primary.execute(_COMMIT, {}, idempotent=True, prelude=UNSYNCED)
        except psycopg2.Error:  # says nothing of the replica
            return
        [replayed] = self._execute_once(_REPLAYED, {}, "")
        # A promoted replica has no replayed commit, or one that no longer advances.
        self._lag = None if replayed["until"] is None else max(0.0, committed["now"] - replayed["until"])
        self._is_usable = self._lag is not None and self._lag < MAX_LAG_SECONDS

    def state(self) -> Row:
        self._read("SELECT 1", {})
        return {"replica_in_use": self._is_usable, "replica_lag_seconds": self._lag}

    def _pause(self, error: psycopg2.Error) -> None:
        self.close_idle()
        self._is_usable, self._lag = False, None
        self._next_check = self._paused_until = time.monotonic() + PAUSE_SECONDS
        current_app.logger.warning(
            "replica unavailable, not used for %s seconds: %s", PAUSE_SECONDS, type(error).__name__
        )


def init_app() -> None:
    if settings().replica_url:
        database().reader = Replica(settings().replica_url, database())
