"""Visits on their way to the database: the visitor does not wait for them, and no fault loses them."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import visits
from linkmgr.visits.queue import REPLACE_BYTES, Visit, VisitQueue
from linkmgr.visits.spool import Full, Spool
from linkmgr.web import metrics
from tests.conftest import ROOT, Client, free_port, serving
from tests.factories import Sql
from tests.targets import FIREFOX, Target, wait_until

AWAY = "postgresql://nobody@127.0.0.1:1/none"
TOKEN = "t" * 16
Make = Callable[..., VisitQueue]

# A process that cannot reach its database, and dies.
DIE = """
import os, sys
from linkmgr import create_app
from linkmgr.visits.queue import Visit
data_dir, url, target, user, at, number = sys.argv[1:]
recorder = create_app(data_dir=data_dir, database_url=url).extensions["linkmgr_visit_queue"]
for _ in range(int(number)):
    recorder.add(Visit(int(target), int(user), float(at), "00", "Peru", "a.example", "Firefox", "Linux", None))
os._exit(9)
"""


@pytest.fixture
def make_recorder(make_app: Callable[..., Flask], tmp_path: Path) -> Iterator[Make]:
    """Make recorders whose data folder is the test's own."""
    made: list[VisitQueue] = []

    def make(**settings: str) -> VisitQueue:
        app = make_app(data_dir=str(tmp_path), metrics_token=TOKEN, **settings)
        made.append(app.extensions["linkmgr_visit_queue"])
        return made[-1]

    yield make
    for recorder in made:
        recorder._spools = []


@pytest.fixture
def recorder(make_recorder: Make) -> VisitQueue:
    return make_recorder()


def visit_of(target: Target, owner: Client, country: str = "Peru", at: float | None = None) -> Visit:
    return Visit(target.id, owner.id, at or time.time(), "00", country, "a.example", "Firefox", "Linux", None)


def line_of(target: Target, owner: Client) -> bytes:
    """The visit as a line of a file, as an earlier version of the program may have left it."""
    return (
        b'{"target_id":%d,"user_id":%d,"at":%f,"visitor":"00","country":"Peru","referrer":"a.example",'
        b'"browser":"Firefox","os":"Linux","social":null}\n' % (target.id, owner.id, time.time())
    )


def die(folder: Path, target: Target, owner: Client, *, at: float | None = None, number: int = 3) -> None:
    """Leave a file with visits in the folder."""
    arguments = [folder, AWAY, target.id, owner.id, at or time.time(), number]
    command = [sys.executable, "-c", DIE, *map(str, arguments)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 9


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "visits").iterdir())


def counter(recorder: VisitQueue, name: str) -> float:
    found = recorder._app.extensions["linkmgr_metrics"]
    assert isinstance(found, metrics.Metrics)
    return next(family.samples[0].value for family in found.collect() if family.name == f"linkmgr_{name}")


def countries(target: Target) -> dict[str, str]:
    found: dict[str, str] = target.statistics()["topCountries"]
    return found


def test_a_visit_waits_for_a_lock_and_the_visitor_does_not(
    recorder: VisitQueue, target: Target, alice: Client, dsn: str
) -> None:
    with psycopg2.connect(dsn) as blocker, blocker.cursor() as cursor:
        cursor.execute("LOCK TABLE totals")
        recorder.add(visit_of(target, alice))
    blocker.close()
    wait_until(lambda: target.clicks == 1)


