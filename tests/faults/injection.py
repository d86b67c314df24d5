"""The faults, and the functions that inject them."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import NamedTuple

import psycopg2

from tests.faults.deployment import Deployment
from tests.faults.load import IDLE_SECONDS
from tests.support import machines

HOLD = 4  # seconds that a lasting fault lasts
_FREEZE = 8  # longer than the deadlines of the service
_KILLS, _BETWEEN_KILLS = 6, 0.7  # seconds
ALL = ("writes", "reads", "visits")
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'linkmgr'"


class Fault(NamedTuple):
    title: str
    inject: Callable[[Deployment], object]
    unaffected: tuple[str, ...] = ()  # kinds of requests that must not fail
    drops: bool = False  # connections may be closed without a response
    is_idle: bool = False  # for clients whose connections are idle for seconds


def _postmaster(number: signal.Signals) -> Callable[[Deployment], object]:
    return lambda deployment: os.kill(deployment.database.postmaster(), number)


def _freeze(deployment: Deployment) -> None:
    machines.signal_all(deployment.database.server, signal.SIGSTOP)
    time.sleep(_FREEZE)
    machines.signal_all(deployment.database.server, signal.SIGCONT)


def _kill_backend(deployment: Deployment) -> None:
    [(pid,)] = deployment.database.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'linkmgr' LIMIT 1")
    os.kill(pid, signal.SIGKILL)


def _terminate_backends(deployment: Deployment) -> None:
    deployment.database.query(_TERMINATE)


def _take_slots(deployment: Deployment) -> None:
    """Terminate the connections of the service, and occupy all connection slots."""
    connections: list[psycopg2.extensions.connection] = []
    with closing(deployment.database.connect()) as admin, admin.cursor() as cursor:
        end = time.monotonic() + HOLD
        while time.monotonic() < end:
            cursor.execute(_TERMINATE)
            try:
                while True:
                    connections.append(deployment.database.connect())
            except psycopg2.OperationalError:
                deployment.database.wait(0.1)
    for connection in connections:
        connection.close()


def _lock_table(deployment: Deployment) -> None:
    """Block writes to a table, as CREATE INDEX does."""
    with closing(deployment.database.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE links IN SHARE MODE")
        deployment.database.wait(HOLD)


def _fill_disk(deployment: Deployment) -> None:
    filling = deployment.database.server.data.parent / "filling"
    try:
        with filling.open("wb", buffering=0) as file:
            end = time.monotonic() + HOLD
            while time.monotonic() < end:
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:  # the disk is full; fill space again that is freed
                    deployment.database.wait(0.1)
    finally:
        filling.unlink()


def _drop_responses(statement: bytes) -> Callable[[Deployment], object]:
    """Drop the response to every third message that has this SQL."""

    def drop(deployment: Deployment) -> None:
        assert deployment.proxy
        executions = count(1)
        before = deployment.proxy.dropped
        deployment.proxy.drops = lambda sql: statement in sql and next(executions) % 3 == 0
        deployment.database.wait(HOLD)
        deployment.proxy.drops = lambda _sql: False
        assert deployment.proxy.dropped > before, f"no message has {statement.decode()}"

    return drop


def _kill_worker(deployment: Deployment) -> None:
    os.kill(min(deployment.workers()), signal.SIGKILL)


def _kill_workers(deployment: Deployment) -> None:
    for _ in range(_KILLS):
        _kill_worker(deployment)
        deployment.database.wait(_BETWEEN_KILLS)


def _reload(deployment: Deployment) -> None:
    deployment.database.wait(IDLE_SECONDS)
    old = deployment.workers()
    os.kill(deployment.master, signal.SIGHUP)
    deployment.database.until(lambda: not old & deployment.workers(), 30)


def _kill_redis(deployment: Deployment) -> None:
    os.kill(deployment.redis, signal.SIGKILL)
    deployment.database.wait(HOLD)


def _freeze_redis(deployment: Deployment) -> None:
    os.kill(deployment.redis, signal.SIGSTOP)
    deployment.database.wait(HOLD)
    os.kill(deployment.redis, signal.SIGCONT)


RESTART = Fault("PostgreSQL is restarted", _postmaster(signal.SIGINT))
STOP = Fault("PostgreSQL is stopped immediately", _postmaster(signal.SIGQUIT))
KILL = Fault("PostgreSQL is killed (-9)", _postmaster(signal.SIGKILL))
FROZEN = Fault("PostgreSQL is frozen, 8 s", _freeze)
KILL_BACKEND = Fault("a PostgreSQL process is killed (-9)", _kill_backend)
TERMINATE = Fault("all connections are terminated", _terminate_backends)
SLOTS = Fault("other clients occupy all connections, 4 s", _take_slots)
LOCK = Fault("writes to a table are locked, 4 s", _lock_table, unaffected=("visits",))
WORKER = Fault("a worker is killed (-9)", _kill_worker, drops=True)
WORKERS = Fault("workers are killed (-9), 6 times", _kill_workers, drops=True)
RELOAD = Fault("the service is reloaded (HUP)", _reload, unaffected=ALL, is_idle=True)
RESPONSE = Fault("responses to commits are lost, 4 s", _drop_responses(b"COMMIT"))
VISITS_RESPONSE = Fault("responses to stored visits are lost, 4 s", _drop_responses(b"store_visits("), unaffected=ALL)
FREEZE = Fault("Redis is frozen, 4 s", _freeze_redis, unaffected=ALL)
NO_REDIS = Fault("Redis is killed (-9)", _kill_redis, unaffected=ALL)
DISK = Fault("the disk is full, 4 s", _fill_disk)
