"""A streaming replica, which answers the reads that may lag: lists, and records with their statistics.

It costs no request: whatever it cannot answer in time, and what it does not have, the primary is asked for, and after
a failure the replica rests.  It is asked while it has replayed what the primary committed a moment ago, by the clock of
the primary; a commit of ours sees to it that there is something to replay.

The server's timeouts are of no use where the server is frozen or the network is gone.  So its connections are
asynchronous ones, and the waiting is done here.
"""

import select
import threading
import time
from typing import Any

import psycopg2
from flask import Flask, current_app
from psycopg2 import extensions

from linkmgr.db.session import register_types
from linkmgr.db.statements import UNSYNCED, Database, Row
from linkmgr.settings import settings

PATIENCE_SECONDS = 1.0  # for a connection, and for a statement
MAX_LAG_SECONDS = 5
LOOK_SECONDS = 1
REST_SECONDS = 5
_COMMIT = """
    SELECT extract(epoch FROM clock_timestamp())::float8 AS now, pg_logical_emit_message(true, 'linkmgr', '')
"""
_REPLAYED = "SELECT extract(epoch FROM pg_last_xact_replay_timestamp())::float8 AS until"


class _TooLate(psycopg2.OperationalError):
    """It did not answer in time."""


def _wait(connection: extensions.connection) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while (state := connection.poll()) != extensions.POLL_OK:
        waiting = select.poll()
        waiting.register(connection, select.POLLIN if state == extensions.POLL_READ else select.POLLOUT)
        if not waiting.poll(max(0, end - time.monotonic()) * 1000):
            raise _TooLate


class _Cursor(extensions.cursor):
    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - psycopg2's name
        super().execute(query, vars)
        _wait(self.connection)


class Replica(Database):
    def __init__(self, dsn: str, primary: Database) -> None:
        super().__init__(dsn, primary.prepare, primary.on_connect)
        self.primary = primary
        self._near = False
        self._next_look = 0.0
        self._looking = threading.Lock()

    def connect(self) -> extensions.connection:
        connection = psycopg2.connect(self.dsn, async_=True, cursor_factory=_Cursor, **self.options)
        _wait(connection)
        return register_types(connection)

    def read(self, sql: str, params: Row) -> list[Row]:
        """What it finds; where that is nothing, what the primary finds."""
        return self._read(sql, params) or self.primary.read(sql, params)

    def _read(self, sql: str, params: Row) -> list[Row]:
        try:
            return self._once(sql, params, "") if self._is_near() else []
        except psycopg2.Error as error:
            self._rest(error)
            return []

    def _is_near(self) -> bool:
        if time.monotonic() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        return self._near

    def _look(self) -> None:
        self._next_look = time.monotonic() + LOOK_SECONDS
        [committed] = self.primary.execute(_COMMIT, {}, again=True, prelude=UNSYNCED)
        [replayed] = self._once(_REPLAYED, {}, "")
        # One that is no replica any more has nothing to replay, or stays where it was.
        self._near = replayed["until"] is not None and committed["now"] - replayed["until"] < MAX_LAG_SECONDS

    def _rest(self, error: psycopg2.Error) -> None:
        self.drop()
        self._near = False
        self._next_look = time.monotonic() + REST_SECONDS
        current_app.logger.warning("the replica did not answer, and rests for a while: %s", type(error).__name__)


def init_app(app: Flask) -> None:
    if settings().replica_url:
        app.extensions["linkmgr_reader"] = Replica(settings().replica_url, app.extensions["linkmgr_database"])
