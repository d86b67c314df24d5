"""Visits on their way to the database: nobody waits for them, and little can keep them from arriving."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg2
import pytest
from flask import Flask

from linkmgr import database
from linkmgr import recorder as module
from linkmgr.recorder import Recorder, Visit
from tests.conftest import Client, free_port, serving
from tests.targets import FIREFOX, Target, wait_until


@pytest.fixture
def recorder(app: Flask) -> Recorder:
    return Recorder(app)


@pytest.fixture
def away(make_app: Callable[..., Flask]) -> Iterator[Recorder]:
    """Of a service that cannot reach its database."""
    made = Recorder(make_app(database_url="postgresql://nobody@127.0.0.1:1/none"))
    yield made
    made._waiting.clear()


def visit_of(target: Target, owner: Client, country: str = "Peru") -> Visit:
    return Visit(target.id, owner.id, time.monotonic(), "00", country, "a.example", "Firefox", "Linux", None)


def countries(target: Target) -> dict[str, str]:
    found: dict[str, str] = target.statistics()["topCountries"]
    return found


def test_nobody_waits_for_a_lock_and_the_visit_is_counted_when_it_is_gone(
    recorder: Recorder, target: Target, alice: Client, dsn: str
) -> None:
    with psycopg2.connect(dsn) as blocker, blocker.cursor() as cursor:
        cursor.execute("LOCK TABLE totals")
        recorder.add(visit_of(target, alice))
    blocker.close()
    wait_until(lambda: target.clicks == 1)


def test_a_visit_that_cannot_be_stored_takes_no_others_with_it(
    recorder: Recorder, target: Target, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for country in ("Peru", "No\0where", "Chile"):
        recorder._waiting.append(visit_of(target, alice, country))
    assert recorder.flush()
    assert countries(target) == {"Chile": "1", "Peru": "1"}
    assert [record.message for record in caplog.records] == ["1 visits were not recorded"]


def test_visits_wait_for_a_database_that_is_away(
    recorder: Recorder, away: Recorder, target: Target, alice: Client
) -> None:
    away._waiting.extend(visit_of(target, alice, country) for country in ("Peru", "Chile", "Peru"))
    assert not away.flush()
    recorder._waiting.extend(away._waiting)
    assert recorder.flush()
    assert countries(target) == {"Peru": "2", "Chile": "1"}


def test_a_connection_that_broke_loses_nothing_and_doubles_nothing(
    recorder: Recorder, target: Target, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    recorder._waiting.append(visit_of(target, alice))
    assert recorder.flush()
    with raw.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'linkmgr'")
    recorder._waiting.append(visit_of(target, alice))
    wait_until(recorder.flush)
    assert target.clicks == 2


def test_what_waits_is_bounded(
    away: Recorder, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    monkeypatch.setattr(module, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(away, "_thread", object())
    for _ in range(25):
        away.add(visit_of(target, alice))
    assert len(away._waiting) <= 10
    assert {record.message for record in caplog.records} == {"4 visits were not recorded"}


def test_what_nobody_foresaw_does_not_end_the_recording(
    recorder: Recorder, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_statement: str) -> None:
        monkeypatch.setattr(module, "row", database.row)
        raise OSError

    monkeypatch.setattr(module, "row", fail)
    for _ in range(3):
        recorder.add(visit_of(target, alice))
    wait_until(lambda: target.clicks == 3)


# --- months


def parts(cursor: psycopg2.extensions.cursor) -> list[str]:
    cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'visits'::regclass ORDER BY 1")
    return [part for (part,) in cursor.fetchall()]


@pytest.mark.parametrize("mode", [None, "ACCESS SHARE", "SHARE UPDATE EXCLUSIVE"])
def test_a_month_to_come_is_made_and_waited_for_by_nobody(
    recorder: Recorder, target: Target, alice: Client, raw: psycopg2.extensions.connection, mode: str | None
) -> None:
    """As at the beginning of a month, also while a dump is taken or somebody else works on the table."""
    with raw.cursor() as cursor:
        before = parts(cursor)
        cursor.execute(f"DROP TABLE {before[-1]}")
        if mode:
            cursor.execute(f"BEGIN; LOCK TABLE visits IN {mode} MODE")
        recorder._waiting.append(visit_of(target, alice))
        assert recorder.flush()
        cursor.execute("COMMIT")
        assert target.clicks == 1
        cursor.execute("SELECT make_months()")
        assert parts(cursor) == before


def test_a_month_that_goes_missing_is_made_again(
    recorder: Recorder, target: Target, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    """As when a database is replaced under a running service."""
    recorder._waiting.append(visit_of(target, alice))
    assert recorder.flush()
    with raw.cursor() as cursor:
        before = parts(cursor)
        cursor.execute(f"DROP TABLE {before[0]}")
        recorder._waiting.append(visit_of(target, alice))
        wait_until(recorder.flush)
        assert target.clicks == 2
        assert parts(cursor) == before


@pytest.mark.slow
def test_a_service_that_is_stopped_stores_what_waits(dsn: str, tmp_path: Path, target: Target) -> None:
    settings = {"database_url": dsn, "data_dir": str(tmp_path)}
    with serving(free_port(), tmp_path / "log", "--workers", "1", **settings) as base:
        for _ in range(20):
            with urlopen(Request(f"{base}/q/{target.code}", headers={"User-Agent": FIREFOX})):
                pass
    assert target.clicks == 20
