"""The job of an import. Each call stores one batch.

A batch is one transaction: its links, the rows that failed, the counts, and the position from which reading resumes. So
a process that is killed has stored a batch completely or not at all. Its visits are stored afterwards, because the
statement that stores visits is a transaction of its own; until then they are in `imports.pending`.
"""

import io
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

import psycopg2
from flask import Flask, current_app
from psycopg2.errors import IdleInTransactionSessionTimeout, QueryCanceled

from linkmgr.db import jobs, transaction
from linkmgr.db.statements import Row
from linkmgr.imports import archive, archive_domains, archive_errors, archive_rows, bodies, links, readers, visits
from linkmgr.imports.archive_domains import Checks
from linkmgr.imports.batch import Batch
from linkmgr.imports.links import Loader, Outcome, Sent
from linkmgr.imports.rows import ImportRow, ReadError
from linkmgr.imports.stored_file import StoredFile
from linkmgr.repository import import_batches, imported_links, imported_rows
from linkmgr.repository.visits import delete_spool
from linkmgr.settings import this_app
from linkmgr.web import keys
from linkmgr.web.errors import AppError

KIND = "import"
MAX_ROWS = 500  # of a batch
MAX_VISITS = 5000  # of a batch, if its rows have visits
MAX_WAIT = 3600  # seconds for a service that asks to be left alone
MAX_PASSWORDS = 20  # of a batch; its transaction is idle while they are hashed, which takes 30 ms each
MAX_SECONDS = 1  # of reading a batch, for example from a slow service
LOCKED_SECONDS = 0.5  # until the next try, while another import of the user stores a batch of an account
TOO_SLOW = "This row takes too long to store. Try again, or give it fewer channels and shorter texts."
UNAVAILABLE = (psycopg2.OperationalError, psycopg2.InterfaceError, IdleInTransactionSessionTimeout)


def init_app(app: Flask, loader: Loader) -> None:
    app.extensions["linkmgr_import_loader"] = loader
    jobs.init_app({KIND: lambda argument: run_batch(**argument)}, abandon={KIND: lambda argument: abandon(**argument)})


def loader() -> Loader:
    functions: Loader = this_app().extensions["linkmgr_import_loader"]
    return functions


@dataclass
class _Reading:
    """An import that this process is reading, behind the batch with this number."""

    user_id: int
    import_id: int
    batch: int
    rows: Iterator[Any]
    file: StoredFile | None
    waiting: deque[Any] = field(default_factory=deque)  # rows that were read, and that the next batch begins with
    max_rows: int = field(default_factory=lambda: MAX_ROWS)  # of the next batch

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.waiting.popleft() if self.waiting else next(self.rows)

    def put_back(self, rows: list[Any]) -> None:
        self.waiting.extendleft(reversed(rows))

    @property
    def bytes_read(self) -> int:
        """Return the position in the file. It is not always the furthest one: the end of a zip is read first."""
        return self.file.tell() if self.file else 0


class _Thread(threading.local):
    """The reading that continues with the next batch. Opening a file again would decompress it from its start."""

    last: _Reading | None = None


_thread = _Thread()


def _open(user_id: int, import_id: int, details: Row) -> _Reading:
    last = _thread.last
    if last and (last.user_id, last.import_id, last.batch) == (user_id, import_id, details["batch"]):
        return last
    position = details["position"]
    if details["size"] is None:
        token = keys.unseal(user_id, details["token"])
        rows = readers.read_service(details["source"], details["address"], token, position)
        return _Reading(user_id, import_id, details["batch"], rows, None)
    file = StoredFile(user_id, import_id, details["size"])
    stream: Any = io.BufferedReader(file, 1 << 16)
    if details["source"] == archive.SOURCE:
        return _Reading(user_id, import_id, details["batch"], archive_errors.read(stream, position), file)
    rows = readers.read(stream, details["source"], details["mapping"] or None, position)
    return _Reading(user_id, import_id, details["batch"], rows, file)


def _take(reading: _Reading) -> tuple[list[Any], ReadError | None]:
    """Return the rows of the next batch, and the error behind them."""
    end, number, passwords = monotonic() + MAX_SECONDS, 0, 0
    taken: list[Any] = []
    try:
        for row in reading:
            taken.append(row)
            number += len(row.visits)
            passwords += bool(row.record.get("password"))
            is_alone = isinstance(row, archive.Line) and row.is_alone
            is_full = len(taken) == reading.max_rows or number > MAX_VISITS or passwords == MAX_PASSWORDS
            if is_full or monotonic() > end or is_alone:
                break
    except ReadError as error:
        return taken, error
    return taken, None


def run_batch(user_id: int, import_id: int) -> bool:
    """Store the next batch of an import. Return True if there is nothing left to do."""
    details = import_batches.details(user_id, import_id)
    if details is None or details["state"] not in ("queued", "running"):
        with suppress(*UNAVAILABLE):
            delete_spool(visits.spool(import_id))
        return details is None or import_batches.delete_references(user_id, import_id)
    try:
        _continue(user_id, import_id, details)
    except (*UNAVAILABLE, jobs.Later):
        forget()
        raise
    except ReadError as error:
        forget()
        import_batches.end(user_id, import_id, details["batch"], "failed", error.message)
    except Exception as error:
        forget()
        if isinstance(error, AppError) and isinstance(error.seconds, int):
            raise jobs.Later(error.seconds) from error
        current_app.logger.error("import %s failed after row %s", import_id, details["rows_read"], exc_info=error)
        message = f"The import stopped after row {details['rows_read']} because of an error on our side."
        import_batches.end(user_id, import_id, details["batch"], "failed", message)
    return False


