"""Visits on their way to the database: gathered for a moment in each process and stored together.

So a visitor waits for none of it, a link that everybody opens is one update of its totals and not a queue for them,
and visits outlast a restart of the database.  What a crash of the process can take with it is the last moment.
"""

import atexit
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import NamedTuple

import psycopg2
from flask import Flask
from psycopg2 import errors as pg

from linkmgr import metrics
from linkmgr.database import row
from linkmgr.repository import visits

GATHER_SECONDS = 0.5
RETRY_SECONDS = 1
MONTHS_RETRY_SECONDS = 60
MOST_AT_ONCE = 500
MOST_WAITING = 20_000  # about 10 MB; what comes on top of it while the database is away is lost


class Visit(NamedTuple):
    """As repository.visits.add takes it, but for its time."""

    target_id: int
    user_id: int
    at: float  # of the monotonic clock
    visitor: str
    country: str
    referrer: str
    browser: str
    os: str
    social: str | None


class Recorder:
    def __init__(self, app: Flask) -> None:
        self._app = app
        self._waiting: deque[Visit] = deque()
        self._some = threading.Event()
        self._storing = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None  # started by the first visit, in the process that serves
        self._months_of: date | None = None
        self._months_again = 0.0  # of the monotonic clock

    def add(self, visit: Visit) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._make_room()
        self._waiting.append(visit)
        self._some.set()
        if self._thread is None:
            self._start()

    def flush(self) -> bool:
        """Stores what waits; False: the database is away, and the rest still waits."""
        with self._storing, self._app.app_context():
            while self._waiting:
                left = batch = self._next()
                try:
                    left = self._store(batch)
                finally:
                    self._waiting.extendleft(reversed(left))
                if left:
                    return False
        return True

    def _next(self) -> list[Visit]:
        return [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]

    def _make_room(self) -> None:
        """By the oldest, and without waiting for what is being stored."""
        lost = []
        with suppress(IndexError):  # the others took them
            lost = [self._waiting.popleft() for _ in range(MOST_AT_ONCE)]
        with self._app.app_context():
            self._lose(lost)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="visits", daemon=True)
                self._thread.start()
                atexit.register(self.flush)

    def _work(self) -> None:
        while True:
            self._some.wait()
            time.sleep(GATHER_SECONDS)
            self._some.clear()
            try:
                stored = self.flush()
            except Exception as error:  # a bug here must not end what nobody would start again
                self._app.logger.error("visits wait for another try", exc_info=error)
                stored = False
            if not stored:
                time.sleep(RETRY_SECONDS)
                self._some.set()

    def _store(self, batch: list[Visit]) -> list[Visit]:
        """Gives what it could not store and may try again."""
        try:
            # A dead connection is found before the visits are sent: after that nobody could tell whether they arrived.
            row("SELECT 1")
        except psycopg2.Error:
            return batch
        self._make_months()
        now = time.monotonic()
        try:
            visits.add([visit._asdict() | {"age": now - visit.at} for visit in batch])
        except pg.CheckViolation:  # there is no part for this month
            self._months_of = None
            return batch
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            if error.pgcode:  # the server says itself that it did not store them
                return batch
            self._lose(batch, error)
        except Exception as error:  # one visit that cannot be stored must not take others with it
            if len(batch) > 1:
                return [left for visit in batch for left in self._store([visit])]
            self._lose(batch, error)
        else:
            metrics.count("visits_recorded", len(batch))
        return []

    def _make_months(self) -> None:
        """Once a day, two months ahead: that it fails now and then, behind somebody's lock, is no reason to wait."""
        today = datetime.now(UTC).date()
        if self._months_of == today or time.monotonic() < self._months_again:
            return
        try:
            visits.make_months()
            self._months_of = today
        except psycopg2.Error as error:
            self._months_again = time.monotonic() + MONTHS_RETRY_SECONDS
            self._app.logger.warning("the months to come have no part in visits yet", exc_info=error)

    def _lose(self, lost: list[Visit], error: Exception | None = None) -> None:
        metrics.count("visits_lost", len(lost))
        self._app.logger.warning("%s visits were not recorded", len(lost), exc_info=error)
