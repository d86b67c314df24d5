"""The threads of a worker take turns: one works, and another steps in when it is held up by something slow.

Where PostgreSQL is on the same machine, more of them at work at a time would be slower: they pass the interpreter's
lock to and fro, and each needs a connection, whose processes push each other out of the processor's caches.

What all of them must wait for, as writers do for the disk, they wait for together: each lets those behind it go first,
and the last one has it done for all.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Any

from psycopg2 import ProgrammingError
from psycopg2.extensions import parse_dsn

# Seconds that a request may take before those that wait behind it get another thread, and that it lets them go first.
PATIENCE = 0.01
_HERE = ("", "localhost", "127.0.0.1", "::1")


def at_once(threads: int) -> int:
    """How many of them work at a time.  All, when they spend their time in waiting for another machine, which a
    pooler on this one may lead to."""
    environ = os.environ
    url = environ.get("LINKMGR_DATABASE_URL")
    if not url:
        return 1
    try:
        given = parse_dsn(url)
    except ProgrammingError:  # whose text may hold a password; the settings are about to be refused without it
        return threads
    named = given.get("hostaddr") or given.get("host") or environ.get("PGHOSTADDR") or environ.get("PGHOST") or ""
    here = all(host in _HERE or host.startswith(("/", "@")) for host in named.split(","))
    unknown = environ.get("LINKMGR_PREPARE") == "0" or given.get("service") or environ.get("PGSERVICE")
    return 1 if here and not unknown else threads


class _Turn:
    def __init__(self) -> None:
        self.since = inf  # when its present job began, if it has one
        self.over = False  # somebody else has it; the job is finished all the same


class Pool:
    """As much of an executor as gunicorn needs."""

    def __init__(self, threads: int, at_once: int = 1) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[..., Any], Any] | None] = SimpleQueue()
        self._turns = threading.Semaphore(at_once)
        self._latest = _Turn()
        self.resting: deque[threading.Lock] = deque()  # of threads that let others go first; released, they go on
        self._spare = 0  # threads that wait for a turn
        self._changing = threading.Lock()  # guards `_spare`, and that a turn ends once
        for _ in range(threads):
            threading.Thread(target=self._take_turns, daemon=True).start()

    def submit(self, call: Callable[..., Any], argument: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, call, argument))
        return future

    def shutdown(self, *, wait: bool) -> None:
        """No thread begins another job, once those are done that wait."""
        assert not wait
        self._jobs.put(None)

    def patience(self) -> float:
        """Seconds after which `relieve` has to be called."""
        if self._jobs.empty():
            return inf
        latest = self._latest
        if latest.over or latest.since == inf:  # another thread is about to take the turn, or this one the next job
            return PATIENCE
        return latest.since + PATIENCE - monotonic()

    def relieve(self) -> None:
        """Gives another thread its turn when jobs wait behind one that takes too long."""
        if self.patience() <= 0:
            self._end(self._latest)

    def may_rest(self) -> bool:
        """Whether jobs wait, and a thread to do them."""
        return self._spare > 0 and not self._jobs.empty()

    def rest(self, turn: _Turn) -> None:
        """Gives the turn away until no job waits; but not for long."""
        if not self.may_rest():
            return
        woken = threading.Lock()
        woken.acquire()
        self.resting.append(woken)
        self._end(turn)
        woken.acquire(timeout=PATIENCE)  # a lock whose time is up stays among those that are woken, which does no harm

    def wake(self) -> None:
        """One of those that rest."""
        with suppress(IndexError):
            self.resting.popleft().release()

    def _end(self, turn: _Turn) -> None:
        with self._changing:
            if turn.over:
                return
            turn.over = True
        self._turns.release()

    def _begin(self) -> _Turn:
        with self._changing:
            self._spare += 1
        self._turns.acquire()
        with self._changing:
            self._spare -= 1
        self._latest = turn = _Turn()
        return turn

    def _take_turns(self) -> None:
        while True:
            turn = self._begin()
            _own.pool, _own.turn = self, turn
            while not turn.over:
                if self.resting and self._jobs.empty():
                    self.wake()  # one, who wakes the others once it has finished
                job = self._jobs.get()
                if job is None:
                    self._jobs.put(None)  # for the next thread
                    self._end(turn)
                    return
                turn.since = monotonic()
                future, call, argument = job
                try:
                    future.set_result(call(argument))
                except BaseException as error:
                    future.set_exception(error)
                turn.since = inf


_own = threading.local()  # the pool of this thread and its turn, where it has them


def others() -> bool:
    """Whether others can go first, or let this thread go first."""
    pool: Pool | None = getattr(_own, "pool", None)
    return pool is not None and (pool.may_rest() or bool(pool.resting))


def together(finish: Callable[[], None]) -> None:
    """Lets the jobs that wait go first, and finishes.  Those that let this one go first finish after it."""
    pool: Pool = _own.pool
    pool.rest(_own.turn)
    try:
        finish()
    finally:
        while pool.resting:
            pool.wake()
