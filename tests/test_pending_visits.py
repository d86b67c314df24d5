"""Visits that are stored and not yet in the rollups."""

from collections.abc import Callable, Iterator

import psycopg2
import pytest
from flask import Flask

from linkmgr.db import session
from linkmgr.repository import rollups
from linkmgr.visits import queue
from tests import factories
from tests.conftest import Client
from tests.factories import Sql
from tests.reports import NOW, report
from tests.rollups import PENDING_DIFFERENCES, ROLL_UP, differences
from tests.targets import Target, wait_until
from tests.visit_queues import visit_of
from tests.visited import Store, Visited


def test_statistics_count_pending_visits_and_are_stored_when_they_are_rolled_up(
    target: Target, alice: Client, sql: Sql
) -> None:
    for _ in range(3):
        target.visit()
        before = alice.get(f"/api/qr/{target.id}").get_json()["data"]
        assert before == target.statistics()
        sql(ROLL_UP)
        assert alice.get(f"/api/qr/{target.id}").get_json()["data"] == before
        assert sql("SELECT statistics FROM totals") == [{"statistics": before}]
    target.visit()
    assert alice.get(f"/api/qr/{target.id}").get_json()["data"]["clicks"] == 4
    assert sql("SELECT statistics ->> 'clicks' AS clicks FROM totals") == [{"clicks": "3"}]


def test_the_queue_rolls_up_pending_visits(
    recorder: queue.VisitQueue, target: Target, alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "ROLL_UP_SECONDS", 0)
    monkeypatch.setattr(recorder, "_next_roll_up", 0)
    recorder.add(visit_of(target, alice))
    wait_until(lambda: bool(sql("SELECT FROM target_quarters WHERE target_id = %(id)s", id=target.id)))
    assert sql("SELECT FROM pending_visits") == []
    assert differences(sql) == []


def test_pending_visits_of_a_deleted_link_count_for_its_account_only(
    alice: Client, sql: Sql, store: Store, run_jobs: Callable[[], None]
) -> None:
    link = factories.link(sql, alice.id)
    store([Visited(link, NOW)])
    alice.delete(f"/api/url/{link}/delete")
    run_jobs()
    assert report(alice, "by=target")["data"]["rows"] == [{"target": link, "clicks": 1}]
    sql(ROLL_UP)
    assert report(alice, "by=target")["data"]["rows"] == [{"target": link, "clicks": 1}]
    assert sql("SELECT FROM target_quarters") == []


def test_pending_visits_of_a_deleted_user_leave_nothing(
    alice: Client, admin: Client, sql: Sql, store: Store, run_jobs: Callable[[], None]
) -> None:
    link = factories.link(sql, alice.id)
    store([Visited(link, NOW)])
    admin.delete(f"/api/user/{alice.id}/delete")
    sql(ROLL_UP)
    run_jobs()
    for table in ("pending_visits", "target_quarters", "account_rollups", "account_days"):
        assert sql(f"SELECT FROM {table}") == [], table


def test_a_target_with_many_visits_gets_days_which_agree_with_its_quarters(
    recorder: queue.VisitQueue, target: Target, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    now = NOW.timestamp()
    for number in range(1001):
        recorder.add(visit_of(target, alice, f"Country {number % 7}", at=now - 3600 * (number % 100)))
    assert recorder.flush()
    query = f"ids={target.id}&by=time:day,country"
    before = report(alice, query)["data"]
    with recorder._app.app_context():
        rollups.roll_up()
    assert len(sql("SELECT FROM busy_days")) >= 4
    assert report(alice, query)["data"] == before
    recorder.add(visit_of(target, alice, at=now - 3600 * 50))
    assert recorder.flush()
    assert differences(sql) == []
    assert report(alice, query)["data"]["totals"] == {"clicks": 1002}
    alice.delete(f"/api/qr/{target.id}/delete")
    run_jobs()
    assert sql("SELECT FROM busy_days") == []


@pytest.fixture
def slow_rollup(raw: psycopg2.extensions.connection) -> Iterator[None]:
    """Let each visit take two milliseconds."""
    with raw.cursor() as cursor:
        cursor.execute(
            """
            CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_sleep(0.002); RETURN OLD; END $$;
            CREATE TRIGGER sleep BEFORE DELETE ON pending_visits FOR EACH ROW EXECUTE FUNCTION sleep()
            """
        )
        yield
        cursor.execute("DROP FUNCTION sleep CASCADE")


@pytest.mark.usefixtures("slow_rollup")
def test_a_batch_that_exceeds_its_timeout_is_halved(
    make_app: Callable[..., Flask], alice: Client, sql: Sql, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store([Visited(factories.link(sql, alice.id), NOW)] * 300)
    monkeypatch.setattr(rollups, "MAX_PENDING", 300)
    monkeypatch.setattr(session, "STARTUP_OPTIONS", f"{session.STARTUP_OPTIONS} -c statement_timeout=400")
    with make_app().app_context():
        rollups.roll_up()
    assert sql("SELECT FROM pending_visits") == []
    assert sql("SELECT visits FROM target_quarters") == [{"visits": 300}]
    assert sql(PENDING_DIFFERENCES) == []
