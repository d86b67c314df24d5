"""Reads for visitors, who wait neither for writes nor long for a primary that does not respond.

They use the connections of the primary with short deadlines. If the primary does not respond, they
use the replica.
"""

import copy
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg2
from flask import Flask

from linkmgr.core.database import session
from linkmgr.core.database.deadlines import TimedOut
from linkmgr.core.database.replica import Replica
from linkmgr.core.database.statements import Database, Row, database
from linkmgr.core.settings import this_app

QUICK_SECONDS = 0.7  # if there is another answer
SECONDS = 1.2
CHECK_SECONDS = 2.1  # more than libpq waits for a host that hangs before it tries the next one


class Lookups:
    def __init__(self, primary: Database, replica: Replica | None) -> None:
        self.primary, self._quick, self._replica = copy.copy(primary), copy.copy(primary), replica
        self.primary.seconds, self._quick.seconds = SECONDS, QUICK_SECONDS
        self._checking, self._check, self._check_end = threading.Lock(), Future[Any](), 0.0
        self._check.set_result(None)

    def read(self, sql: str, params: Row, *, can_wait: bool) -> list[Row]:
        """Read from the primary. If it does not respond, read from the replica, or fail if the
        visitor `can_wait` no longer."""
        if can_wait and not self._replica:
            return self.primary.read(sql, params)
        try:
            if self.primary.server.is_suspect:
                raise TimedOut
            if not self.primary.has_idle:
                self._connect()
            return self._quick.execute(sql, params, idempotent=False)
        except psycopg2.Error as error:
            if not session.is_connection_lost(error):
                raise
            if self._replica and (rows := self._replica.read_alone(sql, params)):
                return rows
            if not can_wait:
                raise
        return self.primary.read(sql, params)

    def check(self) -> None:
        """Fail unless the primary responds in time, although libpq waits for each host of its URL.
        Callers share the check that is under way."""
        with self._checking:
            if self._check.done():
                self._check_end = time.monotonic() + CHECK_SECONDS
                self._check = _in_thread(lambda: self.primary.read("SELECT 1 AS alive", {}))
            check, seconds = self._check, self._check_end - time.monotonic()
        try:
            check.result(max(0.0, seconds))
        except TimeoutError:
            raise psycopg2.OperationalError("no host responds in time") from None

    def _connect(self) -> None:
        """Connect in another thread, because libpq may wait longer than a visitor."""
        connecting = _in_thread(lambda: self.primary.give_back(self.primary.take(fresh=True)))
        try:
            connecting.result(QUICK_SECONDS)
        except TimeoutError:
            self.primary.server.suspect()
            raise TimedOut from None


def _in_thread(call: Callable[[], Any]) -> Future[Any]:
    """Call in a thread for which the process does not wait when it ends."""
    future = Future[Any]()

    def perform(app: Flask) -> None:
        with app.app_context():
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)

    threading.Thread(target=perform, args=(this_app(),), daemon=True).start()
    return future


def lookups() -> Lookups:
    instance: Lookups = this_app().extensions["linkmgr_lookups"]
    return instance


def public_row(sql: str, *, can_wait: bool = True, **params: Any) -> Row | None:
    return next(iter(lookups().read(sql, params, can_wait=can_wait)), None)


def init_app(app: Flask) -> None:
    reader = database().reader
    app.extensions["linkmgr_lookups"] = Lookups(database(), reader if isinstance(reader, Replica) else None)
