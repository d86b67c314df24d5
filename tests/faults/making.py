"""How each fault is made."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import NamedTuple

import psycopg2

from tests.faults.stage import Stage

HOLD = 4  # seconds, of faults that last
_KILLS, _BETWEEN_KILLS = 6, 0.7  # seconds
ALL = ("writes", "reads", "visits")
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'linkmgr'"


class Fault(NamedTuple):
    title: str
    make: Callable[[Stage], None]
    unharmed: tuple[str, ...] = ()  # what must not notice it
    drops: bool = False  # whether requests may be left without any answer


def _postmaster(number: signal.Signals) -> Callable[[Stage], None]:
    return lambda stage: os.kill(stage.database.postmaster(), number)


def _kill_backend(stage: Stage) -> None:
    [(pid,)] = stage.database.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'linkmgr' LIMIT 1")
    os.kill(pid, signal.SIGKILL)


def _terminate_backends(stage: Stage) -> None:
    stage.database.ask(_TERMINATE)


def _take_slots(stage: Stage) -> None:
    """Everybody who is let in stays, and the service is thrown out."""
    taken: list[psycopg2.extensions.connection] = []
    with closing(stage.database.connect()) as connection, connection.cursor() as cursor:
        end = time.monotonic() + HOLD
        while time.monotonic() < end:
            cursor.execute(_TERMINATE)
            try:
                while True:
                    taken.append(stage.database.connect())
            except psycopg2.OperationalError:
                stage.database.wait(0.1)
    for each in taken:
        each.close()


def _lock_table(stage: Stage) -> None:
    """As CREATE INDEX does: the table can be read."""
    with closing(stage.database.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE links IN SHARE MODE")
        stage.database.wait(HOLD)


def _fill_disk(stage: Stage) -> None:
    filling = stage.database.server.data.parent / "filling"
    try:
        with filling.open("wb", buffering=0) as file:
            end = time.monotonic() + HOLD
            while time.monotonic() < end:
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:  # full; what is freed meanwhile is taken as well
                    stage.database.wait(0.1)
    finally:
        filling.unlink()


def _swallow(statement: bytes) -> Callable[[Stage], None]:
    """The answer of every third."""

    def swallow(stage: Stage) -> None:
        assert stage.proxy
        seen = count(1)
        stage.proxy.swallows = lambda text: statement in text and next(seen) % 3 == 0
        stage.database.wait(HOLD)
        stage.proxy.swallows = lambda _text: False

    return swallow


def _kill_worker(stage: Stage) -> None:
    os.kill(min(stage.workers()), signal.SIGKILL)


def _kill_workers(stage: Stage) -> None:
    for _ in range(_KILLS):
        _kill_worker(stage)
        stage.database.wait(_BETWEEN_KILLS)


def _reload(stage: Stage) -> None:
    old = stage.workers()
    os.kill(stage.master, signal.SIGHUP)
    stage.database.until(lambda: not old & stage.workers(), 30)


def _kill_redis(stage: Stage) -> None:
    os.kill(stage.redis, signal.SIGKILL)
    stage.database.wait(HOLD)


def _freeze_redis(stage: Stage) -> None:
    os.kill(stage.redis, signal.SIGSTOP)
    stage.database.wait(HOLD)
    os.kill(stage.redis, signal.SIGCONT)


RESTART = Fault("PostgreSQL is restarted", _postmaster(signal.SIGINT))
STOP = Fault("PostgreSQL is stopped at once", _postmaster(signal.SIGQUIT))
KILL = Fault("PostgreSQL is killed (-9)", _postmaster(signal.SIGKILL))
KILL_BACKEND = Fault("one of its processes is killed (-9)", _kill_backend)
TERMINATE = Fault("all connections are ended", _terminate_backends)
SLOTS = Fault("others take all connections, 4 s", _take_slots)
LOCK = Fault("a table is locked against writing, 4 s", _lock_table, unharmed=("visits",))
WORKER = Fault("a worker is killed (-9)", _kill_worker, drops=True)
WORKERS = Fault("workers are killed (-9), 6 times", _kill_workers, drops=True)
RELOAD = Fault("the service is reloaded (HUP)", _reload, unharmed=ALL)
ANSWER = Fault("answers to writes are lost, 4 s", _swallow(b"INSERT INTO links"))
VISITS_ANSWER = Fault("answers to stored visits are lost, 4 s", _swallow(b"INSERT INTO visit_spools"), unharmed=ALL)
FREEZE = Fault("Redis is frozen, 4 s", _freeze_redis, unharmed=ALL)
NO_REDIS = Fault("Redis is killed (-9)", _kill_redis, unharmed=ALL)
DISK = Fault("the disk is full, 4 s", _fill_disk)
