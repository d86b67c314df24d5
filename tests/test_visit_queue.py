"""The queue of visits: visitors do not wait for the database, and no failure loses or doubles a visit."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg2
import pytest
from psycopg2.errors import QueryCanceled

from linkmgr.core.database import statements
from linkmgr.visits import store
from linkmgr.visits.queue import MAX_TRIES, SET_ASIDE, VisitQueue
from tests.conftest import Client
from tests.support.servers import free_port, serving
from tests.support.targets import FIREFOX, Target, wait_until
from tests.support.visit_queues import counter, countries, die, files, visit_of

pytestmark = pytest.mark.slow


def test_a_visit_waits_for_a_lock_and_the_visitor_does_not(
    recorder: VisitQueue, target: Target, alice: Client, dsn: str
) -> None:
    with psycopg2.connect(dsn) as blocker, blocker.cursor() as cursor:
        cursor.execute("LOCK TABLE totals")
        recorder.add(visit_of(target, alice))
    blocker.close()
    wait_until(lambda: target.clicks == 1)


def test_a_visit_that_cannot_be_stored_does_not_affect_others(
    recorder: VisitQueue, target: Target, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for country in ("Peru", "No\0where", "Chile"):
        recorder.add(visit_of(target, alice, country))
    assert recorder.flush()
    assert countries(target) == {"Chile": "1", "Peru": "1"}
    assert [record.message for record in caplog.records] == ["1 visits were lost"]
    assert (counter(recorder, "visits_recorded"), counter(recorder, "visits_lost")) == (2, 1)


def test_a_broken_connection_neither_loses_nor_doubles_visits(
    recorder: VisitQueue, target: Target, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    # Those of other services stay: their next write would fail in another test.
    pids = [pooled.connection.info.backend_pid for pooled in recorder._app.extensions["linkmgr_database"]._idle]
    with raw.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [pids])
    assert pids
    recorder.add(visit_of(target, alice))
    wait_until(recorder.flush)
    assert target.clicks == 2


def test_an_unexpected_error_does_not_stop_the_queue(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add

    def fail(*_arguments: object) -> bool:
        monkeypatch.setattr(store, "add", add)
        raise RuntimeError

    monkeypatch.setattr(store, "add", fail)
    for _ in range(3):
        recorder.add(visit_of(target, alice))
    wait_until(lambda: target.clicks == 3)


def test_a_batch_that_exceeds_its_timeout_is_followed_by_smaller_ones(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, sizes, canceled = store.add, list[int](), list[int]()

    def add_few(spool: str, start: int, stop: int, batch: str) -> bool:
        number = len(json.loads(batch))
        (canceled if number > 30 else sizes).append(number)
        if number > 30:
            raise QueryCanceled
        return add(spool, start, stop, batch)

    for _ in range(100):
        recorder.add(visit_of(target, alice))
    monkeypatch.setattr(store, "add", add_few)
    wait_until(recorder.flush)
    monkeypatch.setattr(store, "add", add)
    wait_until(recorder.flush)
    assert target.clicks == 100
    assert sum(sizes) <= 100
    assert sum(number == 100 for number in canceled) <= 1


def test_a_plan_that_was_made_for_empty_tables_is_made_again_after_a_timeout(
    recorder: VisitQueue,
    target: Target,
    alice: Client,
    raw: psycopg2.extensions.connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL takes a scan of a table for free if the table was analyzed while it was empty."""
    add, canceled = store.add, []

    def counting(spool: str, start: int, stop: int, batch: str) -> bool:
        try:
            return add(spool, start, stop, batch)
        except QueryCanceled:
            canceled.append(len(json.loads(batch)))
            raise

    with raw.cursor() as cursor:
        cursor.execute("TRUNCATE visitors; ANALYZE visitors")
        with recorder._app.app_context():
            statements.database().close_idle()
        recorder.add(visit_of(target, alice))
        assert recorder.flush()
        cursor.execute("INSERT INTO visitors SELECT -n, int4send(n), now() FROM generate_series(1, 200000) n")
        monkeypatch.setattr(store, "PRELUDE", f"{store.PRELUDE}SET LOCAL statement_timeout = 700; ")
        monkeypatch.setattr(store, "add", counting)
        for number in range(200):
            recorder.add(replace(visit_of(target, alice), visitor=f"{number:04x}"))
        assert recorder.flush()
        cursor.execute("TRUNCATE visitors")
    assert target.clicks == 201
    # None if the server has analyzed the table meanwhile, a second one on a machine that is busy. The old plan would
    # cancel eight.
    assert canceled in ([], [200], [200, 100])


@pytest.fixture
def slow_visits(raw: psycopg2.extensions.connection) -> Iterator[None]:
    """Visits from Chile take longer to store than a statement may take."""
    with raw.cursor() as cursor:
        cursor.execute(
            """
            CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM pg_sleep(1) WHERE NEW.country = 'Chile';
                RETURN NEW;
            END $$;
            CREATE TRIGGER sleep BEFORE INSERT ON visits FOR EACH ROW EXECUTE FUNCTION sleep()
            """
        )
        yield
        cursor.execute("DROP FUNCTION sleep CASCADE")


