"""Processes that are killed or suspended past their lease while they run an import."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import jobs
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import files, job
from linkmgr.features.imports import repository as imports
from linkmgr.features.imports.rows import ReadError
from tests.conftest import Client
from tests.support.archives import archive
from tests.support.factories import Sql
from tests.support.imported import counts, import_of, sale, send, shlink, yourls
from tests.support.races import at_once

pytestmark = pytest.mark.usefixtures("small_batches")


def test_a_process_that_was_suspended_stores_no_visit_again(
    app: Flask, alice: Client, run_jobs: Callable[[], None]
) -> None:
    import_id = send(alice, yourls("summer", 359, 359)).get_json()["id"]
    with app.app_context():
        for _ in range(2):  # the file is read, and its link stored
            job.run_batch(alice.id, import_id)
        stale = imports.details(alice.id, import_id)
        assert stale
        job.run_batch(alice.id, import_id)  # another process stores the next visits
        job._store(stale)
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["visits"]) == ("done", 359)
    [link] = alice.get("/api/urls").get_json()["data"]["urls"]
    assert link["clicks"] == 359


@pytest.mark.parametrize("error", [ReadError("The service does not respond."), ZeroDivisionError()])
def test_a_process_that_was_suspended_does_not_end_the_import(
    *, app: Flask, alice: Client, monkeypatch: pytest.MonkeyPatch, run_jobs: Callable[[], None], error: Exception
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(50)))).get_json()["id"]

    def interrupted(*_: object) -> Iterator[None]:
        """Fail after another process has stored the batch."""
        yield None
        monkeypatch.undo()
        job._local.readings.clear()
        job.run_batch(alice.id, import_id)
        raise error

    monkeypatch.setattr(files, "read", interrupted)
    with app.app_context():
        assert not job.run_batch(alice.id, import_id)
    run_jobs()
    assert counts(import_of(alice, import_id)) == ("done", 50, 50, 0, 0, 0)


@pytest.fixture
def kill(app: Flask, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Kill a process while it stores its next batch, and let its lease expire."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def run() -> None:
        with monkeypatch.context() as patched, app.app_context():
            patched.setattr(job, "_prepare", killed)
            with pytest.raises(KeyboardInterrupt):
                jobs.run_next(lambda _: False)
        job._local.readings.clear()
        sql("UPDATE jobs SET due = now() RETURNING 1")

    return run


def test_an_import_fails_after_its_process_was_killed_several_times_at_the_same_row(
    alice: Client, one_batch: Callable[[], bool], kill: Callable[[], None], run_jobs: Callable[[], None], sql: Sql
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(50)))).get_json()["id"]
    for _ in range(2):
        assert one_batch()
    for _ in range(jobs.MAX_LOST):
        kill()
    run_jobs()
    found = import_of(alice, import_id)
    assert counts(found) == ("failed", 20, 20, 0, 0, 0)
    assert found["message"] == (
        "The import stopped after row 20, because the process that reads the next rows was ended 5 times. Import "
        "these rows in smaller files."
    )
    assert sql("SELECT FROM jobs") == sql("SELECT FROM import_rows WHERE place < 0") == []


def test_a_batch_that_is_complete_allows_other_processes_to_be_killed(
    alice: Client, one_batch: Callable[[], bool], kill: Callable[[], None], run_jobs: Callable[[], None]
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(50)))).get_json()["id"]
    for _ in range(2):
        for _ in range(jobs.MAX_LOST - 1):
            kill()
        assert one_batch()
    run_jobs()
    assert counts(import_of(alice, import_id)) == ("done", 50, 50, 0, 0, 0)


@pytest.mark.parametrize(("module", "name"), [(import_rows, "add"), (job, "_prepare")])
def test_failures_of_the_database_do_not_end_an_import_or_lose_rows(
    *,
    app: Flask,
    alice: Client,
    run_jobs: Callable[[], None],
    sql: Sql,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
) -> None:
    import_id = send(alice, shlink(sale("summer"))).get_json()["id"]

    def unavailable(*_: object) -> None:
        raise psycopg2.OperationalError

    with monkeypatch.context() as patched, app.app_context():
        patched.setattr(module, name, unavailable)
        for _ in range(2 * jobs.MAX_LOST):
            assert jobs.run_next(lambda _: False)
            sql("UPDATE jobs SET due = now() RETURNING 1")
    run_jobs()
    assert counts(import_of(alice, import_id)) == ("done", 1, 1, 0, 0, 0)


def test_two_imports_of_the_same_zip_store_each_row_once(app: Flask, alice: Client, sql: Sql) -> None:
    files = {
        "campaigns": [{"id": n, "name": f"Campaign {n}"} for n in range(60)],
        "bio": [{"id": 100 + n, "name": f"Page {n}", "alias": f"page-{n}", "custom": "page-{n}"} for n in range(20)],
    }
    ids = [send(alice, archive(**files)).get_json()["id"] for _ in range(2)]

    def run(number: int) -> None:
        with app.app_context():
            done = False
            while not done:
                with suppress(jobs.Later):
                    done = job.run_batch(alice.id, ids[number])

    at_once(2, run)
    found = [import_of(alice, import_id) for import_id in ids]
    assert [(row["state"], row["failed"]) for row in found] == [("done", 0)] * 2
    assert sum(row["made"] for row in found) == 80
    assert len(sql("SELECT FROM campaigns")) == 60
    assert len(sql("SELECT FROM bios")) == 20
