"""The job of an import. Each call does one batch of one of its two stages.

The first stage reads the file or the service and stores its rows. Reading a file has no position from which another
process could continue: if its process ends, the rows are deleted and the file is read again. A service is read page by
page. The second stage works on the rows: a batch is one transaction, with its links, the rows that failed and the
counts.
"""

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import psycopg2
from flask import current_app
from psycopg2 import errors as pg

from linkmgr import keys
from linkmgr.db import jobs, transaction
from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.imports import account, files, services, staged, storing, visits
from linkmgr.imports.batch import Batch
from linkmgr.imports.rows import ReadError
from linkmgr.imports.stored_file import StoredFile
from linkmgr.repository import import_job, import_rows
from linkmgr.repository.visits import delete_spool

KIND = "import"
READ_SECONDS = 0.3  # of a batch of reading; a piece of the file is the least
MAX_READ = 500  # rows of a batch of reading
MAX_STAGED = 1 << 30  # bytes of the rows of an import
MAX_READINGS = 20  # files that a process has open
MAX_PAGES = 100_000  # of a service, whose next page may always be another one
MAX_FAILING_HOURS = 24  # in which a service may ask again and again to be left alone
PAUSES = (5, 10, 20, 40, 80, 160)  # seconds after which a service that does not respond is asked again
_IDLE = 3 * jobs.LEASE_SECONDS  # seconds after which another process has the import
_UNAVAILABLE = (psycopg2.OperationalError, psycopg2.InterfaceError, pg.IdleInTransactionSessionTimeout)


def init_app() -> None:
    jobs.init_app(
        {KIND: lambda argument: run_batch(**argument)},
        abandon={KIND: lambda argument: abandon(**argument)},
        stays={KIND: lambda argument: argument["import_id"] in _local.readings},
    )


@dataclass
class _Reading:
    """A file that this process reads, behind the batch with this number."""

    batch: int
    rows: Iterator[Any]
    file: StoredFile
    used: float = field(default_factory=monotonic)


class _Local(threading.local):
    def __init__(self) -> None:
        self.readings: dict[int, _Reading] = {}
        self.limits: dict[int, int] = {}  # rows of the next batch, after one that took too long to store


_local = _Local()


def forget(import_id: int | None = None) -> None:
    """Close the file that this thread is reading, or all files."""
    for other in [*_local.readings] if import_id is None else [import_id]:
        _local.readings.pop(other, None)
        _local.limits.pop(other, None)


def run_batch(user_id: int, import_id: int) -> bool:
    """Do the next batch of an import. Return True if there is nothing left to do."""
    details = import_job.details(user_id, import_id)
    if details is None or details["state"] not in ("queued", "running"):
        forget(import_id)
        if details is not None and details["state"] == "paused":
            return True
        with suppress(*_UNAVAILABLE):
            delete_spool(visits.spool(import_id))
        return import_rows.clear(user_id, import_id, also_errors=details is None)
    try:
        if details["stage"] == "store":
            _store(user_id, import_id, details)
        elif details["size"] is None:
            _read_service(user_id, import_id, details)
        else:
            _read_file(user_id, import_id, details)
    except (*_UNAVAILABLE, jobs.Later):
        raise
    except Exception as error:
        forget(import_id)
        if isinstance(error, AppError) and isinstance(error.seconds, int):
            raise jobs.Later(error.seconds) from error
        if import_job.details(user_id, import_id) is None:  # its user has been deleted meanwhile
            return True
        current_app.logger.error("import %s failed after row %s", import_id, details["rows_read"], exc_info=error)
        message = f"The import stopped after row {details['rows_read']} because of an error on our side."
        import_job.end(user_id, import_id, details["batch"], "failed", message)
    return False


def abandon(user_id: int, import_id: int) -> None:
    """End an import of which each process that does its next batch is killed."""
    details = import_job.details(user_id, import_id)
    if details is not None:
        message = (
            f"The import stopped after row {details['rows_read']}, because the process that reads the next rows was "
            f"ended {jobs.MAX_LOST} times. Import these rows in smaller files."
        )
        import_job.end(user_id, import_id, details["batch"], "failed", message)


# --- reading


def _read_file(user_id: int, import_id: int, details: Row) -> None:
    reading = _local.readings.get(import_id)
    if reading is None or reading.batch != details["batch"]:
        reading = _begin(user_id, import_id, details)
        if reading is None:
            return
    rows, problem, is_last = _take(reading)
    bytes_read = reading.file.tell()
    if not _save(user_id, import_id, details, rows, problem=problem, is_last=is_last, bytes_read=bytes_read):
        forget(import_id)
        return
    reading.batch, reading.used = reading.batch + 1, monotonic()
    if is_last:
        forget(import_id)


def _begin(user_id: int, import_id: int, details: Row) -> _Reading | None:
    """Open the file. Before, delete the rows that another process has read, in as many calls as it takes."""
    forget(import_id)
    if details["found"] and not import_rows.clear(user_id, import_id):
        return None
    for other in [other for other, reading in _local.readings.items() if monotonic() - reading.used > _IDLE]:
        forget(other)
    if len(_local.readings) >= MAX_READINGS:
        raise jobs.Later(1)
    if details["found"]:
        import_job.restart(user_id, import_id, details["batch"])
    file = StoredFile(user_id, import_id, details["size"])
    stream: Any = io.BufferedReader(file, 1 << 16)
    if details["source"] == account.SOURCE:
        rows: Iterator[Any] = account.read(stream)
    else:
        rows = files.read(stream, details["source"], details["mapping"])
    reading = _Reading(details["batch"] + bool(details["found"]), rows, file)
    _local.readings[import_id] = reading
    details["batch"], details["waiting_bytes"] = reading.batch, 0
    return reading