def abandon(user_id: int, import_id: int) -> None:
    """End an import of which each process that reads its next batch is killed."""
    details = import_batches.details(user_id, import_id)
    if details is not None:
        message = (
            f"The import stopped after row {details['rows_read']}, because the process that reads the next rows was "
            f"ended {jobs.MAX_LOST} times. Import these rows in smaller files."
        )
        import_batches.end(user_id, import_id, details["batch"], "failed", message)


def forget() -> None:
    """Close the file or the service that this thread is reading."""
    _thread.last = None


def _continue(user_id: int, import_id: int, details: Row) -> None:
    if details["pending"]:
        visits.store(user_id, import_id, details["visits"], details["pending"])
        import_batches.save_visits(user_id, import_id, details["batch"], len(details["pending"]))
        return
    reading = _open(user_id, import_id, details)
    rows, error = _take(reading)
    if not rows:
        if error and error.retry_after:
            raise jobs.Later(min(error.retry_after, MAX_WAIT))
        if error:
            raise error
        import_batches.end(user_id, import_id, details["batch"], "done")
        return
    if not _store_some(details, reading, rows):
        forget()
        return
    reading.batch += 1
    _thread.last = None if error else reading


def _store_some(details: Row, reading: _Reading, rows: list[Any]) -> bool:
    """Store the rows, or the first of them if all take longer than a statement may. Return False if another process
    has stored them."""
    checks = archive_domains.check(reading.user_id, rows, loader())
    number, is_slow = len(rows), False

    def store_rows(part: list[Any]) -> Batch:
        return store(reading.user_id, reading.import_id, details, part, checks)

    def fail_rows(part: list[Any]) -> Batch:
        batch = Batch()
        for row in part:
            batch.count(row, Outcome("failed", None, "busy", TOO_SLOW))
        import_batches.add_errors(reading.user_id, reading.import_id, batch.errors)
        return batch

    while True:
        try:
            is_stored = _save(reading, rows[:number], fail_rows if is_slow else store_rows)
        except QueryCanceled:
            if is_slow:
                raise
            number, is_slow = max(1, number // 2), number == 1
        else:
            reading.put_back(rows[number:])
            reading.max_rows = number if number < len(rows) else min(2 * reading.max_rows, MAX_ROWS)
            return is_stored


def _save(reading: _Reading, rows: list[Any], store_rows: Callable[[list[Any]], Batch]) -> bool:
    """Store rows and move the position behind them. Return False if another process has stored the batch."""
    user_id, import_id = reading.user_id, reading.import_id
    with transaction.lazily(lambda: None) as writes:
        if not import_batches.lock_batch(user_id, import_id, reading.batch):
            return False
        batch = store_rows(rows)
        import_batches.save_batch(
            user_id,
            import_id,
            position=rows[-1].position,
            pending=batch.pending,
            bytes_read=reading.bytes_read,
            read=len(rows),
            **{kind: batch.counts[kind] for kind in ("made", "updated", "skipped", "failed")},
        )
        writes.commit()
    return True


class _Checked(NamedTuple):
    row: ImportRow
    sent: Sent


def store(user_id: int, import_id: int, details: Row, rows: list[Any], checks: Checks) -> Batch:
    """Store the rows of a batch, in a transaction."""
    is_own = details["source"] in ("linkmgr", archive.SOURCE)
    rule = links.Rule(details["on_conflict"], details["first_id"], sets_clicks=not is_own)
    if details["source"] == archive.SOURCE:
        if not imported_rows.try_lock(user_id):
            raise jobs.Later(LOCKED_SECONDS)
        return archive_rows.Store(user_id, import_id, rule, loader(), checks).run(rows)
    batch = Batch()
    checked = []
    context = bodies.prepare(user_id, [row for row in rows if not (row.is_visits or row.problem)])
    for row in rows:
        if row.is_visits:
            continue
        sent = bodies.check(row, context, loader())
        if isinstance(sent, Outcome):
            batch.count(row, sent)
        else:
            checked.append(_Checked(row, sent))
    outcomes = links.store(user_id, [item.sent for item in checked], rule, loader())
    made: dict[str, int] = {}
    for item, outcome in zip(checked, outcomes, strict=True):
        batch.count(item.row, outcome)
        if outcome.kind == "made" and outcome.id:
            made[bodies.reference(item.row)] = outcome.id
    if made and details["source"] in readers.WITH_VISITS:
        import_batches.add_references(user_id, import_id, "link", made)
    _add_visits(user_id, import_id, rows, made, batch)
    if batch.errors:
        import_batches.add_errors(user_id, import_id, batch.errors)
    return batch


def _add_visits(user_id: int, import_id: int, rows: list[ImportRow], made: dict[str, int], batch: Batch) -> None:
    """Collect the visits of links that this import has made. Those of other links are not repeated."""
    names = [bodies.reference(row) for row in rows if row.visits]
    if not names:
        return
    ids = import_batches.references(user_id, import_id, "link", names) | made
    number: Counter[int] = Counter()
    for row in rows:
        link_id = ids.get(bodies.reference(row)) if row.visits else None
        if link_id:
            converted = visits.convert(user_id, link_id, row.visits)
            batch.pending += converted
            number[link_id] += len(converted)
    if number:
        imported_links.subtract_visits(user_id, dict(number))
