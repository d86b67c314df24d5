"""Background jobs, run by a thread in each serving process.

A job is a row, inserted in the same transaction as the change that requires it. A process takes a
job for the duration of a lease and calls its handler repeatedly. Each call does a batch of limited
size. If the process dies, another one takes the job when the lease expires, so handlers must be
repeatable at any point. No lock is held between batches, and the pause between them is as long as
the batch, so that requests do not wait. A long job is put back after a time slice. Users take
turns: the next job is that of the user whose jobs this process has not run for the longest time.

A job that has begun something in the memory of a process, such as reading a file, stays with it:
the process keeps its lease between time slices, and another one takes the job when the lease
expires.

Jobs that wait for other hosts have threads of their own, FETCHERS in each process, of which a user
occupies one. A handler moves its job there and back.

procrastinate and pgqueuer do the same, but run on asyncio and psycopg 3 or asyncpg.
"""

import secrets
import threading
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, NamedTuple

from flask import Flask, current_app

from linkmgr.core import metrics
from linkmgr.core.database.background import Background
from linkmgr.core.database.statements import Row, run_unsynced
from linkmgr.core.settings import this_app


class Handler(NamedTuple):
    """The functions of a task. Each takes the argument of a job."""

    run: Callable[[Any], bool]  # processes one batch and returns True if the job is done
    abandon: Callable[[Any], None] | None = None  # ends what the job is about, after MAX_LOST leases
    stays: Callable[[Any], bool] | None = None  # returns True while the job stays with this process
    is_apart: bool = False  # the job waits for other hosts


class Jobs(NamedTuple):
    """The background work of the service or of a feature."""

    handlers: dict[str, Handler] = {}  # by task
    idle: tuple[Callable[[], None], ...] = ()  # called by each process every IDLE_SECONDS, unless a job runs
    # Delete at most so many expired rows, and return their number
    expiring: tuple[Callable[[int], int], ...] = ()
    threads: tuple[Callable[[Flask], Background], ...] = ()  # of each process


LEASE_SECONDS = 60  # several times the duration of a batch, which the statement timeout limits
SLICE_SECONDS = 1
IDLE_SECONDS = 5
MAX_LOST = 5  # leases in a row that expired before a batch was complete
_MIN_PAUSE, _MAX_DELAY = 0.01, 300
_MAX_SERVED = 1000  # users whose turns are remembered
FETCHERS = 2  # threads
_fetching: set[int] = set()  # users whose jobs are in a thread that waits for other hosts
_taking = threading.Lock()


class _Local(threading.local):
    """The name of the thread that runs jobs, and the users that it has served, the last one
    last."""

    def __init__(self) -> None:
        self.holder = secrets.token_hex(8)
        self.served: dict[int, None] = {}


_local = _Local()