def _take(reading: _Reading) -> tuple[list[Any], str, bool]:
    """Return the next rows, the problem behind them or "", and True if there are no more."""
    end, rows, size = monotonic() + READ_SECONDS, list[Any](), 0
    try:
        for row in reading.rows:
            if row is not None:
                rows.append(row)
                size += sum(map(len, row.raw.values()))
            if len(rows) >= MAX_READ or size > files.text.MAX_RECORD or monotonic() > end:
                return rows, "", False
    except ReadError as error:
        return rows, error.message, True
    return rows, "", True


def _read_service(user_id: int, import_id: int, details: Row) -> None:
    """Read a page."""
    try:
        token = keys.unseal(user_id, details["token"])
        service = services.connect(details["source"], details["address"], token)
        page = service.page(details["cursor"], details["found"])
    except ReadError as error:
        if error.retry_after or error.is_temporary:
            _ask_again(user_id, import_id, details, error)
        else:
            _save(user_id, import_id, details, [], problem=error.message, is_last=True)
        return
    rows = service.rows(page, details["found"] + 1)
    sent = [row.name for row in rows if not row.is_visits and row.name]
    names = import_rows.names(user_id, import_id, "links", sent)  # which an earlier page had
    rows = [row for row in rows if row.is_visits or row.name not in names]
    missing = max(0, page.missing and page.missing + len(page.links) - len(rows))
    numbered = [row._replace(number=details["found"] + n) for n, row in enumerate(rows, 1)]
    is_endless = page.following is not None and details["batch"] >= MAX_PAGES
    problem = f"The service has more than {MAX_PAGES:,} pages. Import a file of it." if is_endless else ""
    is_last = page.following is None or is_endless
    _save(
        user_id, import_id, details, numbered, problem=problem, cursor=page.following, is_last=is_last, missing=missing
    )


def _ask_again(user_id: int, import_id: int, details: Row, error: ReadError) -> None:
    """Ask the service again later, or let the import wait for the user."""
    pauses = [error.retry_after] if error.retry_after else PAUSES[details["failures"] :]
    hours = import_job.save_failure(user_id, import_id, details["batch"], failures=0 if error.retry_after else 1)
    if not pauses or hours > MAX_FAILING_HOURS:
        import_job.pause(user_id, import_id, details["batch"], error.message)
        return
    raise jobs.Later(pauses[0]) from error


def _save(
    user_id: int,
    import_id: int,
    details: Row,
    rows: list[Any],
    *,
    is_last: bool,
    problem: str = "",
    cursor: Any = None,
    missing: int = 0,
    bytes_read: int = 0,
) -> bool:
    """Store rows that were read. Return False if another process has done so, or if the import has ended."""
    packed = staged.pack(user_id, rows)
    size = sum(len(row["content"]) for row in packed)
    if details["waiting_bytes"] + size > MAX_STAGED:
        is_last, problem = True, "The file has more rows than an import can have. Divide it into several files."
    with transaction.lazily(lambda: None) as writes:
        if not import_job.lock_batch(user_id, import_id, details["batch"]):
            return False
        if packed:
            import_rows.add(user_id, import_id, packed)
        import_job.save_read(
            user_id, import_id, cursor=cursor, is_last=is_last, problem=problem, missing=missing, found=len(rows),
            bytes=size, bytes_read=bytes_read,
        )  # fmt: skip
        writes.commit()
    return True


# --- storing


def _store(user_id: int, import_id: int, details: Row) -> None:
    limit = _local.limits.get(import_id, storing.MAX_ROWS)
    waiting = import_rows.waiting(user_id, import_id, limit=limit, lines=storing.MAX_ROWS)
    if not waiting:
        state, message = ("failed", details["problem"]) if details["problem"] else ("done", _notes(details))
        import_job.end(user_id, import_id, details["batch"], state, message)
        return
    batch = storing.prepare(user_id, details, waiting)
    try:
        _save_stored(user_id, import_id, details, batch, batch.store)
    except pg.QueryCanceled:
        _local.limits[import_id] = max(1, len(batch.waiting) // 2)
        if len(batch.waiting) == 1:
            _save_stored(user_id, import_id, details, batch, batch.fail)
    except pg.CheckViolation:  # a month without a partition
        visits.create_partitions(batch.visits)
    else:
        _local.limits[import_id] = min(2 * limit, storing.MAX_ROWS)


def _save_stored(user_id: int, import_id: int, details: Row, batch: Batch, store: Callable[[], None]) -> None:
    with transaction.lazily(lambda: None) as writes:
        if not import_job.lock_batch(user_id, import_id, details["batch"]):
            return
        store()
        errors = batch.errors[: max(0, import_rows.MAX_ERRORS - details["failed"])]
        kept = {row["number"] for row in (*errors, *batch.kept)}
        done = [row["number"] for row in batch.waiting if row["number"] not in kept]
        size = import_rows.finish(user_id, import_id, errors=errors, kept=batch.kept, done=done)
        import_job.save_stored(
            user_id,
            import_id,
            read=sum(row["lines"] for row in batch.waiting),
            error_bytes=size,
            visits=len(batch.visits),
            refused=batch.refused,
            cut=batch.cut,
            **{kind: batch.counts[kind] for kind in ("made", "updated", "skipped", "failed")},
        )
        if size:
            import_rows.drop_old_errors(user_id, import_id)
        writes.commit()


def _notes(details: Row) -> str:
    """Return what the user should know about an import that is done."""
    notes = []
    if details["missing"]:
        number = f"{details['missing']:,}"
        notes.append(f"Links that the service counts and did not send: {number}. Import them again, or from a file.")
    if details["cut"]:
        notes.append(f"Titles that were cut to 255 characters: {details['cut']:,}.")
    return " ".join(notes)