@pytest.mark.usefixtures("slow_visits")
def test_a_visit_that_takes_too_long_is_set_aside_and_delays_no_other(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PRELUDE", f"{store.PRELUDE}SET LOCAL statement_timeout = 500; ")
    for country in ["Peru"] * 20 + ["Chile"] + ["Peru"] * 20:
        recorder.add(visit_of(target, alice, country))
    wait_until(lambda: recorder.flush() and target.clicks == 40)
    assert countries(target) == {"Peru": "40"}
    [line] = (recorder._folder / SET_ASIDE).read_text().splitlines()
    assert json.loads(line)["country"] == "Chile"
    assert counter(recorder, "visits_lost") == 1


@pytest.mark.usefixtures("slow_visits")
def test_visits_that_the_server_stores_after_the_deadline_are_stored_once(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorder._app.app_context():
        monkeypatch.setattr(statements.database(), "seconds", 0.5)
    for country in ["Peru"] * 20 + ["Chile"] + ["Peru"] * 20:
        recorder.add(visit_of(target, alice, country))
    wait_until(lambda: recorder.flush() and target.clicks == 41)
    assert not (recorder._folder / SET_ASIDE).exists()


@pytest.mark.usefixtures("slow_visits")
def test_no_visit_is_set_aside_while_the_database_stores_nothing(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    recorder.add(visit_of(target, alice))
    with psycopg2.connect(dsn) as blocker, blocker.cursor() as cursor, monkeypatch.context() as short:
        with recorder._app.app_context():
            short.setattr(statements.database(), "seconds", 0.3)
        cursor.execute("LOCK TABLE visit_spools")
        for _ in range(MAX_TRIES + 3):
            assert not recorder.flush()
    blocker.close()
    wait_until(lambda: recorder.flush() and target.clicks == 1)
    assert not (recorder._folder / SET_ASIDE).exists()


# --- months


def parts(cursor: psycopg2.extensions.cursor) -> list[str]:
    cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'visits'::regclass ORDER BY 1")
    return [part for (part,) in cursor.fetchall()]


@pytest.mark.parametrize("mode", [None, "ACCESS SHARE"])
def test_a_missing_partition_is_created_also_during_a_dump(
    recorder: VisitQueue, target: Target, alice: Client, raw: psycopg2.extensions.connection, mode: str | None
) -> None:
    """A partition is missing in a new month without a purge, and when a database is replaced while the service runs."""
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    with raw.cursor() as cursor:
        before = parts(cursor)
        cursor.execute(f"DROP TABLE visits_{datetime.now(UTC):%Y_%m}")
        if mode:
            cursor.execute(f"BEGIN; LOCK TABLE visits IN {mode} MODE")
        recorder.add(visit_of(target, alice))
        wait_until(recorder.flush)
        cursor.execute("COMMIT")
        assert target.clicks == 2
        assert parts(cursor) == before


def test_a_visit_is_stored_in_its_month_after_any_delay(
    recorder: VisitQueue, target: Target, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    long_ago, now = time.time() - 200 * 86400, time.time()
    for at in (now, long_ago, now + 3600):
        recorder.add(visit_of(target, alice, at=at))
    assert recorder.flush()
    with raw.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM min(at))::float8, max(at) <= now(), tableoid::regclass::text FROM visits"
            " GROUP BY 3 ORDER BY 1"
        )
        [old, new] = cursor.fetchall()
        cursor.execute(f"DROP TABLE {old[2]}")
    assert old[0] == pytest.approx(long_ago)
    assert new[1]
    assert recorder.flush()


@pytest.mark.services
def test_a_service_that_is_stopped_stores_queued_visits(dsn: str, tmp_path: Path, target: Target) -> None:
    settings = {"database_url": dsn, "data_dir": str(tmp_path)}
    with serving(free_port(), tmp_path / "log", "--workers", "1", **settings) as base:
        for _ in range(20):
            with urlopen(Request(f"{base}/q/{target.code}", headers={"User-Agent": FIREFOX})):
                pass
    assert target.clicks == 20
    assert files(tmp_path) == []


@pytest.mark.services
def test_visits_that_a_killed_service_left_are_stored_at_the_next_start(
    dsn: str, tmp_path: Path, target: Target, alice: Client
) -> None:
    die(tmp_path, target, alice)
    with serving(free_port(), tmp_path / "log", "--workers", "2", database_url=dsn, data_dir=str(tmp_path)):
        wait_until(lambda: target.clicks == 3)


def test_the_first_visitor_of_a_worker_does_not_wait_for_patterns_of_browsers(tmp_path: Path) -> None:
    program = "import ua_parser, app, linkmgr.serving as s; s.load(app.app); print('parser' in vars(ua_parser))"
    environment = os.environ | {"LINKMGR_DATA_DIR": str(tmp_path)}
    printed = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
    assert printed == "True\n"
