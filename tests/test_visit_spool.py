"""The files of the queue of visits: each visit is stored exactly once, and the disk may be full or read-only."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg2
import pytest
from flask import Flask

from linkmgr.visits import queue, store
from linkmgr.visits.queue import REPLACE_BYTES, VisitQueue
from linkmgr.visits.spool import Spool
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.targets import Target, wait_until
from tests.support.visit_queues import AWAY, TOKEN, Make, counter, die, files, line_of, visit_of

pytestmark = pytest.mark.slow

# --- exactly once


def test_a_repeated_batch_stores_nothing(app: Flask, target: Target, alice: Client) -> None:
    batch = f"[{line_of(target, alice).decode()}]"
    with app.app_context():
        assert store.add("repeated", 0, 100, batch)
        assert not store.add("repeated", 0, 100, batch)
        assert store.stored_bytes("repeated") == 100
        assert not store.add("repeated", 50, 200, batch)
        assert store.add("repeated", 100, 200, batch)
        store.delete_spool("repeated")
        assert not store.add("repeated", 200, 300, batch), "a gap is no beginning"
    assert target.clicks == 2


def test_a_batch_stored_without_confirmation_is_not_stored_again(
    recorder: VisitQueue, target: Target, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add

    def lose_answer(spool: str, start: int, stop: int, batch: str) -> bool:
        monkeypatch.setattr(store, "add", add)
        add(spool, start, stop, batch)
        raise psycopg2.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(store, "add", lose_answer)
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
    stored = "SELECT 1 FROM visit_spools WHERE name = %(name)s"
    wait_until(lambda: not sql(stored, name=orphan.removesuffix(".spool")))


def test_the_file_of_a_running_process_is_left_alone(
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


def test_an_incomplete_line_and_invalid_lines_in_a_file_are_skipped(
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


# --- files


def test_visits_over_the_size_limit_are_lost_and_the_others_are_not(
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


def test_the_first_visit_is_stored_if_the_disk_became_full_before_it(
    recorder: VisitQueue, target: Target, alice: Client, tmp_path: Path
) -> None:
    queue.start(recorder._app)
    (tmp_path / "visits").rename(tmp_path / "reserved")
    (tmp_path / "visits").write_text("no file can be created here")
    recorder.add(visit_of(target, alice))
    wait_until(lambda: target.clicks == 1)


def test_visitors_are_redirected_when_the_data_folder_is_read_only(
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
