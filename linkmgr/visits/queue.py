"""Queue of visits in spool files, written to the database in batches.

Visitors do not wait for the database, and a batch updates the totals of a popular link only once. Visits survive an
outage of the database and a crash of their process: another process stores them.
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

from linkmgr.repository import rollups, visits
from linkmgr.settings import settings
from linkmgr.visits import spool
from linkmgr.visits.spool import Spool
from linkmgr.web import metrics

BATCH_SECONDS = 0.5
ROLL_UP_SECONDS = 5  # between two counts of stored visits in the rollups
RETRY_SECONDS = 1
ORPHANS_SECONDS = 5  # between two searches for files of dead processes
MONTHS_RETRY_SECONDS = 60
LOG_SECONDS = 10  # between two log messages about lost visits
MAX_BATCH = 500
# Replace a stored file of more than this size, so that most of a file is free when the disk becomes full.
REPLACE_BYTES = spool.SIZE // 4
_BOT = b'"bot":true'  # in the line of a bot; quotation marks in labels are escaped

_UNAVAILABLE = (psycopg2.OperationalError, psycopg2.InterfaceError)
_INVALID = (psycopg2.DataError, psycopg2.IntegrityError, ValueError)


@dataclass(frozen=True, slots=True)
class Visit:
    """An element of the array that repository.visits.add stores."""

    tracked_id: int
    user_id: int
    at: float  # seconds since the epoch
    visitor: str
    country: str
    referrer: str
    browser: str
    os: str
    social: str | None
    bot: bool = False
    device: str = visits.UNKNOWN
    city: str = visits.UNKNOWN
    language: str = visits.UNKNOWN


class VisitQueue:
    def __init__(self, app: Flask) -> None:
        self._app = app
        self._folder = settings().folder / "visits"
        self._max_files = settings().visit_spool_mb * 1024 * 1024 // spool.SIZE
        self._spools: list[Spool] = []  # of this process; the last one receives new visits
        self._spools_lock = threading.Lock()  # for changes of the list
        self._has_visits = threading.Event()
        self._flush_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._next_orphans = 0.0  # time.monotonic()
        self._has_pending = True  # visits that are stored and not in the rollups, perhaps those of a dead process
        self._next_roll_up = time.monotonic() + ROLL_UP_SECONDS
        self._months_created: date | None = None
        self._months_retry_at = 0.0  # time.monotonic()
        self._unlogged = 0  # lost visits since the last log message
        self._next_log = 0.0  # time.monotonic()

    def add(self, visit: Visit) -> None:
        """Append a visit to the file of this process."""
        line = orjson.dumps(visit, option=orjson.OPT_APPEND_NEWLINE)
        try:
            self._append(line)
        except OSError as error:
            self.count_lost(1, error)
            return
        if not self._has_visits.is_set():
            self._has_visits.set()
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
                if len(spools) >= self._max_files and self._spools is spools:
                    raise
            with self._spools_lock:
                if self._spools is spools:
                    self._spools = [*spools, Spool.create(self._folder)]

    def start(self) -> None:
        """Start the thread that stores visits, those of dead processes first."""
        with self._spools_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="visits", daemon=True)
                self._thread.start()
                atexit.register(self._finish)

    def reserve(self) -> None:
        """Create the first file, because the disk may be full at the first visit."""
        with self._spools_lock, suppress(OSError):
            self._spools = self._spools or [Spool.create(self._folder)]

    def flush(self) -> bool:
        """Store the visits of this process. Return False if the database is unavailable; they stay in the files."""
        with self._flush_lock, self._app.app_context():
            return all(self._drain(source) for source in self._spools) and self._delete_stored()

    def expect_pending(self) -> None:
        """Roll up visits that were stored without this queue, as those of imports are."""
        self._has_pending = True

    def _work(self) -> None:
        delay = 0  # seconds; store the visits of dead processes at once
        while True:
            if self._has_visits.wait(delay):
                time.sleep(BATCH_SECONDS)
            self._has_visits.clear()
            try:
                stored = self.flush() and self._store_orphans() and self._roll_up()
            except Exception as error:  # a bug must not end the thread
                self._app.logger.error("storing visits failed and will be retried", exc_info=error)
                stored = False
            delay = ORPHANS_SECONDS if stored else RETRY_SECONDS

    def _finish(self) -> None:
        """Store all visits and delete the files of this process, unless the database is unavailable."""
        if self.flush():
            # The data folder may have been deleted.
            with self._flush_lock, self._app.app_context(), suppress(OSError):
                spools, self._spools = self._spools, []
                _delete([source for source in spools if source.seal()])

    # --- files

    def _delete_stored(self) -> bool:
        """Delete stored files that are full or over REPLACE_BYTES. Return False if the database is unavailable."""
        with self._spools_lock:
            if any(source.stored == source.size > REPLACE_BYTES for source in self._spools[-1:]):
                # Create the new file first: on a full disk, other programs would take the space of the old one.
                with suppress(OSError):
                    self._spools = [*self._spools, Spool.create(self._folder)]
            stored = [source for source in self._spools[:-1] if source.seal()]
            self._spools = [source for source in self._spools if source not in stored]
        return _delete(stored)

    def _store_orphans(self) -> bool:
        """Store the visits of dead processes. Return False if the database is unavailable."""
        if time.monotonic() < self._next_orphans:
            return True
        for orphan in spool.orphans(self._folder):
            with self._flush_lock, self._app.app_context(), closing(orphan):
                if not (orphan.done or (self._find_position(orphan) and self._drain(orphan))):
                    return False
                if not _delete([orphan]):
                    return False
            if not self.flush():
                return False
        self._next_orphans = time.monotonic() + ORPHANS_SECONDS
        return True

    # --- the database

    def _roll_up(self) -> bool:
        """Count the stored visits of all processes in the rollups. Return False if the database is unavailable."""
        if self._has_pending and time.monotonic() >= self._next_roll_up:
            self._has_pending = False
            try:
                with self._app.app_context():
                    rollups.roll_up()
            except psycopg2.Error as error:
                self._has_pending = True
                if isinstance(error, _UNAVAILABLE):
                    return False
                raise
            self._next_roll_up = time.monotonic() + ROLL_UP_SECONDS
        return True

    def _drain(self, source: Spool) -> bool:
        while lines := source.read(MAX_BATCH):
            if not self._store(source, lines):
                return False
        return True

    def _store(self, source: Spool, lines: list[bytes]) -> bool:
        """Store some of the next lines of a file. Return False if the database is unavailable.

        Divide a batch with a visit that cannot be stored, until only that visit is lost.
        """
        batch = f"[{b','.join(lines).decode(errors='replace')}]"
        try:
            stored = self._store_batch(source, lines, batch)
        except pg.QueryCanceled:  # timeout
            return len(lines) > 1 and self._store(source, lines[: len(lines) // 2])
        except _UNAVAILABLE:
            return False
        except _INVALID as error:
            if len(lines) > 1:
                return self._store(source, lines[: len(lines) // 2])
            return self._skip(source, lines, error)
        if stored:
            self._has_pending = True
            metrics.count("visits_recorded", sum(_BOT not in line for line in lines))
        self._create_partitions()
        return True

    def _store_batch(self, source: Spool, lines: list[bytes], batch: str) -> bool:
        """Store a batch and the new position of its file. Return False if the stored position was a different one."""
        stop = source.stored + sum(map(len, lines))
        try:
            stored = visits.add(source.name, source.stored, stop, batch)
        except pg.CheckViolation:  # a month without a partition
            visits.create_partitions_for(batch)
            stored = visits.add(source.name, source.stored, stop, batch)
        # If not, an earlier attempt stored it but its response was lost, or a different database is connected.
        source.stored = stop if stored else visits.stored_bytes(source.name)
        return source.stored == stop

    def _skip(self, source: Spool, lines: list[bytes], error: Exception) -> bool:
        try:
            skipped = self._store_batch(source, lines, "[]")
        except _UNAVAILABLE:
            return False
        if skipped:
            self.count_lost(1, error)
        return True

    def _find_position(self, source: Spool) -> bool:
        try:
            source.stored = visits.stored_bytes(source.name)
        except _UNAVAILABLE:
            return False
        return True

    def _create_partitions(self) -> None:
        """Create the partitions for two months ahead, once a day. A failure does not delay visits."""
        today = datetime.now(UTC).date()
        if self._months_created == today or time.monotonic() < self._months_retry_at:
            return
        try:
            visits.create_partitions()
            self._months_created = today
        except psycopg2.Error as error:
            self._months_retry_at = time.monotonic() + MONTHS_RETRY_SECONDS
            self._app.logger.warning("visits has no partitions for the coming months yet", exc_info=error)

    def count_lost(self, number: int, error: Exception) -> None:
        """Count lost visits, and log their number at most every LOG_SECONDS."""
        with self._app.app_context():
            metrics.count("visits_lost", number)
        self._unlogged += number
        if time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + LOG_SECONDS
            self._app.logger.warning("%s visits were lost", self._unlogged, exc_info=error)
            self._unlogged = 0


def _delete(stored: list[Spool]) -> bool:
    """Delete stored files and their positions. Return False if the database is unavailable.

    Any process that finds a file marked as done completes its deletion.
    """
    with ExitStack() as stack:
        for source in stored:
            stack.callback(source.close)
        for source in stored:
            if not source.done:
                source.mark_done()
            try:
                visits.delete_spool(source.name)
            except _UNAVAILABLE:
                return False
            source.delete()
    return True


def start(app: Flask) -> None:
    """Start the queue of this process."""
    queue: VisitQueue = app.extensions["linkmgr_visit_queue"]
    queue.reserve()
    queue.start()
