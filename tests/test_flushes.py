"""Those who write while others wait behind them share one flush of the disk (Database.write)."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr import database, private_postgres, turns
from linkmgr.turns import Pool
from tests.conftest import Client
from tests.machines import answers
from tests.targets import wait_until
from tests.test_turns import Held

WRITE = """
    INSERT INTO plans (name, free, limits) VALUES (%(name)s, false, '{}')
    RETURNING pg_current_wal_insert_lsn()::text AS position
"""
FLUSHED = "SELECT pg_current_wal_flush_lsn() > %(position)s::pg_lsn AS flushed"

Meanwhile = dict[str, Callable[[database.Database], Any]]


class Writers:
    """Jobs that write, and tell whether that was on the disk when they went on."""

    def __init__(self, app: Flask, pool: Pool) -> None:
        self.app, self.pool = app, pool

    def write(self, name: str) -> Any:
        with self.app.app_context():
            written = database.run(WRITE, name=name)
            assert written
            [found] = database.rows(FLUSHED, **written)
            return found["flushed"]

    def submit(self, name: str) -> Future[Any]:
        return self.pool.submit(self.write, name)

    def known(self) -> None:
        """A process does without it until it has a connection."""
        self.submit("known").result()


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those that are there for several writes."""
    seen: list[str] = []
    execute: Callable[..., Any] = database.Database.execute

    def count(self: database.Database, sql: str, params: database.Row, **options: Any) -> Any:
        if sql == database._FLUSH:
            seen.append(sql)
        return execute(self, sql, params, **options)

    monkeypatch.setattr(database.Database, "execute", count)
    return seen


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    monkeypatch.setattr(turns, "PATIENCE", 60)
    made = Pool(4)
    yield made
    made.shutdown(wait=False)


@pytest.fixture
def writers(make_app: Callable[..., Flask], flushing: str, admin: Client, pool: Pool) -> Iterator[Writers]:
    app = make_app(database_url=flushing)
    yield Writers(app, pool)
    with app.app_context():
        database.database().drop()


def crash(dsn: str) -> None:
    """Kills one of the server's processes, whereupon it gives up what it holds in memory, and starts anew."""
    with closing(psycopg2.connect(dsn)) as killed, closing(psycopg2.connect(dsn)) as other, other.cursor() as cursor:
        other.autocommit = True
        os.kill(killed.info.backend_pid, signal.SIGKILL)
        with suppress(psycopg2.OperationalError):
            while True:
                cursor.execute("SELECT 1")
    wait_until(lambda: answers(dsn))


def test_who_writes_alone_waits_for_his_own_commit(writers: Writers, flushes: list[str]) -> None:
    assert [writers.submit(name).result() for name in ("one", "two")] == [True, True]
    assert flushes == []


def test_those_who_write_behind_each_other_share_a_flush(writers: Writers, flushes: list[str]) -> None:
    writers.known()
    held = Held(writers.pool)
    held.begun.wait()
    submitted = [writers.submit(name) for name in ("one", "two", "three")]
    held.end()
    assert [each.result() for each in submitted] == [True] * 3
    assert len(flushes) == 1


def test_a_write_waits_for_its_own_commit_behind_a_pooler_whose_connections_outlast_a_crash(
    make_app: Callable[..., Flask], pool: Pool, flushes: list[str], admin: Client
) -> None:
    writers = Writers(make_app(prepare="0"), pool)
    writers.known()
    held = Held(pool)
    held.begun.wait()
    submitted = [writers.submit(name) for name in ("one", "two", "three")]
    held.end()
    for each in submitted:
        each.result()
    assert flushes == []


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """What happens while a statement is under way, of one of several who write at the same time."""
    happens: Meanwhile = {}
    execute: Callable[..., Any] = database.Database.execute

    def run(self: database.Database, sql: str, params: database.Row, **options: Any) -> Any:
        found = execute(self, sql, params, **options)
        if sql in happens:
            happens.pop(sql)(self)
        return found

    monkeypatch.setattr(database.Database, "execute", run)
    monkeypatch.setattr(turns, "others", lambda: True)
    monkeypatch.setattr(turns, "together", lambda finish: finish())
    return happens


def test_a_flush_does_not_serve_what_is_written_while_it_runs(
    writers: Writers, flushes: list[str], meanwhile: Meanwhile
) -> None:
    writers.known()
    later: list[int] = []
    meanwhile[database._FLUSH] = lambda used: later.append(next(used._moments))
    writers.write("one")
    assert len(flushes) == 1
    with writers.app.app_context():
        database.database()._flush(*later)
    assert len(flushes) == 2


def test_a_flush_does_not_serve_a_statement_that_it_falls_into(
    writers: Writers, flushes: list[str], meanwhile: Meanwhile
) -> None:
    writers.known()
    meanwhile[WRITE] = lambda used: used._flush(next(used._moments))
    writers.write("one")
    assert len(flushes) == 2


def test_a_crash_during_the_statement_counts(writers: Writers, meanwhile: Meanwhile) -> None:
    def crash(used: database.Database) -> None:
        used._servers += 1

    writers.known()
    meanwhile[WRITE] = crash
    with pytest.raises(psycopg2.OperationalError):
        writers.write("one")


def test_all_that_is_answered_is_on_the_disk_whoever_flushed_it(writers: Writers) -> None:
    submitted = [writers.submit(str(number)) for number in range(200)]
    assert all(each.result() for each in submitted)


def test_one_that_is_refused_holds_up_nobody(writers: Writers) -> None:
    writers.known()
    held = Held(writers.pool)
    held.begun.wait()
    submitted = [writers.submit(name) for name in ("one", "one", "two", "two")]
    held.end()
    assert [isinstance(each.exception(), psycopg2.errors.UniqueViolation) for each in submitted] == [False, True] * 2


def test_what_a_crash_may_have_taken_is_not_answered_with_success(
    make_app: Callable[..., Flask], pool: Pool, flushes: list[str], tmp_path: Path
) -> None:
    with private_postgres.server(tmp_path / "postgres") as dsn:
        app = make_app(database_url=dsn)
        app.test_cli_runner().invoke(args=["database", "create"])
        writers = Writers(app, pool)
        writers.known()
        held = Held(pool)
        held.begun.wait()
        resting, other = writers.submit("lost"), Held(pool)
        held.end()
        other.begun.wait()
        crash(dsn)
        with app.app_context():
            assert database.row("SELECT 1 AS found")
        other.end()
        assert isinstance(resting.exception(), psycopg2.OperationalError)
        assert len(flushes) == 1, "the flush is none of what was lost"
