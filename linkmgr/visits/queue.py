"""Queue of visits in spool files, written to the database in batches.

A visitor does not wait for the database, a link that everybody opens is one update of its totals, and visits outlast
both an outage of the database and the death of their process: another process stores them.
"""

import atexit
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime

import orjson
import psycopg2
from flask import Flask
from psycopg2 import errors as pg

from linkmgr.repository import visits
from linkmgr.settings import settings
from linkmgr.visits import spool
from linkmgr.visits.spool import Spool
from linkmgr.web import metrics

GATHER_SECONDS = 0.5
RETRY_SECONDS = 1
ADOPT_SECONDS = 5  # between two looks for the files of dead processes
MONTHS_RETRY_SECONDS = 60
LOG_SECONDS = 10  # between two lines of the log about lost visits
MAX_AT_ONCE = 500
WORN = spool.SIZE // 4  # bytes of a stored file that is replaced, so that a full disk finds most of one reserved

_UNAVAILABLE = (psycopg2.OperationalError, psycopg2.InterfaceError)
_UNSTORABLE = (psycopg2.DataError, psycopg2.IntegrityError, ValueError)


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit as repository.visits.add takes it."""

    target_id: int
    user_id: int
    at: float  # seconds since the epoch
    visitor: str
    country: str
    referrer: str
    browser: str
    os: str
    social: str | None


class VisitQueue:
    def __init__(self, app: Flask) -> None:
        self._app = app
        self._folder = settings().folder / "visits"
        self._most_files = settings().visit_spool_mb * 1024 * 1024 // spool.SIZE
        self._spools: list[Spool] = []  # of this process; visits are appended to the last one
        self._changing = threading.Lock()  # held to change the list
        self._some = threading.Event()
        self._storing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._next_adoption = 0.0  # of the monotonic clock
        self._months_of: date | None = None
        self._months_again = 0.0  # of the monotonic clock
        self._unlogged = 0  # lost visits
        self._next_log = 0.0  # of the monotonic clock

    def add(self, visit: Visit) -> None:
        """Append the visit to the file of this process."""
        line = orjson.dumps(visit, option=orjson.OPT_APPEND_NEWLINE)
        try:
            self._append(line)
        except OSError as error:
            self.lose(1, error)
            return
        if not self._some.is_set():
            self._some.set()
        if self._thread is None:
            self.start()

    def _append(self, line: bytes) -> None:
        while True:
            spools = self._spools
            try:
                if spools:
                    spools[-1].append(line)
                    return
            except spool.Full:
                if len(spools) >= self._most_files and self._spools is spools:
                    raise
            with self._changing:
                if self._spools is spools:
                    self._spools = [*spools, Spool.create(self._folder)]

    def start(self) -> None:
        """Store visits in a thread, those of dead processes first."""
        with self._changing:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="visits", daemon=True)
                self._thread.start()
                atexit.register(self._finish)

    def flush(self) -> bool:
        """Store the visits of this process. Return False if the database is unavailable; they stay in the files."""
        with self._storing, self._app.app_context():
            return all(self._drain(source) for source in self._spools) and self._retire_stored()

    def _work(self) -> None:
        delay = 0  # seconds; the visits of dead processes do not wait for a visitor
        while True:
            if self._some.wait(delay):
                time.sleep(GATHER_SECONDS)
            self._some.clear()
            try:
                stored = self.flush() and self._adopt()
            except Exception as error:  # a bug must not end the thread
                self._app.logger.error("storing visits failed and is tried again", exc_info=error)
                stored = False
            delay = ADOPT_SECONDS if stored else RETRY_SECONDS

    def _finish(self) -> None:
        """Leave no file of this process behind, unless the database is unavailable."""
        if self.flush():
            # The data folder may have been deleted.
            with self._storing, self._app.app_context(), suppress(OSError):
                spools, self._spools = self._spools, []
                _retire([source for source in spools if source.seal()])

    # --- files

    def _retire_stored(self) -> bool:
        """Delete the files that are stored and full, or soon full. Return False if the database is unavailable."""
        with self._changing:
            if any(source.stored == source.size > WORN for source in self._spools[-1:]):
                # The new file first: on a full disk, the space of the old one would be lost.
                with suppress(OSError):
                    self._spools = [*self._spools, Spool.create(self._folder)]
            stored = [source for source in self._spools[:-1] if source.seal()]
            self._spools = [source for source in self._spools if source not in stored]
        return _retire(stored)

    def _adopt(self) -> bool:
        """Store the visits of dead processes. Return False if the database is unavailable."""
        if time.monotonic() < self._next_adoption:
            return True
        for orphan in spool.orphans(self._folder):
            with self._storing, self._app.app_context(), closing(orphan):
                if not (orphan.done or (self._find_position(orphan) and self._drain(orphan))):
                    return False
                if not _retire([orphan]):
                    return False
            if not self.flush():
                return False
        self._next_adoption = time.monotonic() + ADOPT_SECONDS
        return True

    # --- the database

    def _drain(self, source: Spool) -> bool:
        while lines := source.read(MAX_AT_ONCE):
            if not self._store(source, lines):
                return False
        return True

    def _store(self, source: Spool, lines: list[bytes]) -> bool:
        """Store some of the next lines of a file. Return False if the database is unavailable."""
        batch = f"[{b','.join(lines).decode(errors='replace')}]"
        try:
            moved = self._move(source, lines, batch)
        except _UNAVAILABLE:
            return False
        except _UNSTORABLE as error:
            if len(lines) > 1:  # one visit that cannot be stored must not take others with it
                return self._store(source, lines[: len(lines) // 2])
            return self._skip(source, lines, error)
        if moved:
            metrics.count("visits_recorded", len(lines))
        self._create_partitions()
        return True

    def _move(self, source: Spool, lines: list[bytes], batch: str) -> bool:
        """Advance the position of a file, and store the batch with it. Return False if it was somewhere else."""
        stop = source.stored + sum(map(len, lines))
        try:
            moved = visits.add(source.name, source.stored, stop, batch)
        except pg.CheckViolation:  # a month without a partition
            visits.create_partitions_for(batch)
            moved = visits.add(source.name, source.stored, stop, batch)
        # Not moved: an earlier try did, though its answer was lost, or another database has replaced this one.
        source.stored = stop if moved else visits.position(source.name)
        return source.stored == stop

    def _skip(self, source: Spool, lines: list[bytes], error: Exception) -> bool:
        try:
            moved = self._move(source, lines, "[]")
        except _UNAVAILABLE:
            return False
        if moved:
            self.lose(1, error)
        return True

    def _find_position(self, source: Spool) -> bool:
        try:
            source.stored = visits.position(source.name)
        except _UNAVAILABLE:
            return False
        return True

    def _create_partitions(self) -> None:
        """Make the partitions for two months ahead, once a day. A failure, as behind a lock, delays nothing."""
        today = datetime.now(UTC).date()
        if self._months_of == today or time.monotonic() < self._months_again:
            return
        try:
            visits.create_partitions()
            self._months_of = today
        except psycopg2.Error as error:
            self._months_again = time.monotonic() + MONTHS_RETRY_SECONDS
            self._app.logger.warning("visits has no partitions for the coming months yet", exc_info=error)

    def lose(self, number: int, error: Exception) -> None:
        """Count lost visits, and log them, but not each one of many."""
        with self._app.app_context():
            metrics.count("visits_lost", number)
        self._unlogged += number
        if time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + LOG_SECONDS
            self._app.logger.warning("%s visits were lost", self._unlogged, exc_info=error)
            self._unlogged = 0


def _retire(stored: list[Spool]) -> bool:
    """Delete files that are stored, and their positions. Return False if the database is unavailable.

    A process that finds a file which is marked as done goes on with its deletion.
    """
    with ExitStack() as stack:
        for source in stored:
            stack.callback(source.close)
        for source in stored:
            if not source.done:
                source.mark_done()
            try:
                visits.forget_spool(source.name)
            except _UNAVAILABLE:
                return False
            source.delete()
    return True


def start(app: object) -> None:
    """Store visits in this process, if the WSGI application is one that records them."""
    recorder = getattr(app, "extensions", {}).get("linkmgr_recorder")
    if isinstance(recorder, VisitQueue):
        recorder.start()
