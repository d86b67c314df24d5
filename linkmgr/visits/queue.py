"""Queue of visits in spool files, written to the database in batches.

Visitors do not wait for the database, and a batch updates the totals of a popular link only once.
Visits survive an outage of the database and a crash of their process: another process stores them.
"""

import threading
import time
from contextlib import closing, suppress

import orjson
import psycopg2
from flask import Flask
from psycopg2 import errors as pg

from linkmgr.core import metrics
from linkmgr.core.database.background import Background
from linkmgr.core.database.deadlines import TimedOut
from linkmgr.core.database.statements import database
from linkmgr.core.settings import settings
from linkmgr.visits import spool, store
from linkmgr.visits.spool import Spool

BATCH_SECONDS = 0.5
# Wait longer after a large batch: one update of a popular link's totals then covers more visits.
BUSY_SECONDS, MANY = 2.5, 100
ORPHANS_SECONDS = 5  # between two searches for files of dead processes
LOG_SECONDS = 10  # between two log messages about lost visits
MAX_BATCH = 2000
MAX_TRIES = 3  # to store a single visit in time
SET_ASIDE = "set-aside.jsonl"
FAST_SECONDS = 0.5  # after a batch that took less, the next one may be twice as large
# Replace a stored file of more than this size, so that most of a file is free when the disk becomes
# full.
REPLACE_BYTES = spool.SIZE // 4

_UNAVAILABLE = (psycopg2.OperationalError, psycopg2.InterfaceError)
_INVALID = (psycopg2.DataError, psycopg2.IntegrityError, ValueError)


