"""The job of an import. Each call does one batch of one of its two stages.

The first stage reads the file or the service and stores its rows. Reading a file has no position
from which another process could continue: if its process ends, the file is read again, and the rows
that are stored are skipped. A service is read page by page. The second stage works on the rows: a
batch is one transaction, with its links, the rows that failed and the counts. When MAX_STAGED bytes
wait, the stage `drain` works on them before reading continues.
"""

import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import psycopg2
from flask import current_app
from psycopg2 import errors as pg

from linkmgr.core import keys
from linkmgr.core.database import jobs, transaction
from linkmgr.core.database.statements import MAX_BIGINT, Row, act_as_sender
from linkmgr.core.errors import AppError
from linkmgr.core.hooks import hooks
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import repository as imports
from linkmgr.features.imports import services, visits
from linkmgr.features.imports.account import reading
from linkmgr.features.imports.account.rows import Lines
from linkmgr.features.imports.batches import Batch, pack, staged_bytes
from linkmgr.features.imports.order import InOrder, Rows
from linkmgr.features.imports.rows import ImportRow, ReadError
from linkmgr.repository import link_bin

IMPORT, FETCHING = "import", "import_fetch"  # the second waits for other hosts, in threads of its own
READ_SECONDS = 0.3  # of a batch of reading; a piece of the file is the least
MAX_READ, MAX_READ_BYTES = 500, 1 << 20  # of a batch of reading
MAX_STAGED = 16 << 20  # bytes of waiting rows of an import; those of a user take 64 MiB of the disk
MAX_READINGS = 8  # files that a process has open; each holds up to 15 MiB of a row
MAX_PAGES = 100_000  # stops a service that never reports a last page
MAX_FAILING_HOURS = 24  # of 429 responses before the import pauses
MAX_SILENT_SECONDS, _MIN_PAUSE = 300, 5  # of a service that does not respond
MAX_ROWS = 500  # of a batch that is stored, and about as many visits
# Rows of which each has a subtransaction. PostgreSQL keeps 64 of a transaction in memory, and with
# more it slows down the queries of all.
MAX_SUBTRANSACTIONS = 30
_TOO_MANY = "The file has more rows than an import can have. Divide it into several files."
_LARGE = 1 << 20  # bytes of a file and its rows
# Lines that are a batch of their own: a request to another host, or much memory
_ALONE = ("domains", "logos")
_IDLE = 3 * jobs.LEASE_SECONDS  # seconds after which another process has the import
_UNAVAILABLE = (psycopg2.OperationalError, psycopg2.InterfaceError, pg.IdleInTransactionSessionTimeout)


@dataclass
class _Reading:
    order: InOrder
    rows: Rows
    used: float = field(default_factory=monotonic)


class _Local(threading.local):
    def __init__(self) -> None:
        self.readings: dict[int, _Reading] = {}


_local = _Local()


def _run_job(task: str, argument: Row) -> bool:
    return run_batch(**argument, task=task)


def _reads(argument: Row) -> bool:
    return argument["import_id"] in _local.readings


def run_batch(user_id: int, import_id: int, task: str = "") -> bool:
    """Do the next batch of an import. Return True if there is nothing left to do. A job of the
    other task continues with a batch that the threads of this one do not."""
    details = imports.details(user_id, import_id)
    if details is None or details["state"] not in ("queued", "running"):
        _local.readings.pop(import_id, None)
        if details is not None and details["state"] == "paused":
            return True
        is_cleared = import_rows.clear(user_id, import_id)
        if is_cleared:
            import_rows.drop_old_errors(user_id, import_id)
            if details is None or (details["size"] or 0) + details["staged_bytes"] > _LARGE:
                import_rows.free_space()
        return is_cleared
    if reading_file := _local.readings.get(import_id):
        reading_file.used = monotonic()
    with act_as_sender(details["actor"]):
        return _run(details, task)


def _run(details: Row, task: str) -> bool:
    try:
        if details["stage"] != "read":
            _store(details, task)
        elif details["size"] is None:
            _continue_as(FETCHING, task)
            _read_service(details)
        else:
            _continue_as(IMPORT, task)
            _read_file(details)
    except (*_UNAVAILABLE, jobs.Later, jobs.Move):
        raise
    except Exception as error:
        if isinstance(error, AppError) and isinstance(error.seconds, int):
            raise jobs.Later(error.seconds) from error
        if imports.details(details["user_id"], details["id"]) is None:  # its user has been deleted meanwhile
            return True
        message = "import %s failed after row %s"
        current_app.logger.error(message, details["id"], details["rows_read"], exc_info=error)
        _save(details, state="failed", message=f"{_stopped(details)} because of an error on our side.")
    return False


