"""Background jobs, run by a thread of each process that serves.

A job is a row that a statement or a trigger inserts together with what makes it necessary.  A
process takes it for the time of a lease and calls its handler again and again, a bounded batch each time.  A process
that dies leaves its job to the others when the lease runs out: handlers can be repeated at any point.  There is no
lock between batches, and a pause as long as the batch, so that requests do not wait.  A long job is put back after a
slice of time, behind the other jobs that are due.

procrastinate and pgqueuer do the same, but run on asyncio and psycopg 3 or asyncpg.
"""

import atexit
import random
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import psycopg2
from flask import Flask, current_app

from linkmgr.db.statements import Row, run_unsynced

HANDLERS: dict[str, Callable[[Any], bool]] = {}  # by kind: do one batch, and return True when the job is done

LEASE_SECONDS = 60  # several times what a batch can take with the statement timeout
SLICE_SECONDS = 5
POLL_SECONDS = 1
_LEAST_PAUSE, _MAX_DELAY = 0.01, 300
_STOP_SECONDS = _RETRY_SECONDS = 5


def init_app(handlers: dict[str, Callable[[Any], bool]]) -> None:
    HANDLERS.update(handlers)


def take(kinds: list[str], *, lease: float) -> Row | None:
    """Take the job that has been due longest, for so many seconds. `due` becomes the end of its lease, and names it."""
    return run_unsynced(
        """
        UPDATE jobs
           SET due = clock_timestamp() + make_interval(secs => %(lease)s::float8), attempts = attempts + 1
         WHERE id = (SELECT id FROM jobs WHERE due <= now() AND kind = ANY (%(kinds)s::text[])
                      ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING id, kind, argument, attempts, due::text AS lease
        """,
        kinds=kinds,
        lease=lease,
    )


def put_back(job: Row, *, delay: float, failed: bool) -> None:
    """Make a job due again, unless its lease ran out and another process took it."""
    run_unsynced(
        """
        UPDATE jobs
           SET due = now() + make_interval(secs => %(delay)s::float8),
               attempts = CASE WHEN %(failed)s THEN attempts ELSE 0 END
         WHERE id = %(id)s AND due = %(lease)s::timestamptz
        """,
        id=job["id"],
        lease=job["lease"],
        delay=delay,
        failed=failed,
    )


def remove(job: Row) -> None:
    """Remove a job that is done, unless its lease ran out and another process took it."""
    run_unsynced(
        "DELETE FROM jobs WHERE id = %(id)s AND due = %(lease)s::timestamptz",
        id=job["id"],
        lease=job["lease"],
    )


def run_next(pause: Callable[[float], bool]) -> bool:
    """Run the next job for a slice of time.  Return False if none is due.  `pause` waits for so many seconds and
    returns True if the process ends."""
    job = take([*HANDLERS], lease=LEASE_SECONDS)
    if job is None:
        return False
    try:
        done = _run(job, pause)
    except Exception as error:
        current_app.logger.error("job %s (%s) failed: it is tried again", job["id"], job["kind"], exc_info=error)
        put_back(job, delay=min(2 ** min(job["attempts"], 10), _MAX_DELAY), failed=True)
    else:
        if done:
            remove(job)
        else:
            put_back(job, delay=0, failed=False)
    return True


def _run(job: Row, pause: Callable[[float], bool]) -> bool:
    """Run batches until the job is done, its slice is over or the process ends.  Return True if it is done."""
    began = now = monotonic()
    while not HANDLERS[job["kind"]](job["argument"]):
        elapsed = monotonic() - now
        if pause(max(elapsed, _LEAST_PAUSE)) or monotonic() - began > SLICE_SECONDS:
            return False
        now = monotonic()
    return True


class Worker:
    """The thread that runs jobs for as long as the process serves."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    def _stop(self) -> None:
        """Wait for the batch that is under way, so that the job is put back for another process."""
        self._ending.set()
        self._thread.join(_STOP_SECONDS)

    def _work(self) -> None:
        while not self._ending.wait(POLL_SECONDS * random.uniform(0.8, 1.2)):  # noqa: S311
            with self._app.app_context():
                try:
                    while run_next(self._ending.wait) and not self._ending.is_set():
                        pass
                except psycopg2.Error as error:
                    self._app.logger.warning("jobs wait for the database: %s", type(error).__name__)
                    self._ending.wait(_RETRY_SECONDS)
                except Exception as error:  # a bug here must not end the thread, which nothing starts again
                    self._app.logger.error("jobs wait for another try", exc_info=error)