class VisitQueue(Background):
    name = "visits"
    pause = BATCH_SECONDS

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self._folder = settings().folder / "visits"
        self._max_files = settings().visit_spool_mb * 1024 * 1024 // spool.SIZE
        self._spools: list[Spool] = []  # of this process; the last one receives new visits
        self._spools_lock = threading.Lock()  # for new visits, and changes of the list
        self._flush_lock = threading.Lock()
        self._next_orphans = 0.0  # time.monotonic()
        self._size = MAX_BATCH  # of the next batch
        self._tries = 0  # to store the next visit by itself
        self._unlogged = 0  # lost visits since the last log message
        self._next_log = 0.0  # time.monotonic()

    def add(self, visit: object) -> None:
        line = orjson.dumps(visit, option=orjson.OPT_APPEND_NEWLINE)
        try:
            with self._spools_lock:
                self._with_space(len(line)).append(line)
        except OSError as error:
            self._count_lost(error)
        if self._thread.ident is None:
            self.start()

    def _with_space(self, size: int) -> Spool:
        if not self._spools or self._spools[-1].size + size > spool.SIZE:
            if len(self._spools) >= self._max_files:
                raise OSError("the spool files are full")
            self._spools.append(Spool.create(self._folder))
        return self._spools[-1]

    def reserve(self) -> None:
        """Create the first file, because the disk may be full at the first visit."""
        with self._spools_lock, suppress(OSError):
            self._with_space(0)

    def flush(self) -> bool:
        """Store the visits of this process. Return False if the database is unavailable; they stay
        in the files."""
        try:
            self._flush()
        except _UNAVAILABLE:
            return False
        return True

    def _flush(self) -> int:
        with self._flush_lock, self._app.app_context():
            number = sum(self._drain(source) for source in [*self._spools])
            self._delete_stored()
        return number

    def work(self) -> None:
        self.pause = BUSY_SECONDS if self._flush() > MANY else BATCH_SECONDS
        self._store_orphans()

    def end(self) -> None:
        with suppress(OSError):  # the data folder may have been deleted
            self._flush()
            with self._flush_lock, self._spools_lock:
                spools, self._spools = self._spools, []
            _delete([source for source in spools if source.is_stored()])

    # --- files

    def _delete_stored(self) -> None:
        with self._spools_lock:
            if self._spools and self._spools[-1].is_stored() and self._spools[-1].size > REPLACE_BYTES:
                # Create the new file first: on a full disk, other programs would take the space of
                # the old one.
                with suppress(OSError):
                    self._spools.append(Spool.create(self._folder))
            stored = [source for source in self._spools[:-1] if source.is_stored()]
            self._spools = [source for source in self._spools if source not in stored]
        _delete(stored)

    def _store_orphans(self) -> None:
        if time.monotonic() < self._next_orphans:
            return
        for orphan in spool.orphans(self._folder):
            with self._flush_lock, self._app.app_context(), closing(orphan):
                orphan.stored = store.stored_bytes(orphan.name)
                self._drain(orphan)
                _delete([orphan])
            self._flush()
        self._next_orphans = time.monotonic() + ORPHANS_SECONDS

    # --- the database, which may raise one of _UNAVAILABLE

    def _drain(self, source: Spool) -> int:
        number = 0
        while lines := source.read(self._size):
            began = time.monotonic()
            self._store(source, lines)
            if time.monotonic() - began < FAST_SECONDS:
                self._size = min(MAX_BATCH, self._size * 2)
            number += len(lines)
        return number

    def _store(self, source: Spool, lines: list[bytes]) -> None:
        """Divide a batch with a visit that cannot be stored, until only that visit is set aside. A
        batch that exceeds its timeout or its deadline is divided likewise, and the next ones stay
        as small. After a deadline, the rest waits for the next round, because the server may
        hang."""
        batch = f"[{b','.join(lines).decode(errors='replace')}]"
        try:
            if self._store_batch(source, lines, batch):
                metrics.count("visits_recorded", sum(spool.BOT not in line for line in lines))
        except (TimedOut, pg.QueryCanceled, *_INVALID) as error:
            self._size = max(1, len(lines) // 2)
            if not isinstance(error, _INVALID):
                database().close_idle()  # with their plans, which were made for the sizes that tables had
            if len(lines) == 1:
                self._set_aside(source, lines[0], error)
            elif isinstance(error, TimedOut):
                raise
            else:
                self._store(source, lines[: self._size])

    def _set_aside(self, source: Spool, line: bytes, error: Exception) -> None:
        """Skip a visit that cannot be stored, and keep its line in a file. A visit that is too slow
        has several tries, and is skipped only while the database stores other things."""
        if isinstance(error, (TimedOut, pg.QueryCanceled)):
            self._tries += 1
            if self._tries < MAX_TRIES:
                raise error
            store.add(source.name, source.stored, source.stored, "[]")
        with suppress(OSError):
            aside = self._folder / SET_ASIDE
            if not aside.exists() or aside.stat().st_size < spool.SIZE:
                with aside.open("ab") as file:
                    file.write(line)
        if self._store_batch(source, [line], "[]"):
            self._tries = 0
            self._count_lost(error)

    def _store_batch(self, source: Spool, lines: list[bytes], batch: str) -> bool:
        """Store a batch and the new position of its file. Return False if the stored position was a
        different one."""
        stop = source.stored + sum(map(len, lines))
        try:
            stored = store.add(source.name, source.stored, stop, batch)
        except pg.CheckViolation:  # a month without a partition
            store.create_partitions_for(batch)
            stored = store.add(source.name, source.stored, stop, batch)
        # If not, an earlier attempt stored it but its response was lost, or a different database is
        # connected.
        source.stored = stop if stored else store.stored_bytes(source.name)
        return source.stored == stop

    def _count_lost(self, error: Exception) -> None:
        with self._app.app_context():
            metrics.count("visits_lost")
        self._unlogged += 1
        if time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + LOG_SECONDS
            self._app.logger.warning("%s visits were lost", self._unlogged, exc_info=error)
            self._unlogged = 0


def _delete(stored: list[Spool]) -> None:
    """Delete stored files, then their positions, without which they would be stored again."""
    for source in stored:
        source.delete()
    for source in stored:
        store.delete_spool(source.name)


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_visit_queue"] = VisitQueue(app)


def queue_of(app: Flask) -> VisitQueue:
    queue: VisitQueue = app.extensions["linkmgr_visit_queue"]
    return queue


def start(app: Flask) -> None:
    queue = queue_of(app)
    queue.reserve()
    queue.start()