class Later(Exception):
    """Raised by a handler to continue its job after a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"continue in {seconds} seconds")


class Move(Exception):
    """Raised by a handler to continue its job with another task, in the threads of that task."""

    def __init__(self, task: str) -> None:
        self.task = task
        super().__init__(f"continue with {task}")


def init_app(app: Flask, jobs: Iterable[Jobs]) -> None:
    all_jobs = [*jobs]
    app.extensions["linkmgr_jobs"] = Jobs(
        {task: handler for some in all_jobs for task, handler in some.handlers.items()},
        tuple(function for some in all_jobs for function in some.idle),
        tuple(function for some in all_jobs for function in some.expiring),
        tuple(thread for some in all_jobs for thread in some.threads),
    )


def registered() -> Jobs:
    jobs: Jobs = this_app().extensions["linkmgr_jobs"]
    return jobs


def _tasks(*, is_apart: bool) -> list[str]:
    return [task for task, handler in registered().handlers.items() if handler.is_apart == is_apart]


def take(tasks: Iterable[str], *, except_users: Iterable[int] = ()) -> Row | None:
    """Take the job that has been due longest, of the user who was served least recently. Its new
    `due`, LEASE_SECONDS from now, identifies the lease."""
    return run_unsynced(
        """
        UPDATE jobs
           SET due = clock_timestamp() + make_interval(secs => %(lease)s::float8),
               attempts = attempts + 1, lost = lost + 1, holder = NULL
         WHERE id = (SELECT id FROM jobs
                      WHERE (due <= now() OR holder = %(holder)s) AND task = ANY (%(tasks)s::text[])
                        AND (argument ->> 'user_id')::bigint =
                            ANY (%(except_users)s::bigint[]) IS NOT TRUE
                      ORDER BY array_position(%(served)s::bigint[],
                                              (argument ->> 'user_id')::bigint) NULLS FIRST,
                               due, id
                      LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING id, task, argument, attempts, lost, due::text AS lease
        """,
        tasks=[*tasks],
        except_users=[*except_users],
        lease=LEASE_SECONDS,
        holder=_local.holder,
        served=[*_local.served],
    )


def _note_served(job: Row) -> None:
    user_id = job["argument"].get("user_id")
    if isinstance(user_id, int):
        _local.served.pop(user_id, None)
        _local.served[user_id] = None
        if len(_local.served) > _MAX_SERVED:
            del _local.served[next(iter(_local.served))]


def put_back(job: Row, *, delay: float, failed: bool, stays: bool = False) -> None:
    """Make a job due again, unless the lease expired and another process took it. One that stays is
    due again for this process only, until its lease ends."""
    run_unsynced(
        """
        UPDATE jobs
           SET due = now() + make_interval(secs => %(delay)s::float8),
               holder = CASE WHEN %(stays)s THEN %(holder)s END,
               attempts = CASE WHEN %(failed)s THEN attempts ELSE 0 END,
               lost = CASE WHEN %(failed)s THEN greatest(lost - 1, 0) ELSE 0 END
         WHERE id = %(id)s AND due = %(lease)s::timestamptz
        """,
        id=job["id"],
        lease=job["lease"],
        delay=LEASE_SECONDS if stays else delay,
        failed=failed,
        stays=stays,
        holder=_local.holder,
    )


def move_to(job: Row, task: str) -> None:
    run_unsynced(
        """
        UPDATE jobs SET task = %(task)s, due = now(), attempts = 0, lost = 0
         WHERE id = %(id)s AND due = %(lease)s::timestamptz
        """,
        id=job["id"],
        lease=job["lease"],
        task=task,
    )


def release() -> None:
    run_unsynced("UPDATE jobs SET due = now(), holder = NULL WHERE holder = %(holder)s", holder=_local.holder)


def reset_lost(job: Row) -> None:
    run_unsynced(
        "UPDATE jobs SET lost = 0 WHERE id = %(id)s AND due = %(lease)s::timestamptz",
        id=job["id"],
        lease=job["lease"],
    )


def remove(job: Row) -> None:
    run_unsynced(
        "DELETE FROM jobs WHERE id = %(id)s AND due = %(lease)s::timestamptz",
        id=job["id"],
        lease=job["lease"],
    )


def run_next(pause: Callable[[float], bool]) -> bool:
    """Run the next due job for a time slice, of the tasks that wait for no host. Return False if
    there is none. `pause` waits for a number of seconds and returns True if the process is
    stopping."""
    job = take(_tasks(is_apart=False))
    if job:
        _run_job(job, pause)
    return job is not None


def fetch_next(pause: Callable[[float], bool]) -> bool:
    """Run the next job that waits for other hosts as run_next does, of a user whom no other thread
    serves."""
    with _taking:
        job = take(_tasks(is_apart=True), except_users=_fetching)
        user_id = job["argument"]["user_id"] if job else 0
        _fetching.update([user_id] if job else [])
    if job:
        try:
            _run_job(job, pause)
        finally:
            _fetching.discard(user_id)
    return job is not None


def _run_job(job: Row, pause: Callable[[float], bool]) -> None:
    _note_served(job)
    handler = registered().handlers[job["task"]]
    try:
        if job["lost"] > MAX_LOST and handler.abandon:
            handler.abandon(job["argument"])
        done = _run(handler, job, pause)
    except Move as move:
        move_to(job, move.task)
    except Later as later:
        put_back(job, delay=later.seconds, failed=False)
    except Exception as error:
        metrics.count("job_failures")
        current_app.logger.error(
            "job %s (%s) failed and will be retried", job["id"], job["task"], exc_info=error
        )
        put_back(job, delay=min(2 ** min(job["attempts"], 10), _MAX_DELAY), failed=True)
    else:
        if done:
            remove(job)
        else:
            stays = handler.stays is not None and handler.stays(job["argument"])
            put_back(job, delay=0, failed=False, stays=stays)


def _run(handler: Handler, job: Row, pause: Callable[[float], bool]) -> bool:
    began = now = monotonic()
    while not handler.run(job["argument"]):
        if job["lost"] > 1:
            reset_lost(job)
            job["lost"] = 0
        elapsed = monotonic() - now
        if pause(max(elapsed, _MIN_PAUSE)) or monotonic() - began > SLICE_SECONDS:
            return False
        now = monotonic()
    return True


class Worker(Background):
    name = "jobs"
    _idle_due = 0.0  # monotonic()

    def work(self) -> None:
        while run_next(self.stopping.wait) and not self.stopping.is_set():
            pass
        if monotonic() >= self._idle_due:
            self._idle_due = monotonic() + IDLE_SECONDS
            for call in registered().idle:
                call()

    def end(self) -> None:
        release()


class Fetcher(Background):
    name = "jobs that wait for other hosts"

    def work(self) -> None:
        while fetch_next(self.stopping.wait) and not self.stopping.is_set():
            pass