def test_a_visit_that_cannot_be_stored_takes_no_others_with_it(
    recorder: VisitQueue, target: Target, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for country in ("Peru", "No\0where", "Chile"):
        recorder.add(visit_of(target, alice, country))
    assert recorder.flush()
    assert countries(target) == {"Chile": "1", "Peru": "1"}
    assert [record.message for record in caplog.records] == ["1 visits were lost"]
    assert (counter(recorder, "visits_recorded"), counter(recorder, "visits_lost")) == (2, 1)


def test_a_connection_that_broke_loses_nothing_and_doubles_nothing(
    recorder: VisitQueue, target: Target, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    with raw.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'linkmgr'")
    recorder.add(visit_of(target, alice))
    wait_until(recorder.flush)
    assert target.clicks == 2


def test_a_failure_that_was_not_foreseen_does_not_end_the_recording(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = visits.add

    def fail(*_arguments: object) -> bool:
        monkeypatch.setattr(visits, "add", add)
        raise RuntimeError

    monkeypatch.setattr(visits, "add", fail)
    for _ in range(3):
        recorder.add(visit_of(target, alice))
    wait_until(lambda: target.clicks == 3)


# --- exactly once


def test_a_repeated_batch_stores_nothing(app: Flask, target: Target, alice: Client) -> None:
    batch = f"[{line_of(target, alice).decode()}]"
    with app.app_context():
        assert visits.add("repeated", 0, 100, batch)
        assert not visits.add("repeated", 0, 100, batch)
        assert visits.stored_bytes("repeated") == 100
        assert not visits.add("repeated", 50, 200, batch)
        assert visits.add("repeated", 100, 200, batch)
        visits.delete_spool("repeated")
        assert not visits.add("repeated", 200, 300, batch), "a gap is no beginning"
    assert target.clicks == 2


def test_a_batch_that_was_stored_though_its_process_did_not_learn_of_it_is_not_stored_again(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = visits.add

    def lose_answer(spool: str, start: int, stop: int, batch: str) -> bool:
        monkeypatch.setattr(visits, "add", add)
        add(spool, start, stop, batch)
        raise psycopg2.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(visits, "add", lose_answer)
    recorder.add(visit_of(target, alice))
    wait_until(recorder.flush)
    assert target.clicks == 1
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    assert target.clicks == 2


def test_a_database_that_replaces_another_gets_the_visits_too(
    recorder: VisitQueue, target: Target, alice: Client, sql: Sql
) -> None:
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    sql("DELETE FROM visit_spools RETURNING 1")
    sql("DELETE FROM totals RETURNING 1")
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    assert target.clicks == 2


def test_the_visits_of_a_dead_process_are_stored_once_by_another(
    make_recorder: Make, target: Target, alice: Client, tmp_path: Path, sql: Sql
) -> None:
    die(tmp_path, target, alice, number=1200)
    [orphan] = files(tmp_path)
    recorders = [make_recorder(), make_recorder()]
    for each in recorders:
        each.start()
    wait_until(lambda: not files(tmp_path))
    assert target.clicks == 1200
    assert sql("SELECT 1 FROM visit_spools WHERE name = %(name)s", name=orphan.removesuffix(".spool")) == []


def test_the_file_of_a_living_process_is_left_alone(
    make_recorder: Make, target: Target, alice: Client, tmp_path: Path
) -> None:
    away, recorder = make_recorder(database_url=AWAY), make_recorder()
    away.add(visit_of(target, alice))
    assert not away.flush()
    [name] = files(tmp_path)
    die(tmp_path, target, alice)
    recorder.start()
    wait_until(lambda: target.clicks == 3)
    wait_until(lambda: files(tmp_path) == [name])


def test_what_a_crash_left_at_the_end_of_a_file_and_garbage_in_it_are_skipped(
    recorder: VisitQueue, target: Target, alice: Client, tmp_path: Path
) -> None:
    line = line_of(target, alice)
    spool = Spool.create(tmp_path / "visits")
    for content in (line, b"\xff\0\0garbage\n", line, line, b"[1]\n", line[:-20]):
        spool.append(content)
    spool.close()
    recorder.start()
    wait_until(lambda: not files(tmp_path))
    assert target.clicks == 3
    assert counter(recorder, "visits_lost") == 2


def test_a_file_that_was_about_to_be_deleted_is_not_stored_again(
    recorder: VisitQueue, target: Target, alice: Client, tmp_path: Path
) -> None:
    spool = Spool.create(tmp_path / "visits")
    spool.append(line_of(target, alice))
    spool.mark_done()
    spool.close()
    recorder.start()
    wait_until(lambda: not files(tmp_path))
    assert target.clicks == 0


# --- files


def test_visits_beyond_the_bound_are_lost_and_the_others_are_not(
    make_recorder: Make, target: Target, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    away = make_recorder(database_url=AWAY, visit_spool_mb="1")
    visit = visit_of(target, alice)
    for _ in range(9000):
        away.add(visit)
    lost = counter(away, "visits_lost")
    assert 0 < lost < 9000
    assert "1 visits were lost" in [record.message for record in caplog.records]
    for spool in away._spools:
        spool.close()
    away._spools = []
    make_recorder().start()
    wait_until(lambda: target.clicks == 9000 - lost)


def test_stored_files_are_replaced_while_visits_arrive(
    recorder: VisitQueue, target: Target, alice: Client, tmp_path: Path
) -> None:
    visit = visit_of(target, alice)

    def add(_number: int) -> None:
        for _ in range(750):
            recorder.add(visit)
        recorder.flush()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert recorder.flush()
    assert target.clicks == 6000
    assert 6000 * len(line_of(target, alice)) > 3 * REPLACE_BYTES
    assert len(files(tmp_path)) == 1


def test_a_file_that_is_about_to_be_deleted_takes_no_more_visits(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path)
    spool.append(b"1\n")
    assert not spool.seal(), "it holds a visit that is not stored"
    spool.append(b"2\n")
    spool.stored = spool.size
    assert spool.seal()
    with pytest.raises(Full):
        spool.append(b"3\n")
    spool.delete()


def test_visitors_arrive_though_the_data_folder_cannot_be_written_to(
    make_app: Callable[..., Flask], target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target.app = make_app(data_dir=str(tmp_path), metrics_token=TOKEN)
    (tmp_path / "visits").write_text("not a folder")
    for _ in range(3):
        target.visit()
    assert target.clicks == 0
    assert counter(target.app.extensions["linkmgr_visit_queue"], "visits_lost") == 3
    assert [record.message for record in caplog.records] == ["1 visits were lost"]
    (tmp_path / "visits").unlink()
    target.visit()
    assert target.clicks == 1


# --- months


def parts(cursor: psycopg2.extensions.cursor) -> list[str]:
    cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'visits'::regclass ORDER BY 1")
    return [part for (part,) in cursor.fetchall()]


@pytest.mark.parametrize("mode", [None, "ACCESS SHARE", "SHARE UPDATE EXCLUSIVE"])
def test_a_month_to_come_is_made_and_waited_for_by_nobody(
    recorder: VisitQueue, target: Target, alice: Client, raw: psycopg2.extensions.connection, mode: str | None
) -> None:
    """As at the beginning of a month, also while a dump is taken or somebody else works on the table."""
    with raw.cursor() as cursor:
        before = parts(cursor)
        cursor.execute(f"DROP TABLE {before[-1]}")
        if mode:
            cursor.execute(f"BEGIN; LOCK TABLE visits IN {mode} MODE")
        recorder.add(visit_of(target, alice))
        assert recorder.flush()
        cursor.execute("COMMIT")
        assert target.clicks == 1
        cursor.execute("SELECT make_months()")
        assert parts(cursor) == before


def test_a_month_that_goes_missing_is_made_again(
    recorder: VisitQueue, target: Target, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    """As when a database is replaced under a running service."""
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    with raw.cursor() as cursor:
        before = parts(cursor)
        cursor.execute(f"DROP TABLE {before[0]}")
        recorder.add(visit_of(target, alice))
        wait_until(recorder.flush)
        assert target.clicks == 2
        assert parts(cursor) == before


def test_a_visit_is_stored_in_its_month_however_long_it_had_to_wait(
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


@pytest.mark.slow
def test_a_service_that_is_stopped_stores_what_waits(dsn: str, tmp_path: Path, target: Target) -> None:
    settings = {"database_url": dsn, "data_dir": str(tmp_path)}
    with serving(free_port(), tmp_path / "log", "--workers", "1", **settings) as base:
        for _ in range(20):
            with urlopen(Request(f"{base}/q/{target.code}", headers={"User-Agent": FIREFOX})):
                pass
    assert target.clicks == 20
    assert files(tmp_path) == []


@pytest.mark.slow
def test_visits_that_a_killed_service_left_are_stored_when_it_starts(
    dsn: str, tmp_path: Path, target: Target, alice: Client
) -> None:
    die(tmp_path, target, alice)
    with serving(free_port(), tmp_path / "log", "--workers", "2", database_url=dsn, data_dir=str(tmp_path)):
        wait_until(lambda: target.clicks == 3)
