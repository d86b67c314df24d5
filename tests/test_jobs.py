"""Background jobs: leases, failures and takeover."""

import os
import signal
from collections.abc import Callable

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import jobs
from linkmgr.core.database.statements import Row
from tests.support.factories import Sql
from tests.support.races import at_once
from tests.support.servers import children
from tests.support.targets import wait_until

Handler = Callable[[Row], bool]


def noting(ran: list[int], *, times: int) -> Handler:
    """Return a handler that records the number of its job and ends after this number of batches."""

    def batch(argument: Row) -> bool:
        ran.append(argument["number"])
        return ran.count(argument["number"]) == times

    return batch


@pytest.fixture
def enqueue(sql: Sql) -> Callable[..., None]:
    def add(task: str, times: int = 1) -> None:
        sql(
            """
            INSERT INTO jobs (task, argument)
            SELECT %(task)s, jsonb_build_object('number', n) FROM generate_series(1, %(times)s) n
            RETURNING id
            """,
            task=task,
            times=times,
        )

    return add


@pytest.fixture
def handle(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Handler], None]:
    """Register the handler of a task."""
    return lambda task, handler: monkeypatch.setitem(
        app.extensions["linkmgr_jobs"].handlers, task, jobs.Handler(handler)
    )


@pytest.fixture
def run_next(app: Flask) -> Callable[..., bool]:
    def run(pause: Callable[[float], bool] = lambda _: False) -> bool:
        with app.app_context():
            return jobs.run_next(pause)

    return run


def test_jobs_run_batch_by_batch_in_order_and_are_deleted_when_done(
    enqueue: Callable[..., None], handle: Callable[[str, Handler], None], run_next: Callable[..., bool], sql: Sql
) -> None:
    ran: list[int] = []
    handle("count", noting(ran, times=3))
    enqueue("count", 2)
    assert [run_next(), run_next(), run_next()] == [True, True, False]
    assert ran == [1, 1, 1, 2, 2, 2]
    assert sql("SELECT FROM jobs") == []


def test_each_job_is_taken_by_exactly_one_of_many_processes(
    enqueue: Callable[..., None], handle: Callable[[str, Handler], None], run_next: Callable[..., bool]
) -> None:
    ran: list[int] = []
    handle("once", noting(ran, times=1))
    enqueue("once", 40)
    assert at_once(40, lambda _: run_next()) == [True] * 40
    assert sorted(ran) == list(range(1, 41))


def test_a_failed_job_is_retried_later_and_does_not_block_others(
    enqueue: Callable[..., None], handle: Callable[[str, Handler], None], run_next: Callable[..., bool], sql: Sql
) -> None:
    ran: list[int] = []

    def fail(_: Row) -> bool:
        raise ZeroDivisionError

    handle("fails", fail)
    handle("works", noting(ran, times=1))
    enqueue("fails")
    enqueue("works")
    assert [run_next(), run_next(), run_next()] == [True, True, False]
    assert ran == [1]
    delays = []
    for attempts in (1, 5, 30):
        sql("UPDATE jobs SET due = now(), attempts = %(attempts)s RETURNING 1", attempts=attempts)
        assert run_next()
        [job] = sql("SELECT ceil(extract(epoch FROM due - now()))::int AS delay, attempts FROM jobs")
        assert job["attempts"] == attempts + 1
        delays.append(job["delay"])
    assert delays == [4, 64, jobs._MAX_DELAY]


def test_a_process_that_was_suspended_past_its_lease_does_not_end_the_job_of_another(
    enqueue: Callable[..., None], handle: Callable[[str, Handler], None], run_next: Callable[..., bool], sql: Sql
) -> None:
    def freeze(_: Row) -> bool:
        assert jobs.take(jobs.registered().handlers) is None, "the lease has not expired"
        sql("UPDATE jobs SET due = now() RETURNING 1")
        assert jobs.take(jobs.registered().handlers), "another process takes it"
        return True

    handle("slow", freeze)
    enqueue("slow")
    assert run_next()
    assert sql("SELECT attempts, due > now() AS leased FROM jobs") == [{"attempts": 2, "leased": True}]


def test_a_process_that_ends_releases_its_job(
    enqueue: Callable[..., None], handle: Callable[[str, Handler], None], run_next: Callable[..., bool], sql: Sql
) -> None:
    handle("long", lambda _: False)
    enqueue("long")
    assert run_next(lambda _: True)
    assert sql("SELECT attempts, due <= now() AS due FROM jobs") == [{"attempts": 0, "due": True}]


def test_a_long_job_yields_to_the_others_after_a_time_slice(
    enqueue: Callable[..., None],
    handle: Callable[[str, Handler], None],
    run_next: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "SLICE_SECONDS", 0)
    ran: list[int] = []
    handle("long", noting(ran, times=3))
    enqueue("long", 2)
    while run_next():
        pass
    assert ran == [1, 2] * 3


def test_a_job_of_a_kind_that_only_a_newer_version_supports_is_left_to_it(
    enqueue: Callable[..., None], run_next: Callable[..., bool], sql: Sql
) -> None:
    enqueue("invented later")
    assert not run_next()
    assert len(sql("SELECT FROM jobs")) == 1


def test_a_serving_process_runs_jobs_and_takes_over_from_one_that_was_killed(
    serve: Callable[..., str], sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    before = set(children(os.getpid()))
    serve("--workers=1")
    [master] = set(children(os.getpid())) - before
    [killed] = children(master)
    with raw.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE tracked_rollups")
        sql("INSERT INTO jobs (task, argument) VALUES ('links_deleted', '{\"user_id\": 1, \"ids\": [1]}') RETURNING 1")
        wait_until(lambda: bool(sql("SELECT FROM jobs WHERE due > now()")))  # a purge may wait for the lock too
        wait_until(lambda: bool(sql("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")))
        os.kill(killed, signal.SIGKILL)
        cursor.execute("ROLLBACK")
    assert sql("SELECT attempts, due > now() AS leased FROM jobs") == [{"attempts": 1, "leased": True}]
    sql("UPDATE jobs SET due = now() RETURNING 1")  # expire its lease
    wait_until(lambda: not sql("SELECT FROM jobs"))
    assert children(master) != [killed]


def test_jobs_continue_after_the_database_was_unavailable(serve: Callable[..., str], sql: Sql) -> None:
    serve("--workers=1")
    taking = "pid <> pg_backend_pid() AND query LIKE '%%EXECUTE%%links_deleted%%'"
    wait_until(lambda: bool(sql(f"SELECT FROM pg_stat_activity WHERE {taking} AND pg_terminate_backend(pid)")))
    sql("INSERT INTO jobs (task, argument) VALUES ('links_deleted', '{\"user_id\": 1, \"ids\": [1]}') RETURNING 1")
    wait_until(lambda: not sql("SELECT FROM jobs"))