def _abandon(argument: Row) -> None:
    """End an import of which each process that does its next batch is killed."""
    details = imports.details(**argument)
    if details is not None:
        reason = f"because the process that reads the next rows was ended {jobs.MAX_LOST} times"
        _save(
            details,
            state="failed",
            message=f"{_stopped(details)}, {reason}. Import these rows in smaller files.",
        )


def _continue_as(needed: str, task: str) -> None:
    if task not in ("", needed):
        raise jobs.Move(needed)


def _stopped(details: Row) -> str:
    return f"The import stopped after row {details['rows_read']}"


def _save(details: Row, **changes: Any) -> bool:
    user_id, state = details["user_id"], changes.get("state")
    with transaction.in_transaction():
        is_saved = imports.save(user_id, details["id"], details["batch"], **changes)
        if is_saved and state in ("done", "failed"):
            values = {name: details[name] for name in ("name", "made", "changed", "skipped", "failed")}
            values |= {"import_id": details["id"], "file": values.pop("name"), "problem": changes["message"]}
            hooks().notify(user_id, "import_finished", state=state, **values)
    return is_saved


# --- reading


def _read_file(details: Row) -> None:
    """Read the next rows. After a failure, the file is opened again. A short one waits for no
    other."""
    for other, unused in [*_local.readings.items()]:
        if monotonic() - unused.used > _IDLE:
            del _local.readings[other]
    opened = _local.readings.pop(details["id"], None)
    if opened is None:
        if details["bytes_read"] and len(_local.readings) >= MAX_READINGS:
            raise jobs.Later(1)
        order = InOrder(details)
        opened = _Reading(order, iter(order))
    rows, end = _take(opened.rows)
    bytes_read = opened.order.bytes_read() - details["bytes_read"]
    if _save_read(details, rows, end, bytes_read=bytes_read) and end is None:
        if len(_local.readings) >= MAX_READINGS:
            raise jobs.Later(1)
        _local.readings[details["id"]] = opened


def _take(rows: Rows) -> tuple[list[ImportRow], str | None]:
    """Return the next rows, and None if more may follow, else the problem that ends them, or ""."""
    deadline, taken, left = monotonic() + READ_SECONDS, list[ImportRow](), MAX_READ_BYTES
    try:
        for row in rows:
            if row is not None:
                taken.append(row)
                left -= row.size
            if len(taken) >= MAX_READ or left <= 0 or monotonic() > deadline:
                return taken, None
    except ReadError as error:
        return taken, error.message
    return taken, ""


def _read_service(details: Row) -> None:
    user_id, import_id = details["user_id"], details["id"]

    def earlier(names: list[str]) -> Container[str]:
        return import_rows.references(user_id, import_id, "links", names, also_waiting=True)

    try:
        token = keys.unseal(user_id, details["token"])
        service = services.connect(details["source"], details["address"], token, user_id, earlier)
        page = services.read_page(service, details["cursor"], details["found"])
    except ReadError as error:
        if error.retry_after or error.is_temporary:
            _ask_again(details, error)
        else:
            _save_read(details, [], error.message)
        return
    end = "" if page.following is None else None
    if page.following is not None and details["batch"] >= MAX_PAGES:
        end = f"The service has more than {MAX_PAGES:,} pages. Import a file of it."
    _save_read(details, page.rows, end, cursor=page.following, missing=min(page.missing, MAX_BIGINT))


def _ask_again(details: Row, error: ReadError) -> None:
    """Ask the service again later, each time after twice as long, or let the import wait for the
    user."""
    seconds = details["failing_seconds"] or 0
    if seconds > (MAX_FAILING_HOURS * 3600 if error.retry_after else MAX_SILENT_SECONDS):
        _save(details, is_failing=True, state="paused", message=error.message)
        return
    _save(details, is_failing=True)
    raise jobs.Later(error.retry_after or max(_MIN_PAUSE, seconds)) from error


