"""Two processes that run the same import, because one of them was suspended past its lease."""

from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.imports import job, readers
from linkmgr.imports.rows import ReadError
from linkmgr.repository import import_batches
from tests.conftest import Client
from tests.imported import counts, sale, send, shlink
from tests.test_import_job import yourls


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 20)


def test_a_process_that_was_suspended_does_not_discard_the_visits_of_the_next_batch(
    app: Flask, alice: Client, run_jobs: Callable[[], None]
) -> None:
    import_id = send(alice, yourls("summer", 59, 59)).get_json()["id"]
    with app.app_context():
        job.run_batch(alice.id, import_id)
        stale = import_batches.details(alice.id, import_id)
        assert stale
        assert stale["pending"]
        for _ in range(2):  # another process stores these visits, and reads the next ones
            job.run_batch(alice.id, import_id)
        job._continue(alice.id, import_id, stale)
    run_jobs()
    found = alice.get(f"/api/imports/{import_id}").get_json()["data"]
    assert (found["state"], found["visits"]) == ("done", 59)
    [link] = alice.get("/api/urls").get_json()["data"]["urls"]
    assert link["clicks"] == 59


@pytest.mark.parametrize("error", [ReadError("The service does not respond."), ZeroDivisionError()])
def test_a_process_that_was_suspended_does_not_end_the_import(
    *, app: Flask, alice: Client, monkeypatch: pytest.MonkeyPatch, run_jobs: Callable[[], None], error: Exception
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(50)))).get_json()["id"]

    def interrupted(*_: object) -> None:
        """Fail after another process has stored the batch."""
        monkeypatch.undo()
        job.run_batch(alice.id, import_id)
        job.forget()
        raise error

    monkeypatch.setattr(readers, "read", interrupted)
    with app.app_context():
        assert not job.run_batch(alice.id, import_id)
    run_jobs()
    assert counts(alice.get(f"/api/imports/{import_id}").get_json()["data"]) == ("done", 50, 50, 0, 0, 0)
