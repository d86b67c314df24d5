"""The threads of a worker take turns: one works, and another steps in when it is held up by something slow.

Where PostgreSQL is on the same machine, more of them at work at a time would be slower: they pass the interpreter's
lock to and fro, and each has a connection, whose processes push each other out of the processor's caches.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Any

from psycopg2 import ProgrammingError
from psycopg2.extensions import parse_dsn

PATIENCE = 0.01  # seconds that a request may take before those that wait behind it get another thread
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
            self._latest.over = True
            self._turns.release()

    def _take_turns(self) -> None:
        while True:
            self._turns.acquire()
            self._latest = turn = _Turn()
            while not turn.over:
                job = self._jobs.get()
                if job is None:
                    self._jobs.put(None)  # for the next thread
                    self._turns.release()
                    return
                turn.since = monotonic()
                future, call, argument = job
                try:
                    future.set_result(call(argument))
                except BaseException as error:
                    future.set_exception(error)
                turn.since = inf