def _save_read(details: Row, rows: list[ImportRow], end: str | None, **changes: Any) -> bool:
    """Store rows that were read. `end` is None if more may follow, else the problem that ends the
    source, or "". Return False if another process has stored them, or if the import has ended."""
    packed = pack(details, rows)
    size = sum(map(staged_bytes, packed))
    if end is not None:
        changes |= {"stage": "store", "problem": end}
    elif details["waiting_bytes"] + size > MAX_STAGED:
        changes |= {"stage": "drain"}
    with transaction.lazily(lambda: None) as writes:
        if not _save(details, state="running", found=len(rows), waiting_bytes=size, **changes):
            return False
        if packed:
            import_rows.add(details["user_id"], details["id"], packed)
        writes.commit()
    return True


# --- storing


def _store(details: Row, task: str = "") -> None:
    waiting = import_rows.waiting(details["user_id"], details["id"], limit=MAX_ROWS)
    _continue_as(FETCHING if waiting and waiting[0]["file"] == "domains" else IMPORT, task)
    if waiting:
        _store_some(details, waiting)
    elif details["stage"] == "drain" and details["waiting_bytes"] < MAX_STAGED:
        import_rows.free_space()
        _save(details, stage="read")
    else:
        problem = _TOO_MANY if details["stage"] == "drain" else details["problem"]
        _save(details, state="failed" if problem else "done", message=problem or _notes(details))


def _store_some(details: Row, waiting: list[Row]) -> None:
    batch = _prepare(details, waiting)
    try:
        _save_stored(details, batch, batch.store)
    except pg.QueryCanceled:
        if len(batch.waiting) > 1:
            _store_some(details, batch.waiting[: max(1, len(batch.waiting) // 8)])
        else:
            _save_stored(details, batch, batch.fail)
    except pg.CheckViolation as error:
        if error.diag.constraint_name:
            raise
        visits.create_partitions(batch.visits)  # of a month without one


def _prepare(details: Row, waiting: list[Row]) -> Batch:
    file = waiting[0]["file"]
    if file in _ALONE:
        waiting = waiting[:1]
    elif file not in ("links", "visits", "answers", "conversions") or details["on_conflict"] == "update":
        waiting = waiting[:MAX_SUBTRANSACTIONS]
    return (Lines if details["source"] == reading.SOURCE else Batch)(details, waiting)


def _save_stored(details: Row, batch: Batch, store: Callable[[], None]) -> None:
    user_id, import_id = details["user_id"], details["id"]
    with transaction.lazily(lambda: None) as writes:
        if not _save(details, state="running"):
            return
        store()
        left = {"failed": import_rows.MAX_ERRORS, "skipped": import_rows.MAX_SKIPPED}
        left_bytes = import_rows.MAX_ERROR_BYTES - details["kept_bytes"]
        kept = batch.kept(**{name: most - details[name] for name, most in left.items()}, max_bytes=left_bytes)
        import_rows.finish(user_id, import_id, [row["number"] for row in batch.waiting], kept)
        _save(
            details | {"batch": details["batch"] + 1},
            rows_read=sum(row["lines"] for row in batch.waiting),
            visits=batch.stored_visits,
            cut=batch.cut,
            kept_bytes=batch.kept_bytes,
            waiting_bytes=batch.staged_bytes,
            made_of=batch.rows[0].file,
            **batch.counts,
        )
        writes.commit()


def _notes(details: Row) -> str:
    notes = []
    if details["missing"]:
        number = f"{details['missing']:,}"
        notes.append(
            f"Links that the service counts and did not send: {number}. Import them again, or from a file."
        )
    if details["cut"]:
        notes.append(f"Titles that were cut to 255 characters: {details['cut']:,}.")
    if details["ignored"]:
        notes.append(details["ignored"])
    return " ".join(notes)


def _undo(argument: Row) -> bool:
    """Put some unchanged links of an import into the bin. Return True if there are no more."""
    user_id, import_id = argument["user_id"], argument["import_id"]
    with act_as_sender(argument.get("actor")), transaction.lazily(lambda: None) as writes:
        ids = imports.unchanged_links(user_id, import_id, limit=MAX_ROWS)
        if ids:
            link_bin.put_all(user_id, ids)
        writes.commit()
    return len(ids) < MAX_ROWS


HANDLERS = {
    "import_undo": jobs.Handler(_undo),
    IMPORT: jobs.Handler(partial(_run_job, IMPORT), _abandon, stays=_reads),
    FETCHING: jobs.Handler(partial(_run_job, FETCHING), _abandon, is_apart=True),
}
