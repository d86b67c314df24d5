"""Rollups and stored statistics agree with the visits: pending, on concurrent storage and after the purge."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg2
import pytest
from flask import Flask

from linkmgr.db import session
from linkmgr.repository import rollups
from linkmgr.visits import queue
from tests.conftest import Client
from tests.support import factories, geoip
from tests.support.factories import Sql
from tests.support.reports import NOTHING, NOW, report
from tests.support.rollups import PENDING_DIFFERENCES, ROLL_UP, TRACKED, differences
from tests.support.schemas import execute
from tests.support.targets import IPHONE, Target, wait_until
from tests.support.visit_queues import visit_of
from tests.support.visited import PENDING, Store, Visited, purge

pytestmark = pytest.mark.slow

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def rollup(sql: Sql, tracked_id: int) -> dict[tuple[str, str, bool], int]:
    rows = sql(
        f"""
        SELECT dimension, label, bot, visits::int FROM {TRACKED}
         WHERE tracked_id = %(id)s AND unit = 'day' AND dimension <> 'social'
        """,
        id=tracked_id,
    )
    return {(row["dimension"], row["label"], row["bot"]): row["visits"] for row in rows}


def test_a_visit_is_counted_with_its_device_city_and_language(target: Target, sql: Sql) -> None:
    target.visit(agent=IPHONE, address=geoip.LIMA, Accept_Language="es-PE,es;q=0.9,en;q=0.8")
    assert rollup(sql, target.id) == {
        ("", "", False): 1,
        ("country", "Peru", False): 1,
        ("city", "Lima", False): 1,
        ("referrer", "Direct, email and other", False): 1,
        ("browser", "Mobile Safari", False): 1,
        ("os", "iOS", False): 1,
        ("device", "phone", False): 1,
        ("language", "Spanish", False): 1,
    }
    assert differences(sql) == []


def test_a_bot_is_stored_and_changes_no_statistics(target: Target, sql: Sql, alice: Client) -> None:
    target.visit(agent=GOOGLEBOT)
    assert target.statistics() == NOTHING
    assert alice.get(f"/api/qr/{target.id}").get_json()["data"] == NOTHING
    assert sql("SELECT bot, browser, device FROM visits") == [
        {"bot": True, "browser": "Googlebot", "device": "Unknown"}
    ]
    assert rollup(sql, target.id)["browser", "Googlebot", True] == 1
    assert sql("SELECT left(kind, 4) AS kind, total FROM usage WHERE kind LIKE 'bots %%'") == [
        {"kind": "bots", "total": 1}
    ]
    assert sql("SELECT FROM usage WHERE kind LIKE 'visits %%'") == []
    target.visit()
    assert alice.get(f"/api/qr/{target.id}").get_json()["data"]["clicks"] == 1
    assert differences(sql) == []


def test_bots_beyond_the_limit_of_the_plan_are_not_stored_and_leave_people_theirs(
    located: Flask, sql: Sql, register: Callable[..., Client]
) -> None:
    sql(
        """
        INSERT INTO plans (name, free, limits)
        SELECT 'Tiny', false, jsonb_set(limits::jsonb, '{clicks}', '2') FROM plans WHERE name = 'Free' RETURNING 1
        """
    )
    target = Target(located, sql, register("carol", plan="Tiny").id)
    for _ in range(4):
        target.visit(agent=GOOGLEBOT)
        target.visit()
    assert target.clicks == 2
    assert sql("SELECT bot, count(*) AS n FROM visits GROUP BY bot ORDER BY bot") == [
        {"bot": False, "n": 2},
        {"bot": True, "n": 2},
    ]
    assert differences(sql) == []


def test_invented_labels_are_bounded_in_rollups_too(target: Target, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "MAX_LABELS", 2)
    for number in range(5):
        target.visit(Referer=f"https://site{number}.example.com/")
    with target.app.app_context():
        rollups.roll_up()
    referrers = {label: n for (dimension, label, _), n in rollup(sql, target.id).items() if dimension == "referrer"}
    assert referrers == {"site0.example.com": 1, "site1.example.com": 1, "Other": 3}


def test_deleting_a_target_deletes_its_rollups_and_deleting_its_user_those_of_the_account(
    target: Target, sql: Sql, alice: Client, admin: Client, run_jobs: Callable[[], None]
) -> None:
    target.visit()
    sql(ROLL_UP)
    alice.delete(f"/api/qr/{target.id}/delete")
    run_jobs()
    assert sql("SELECT FROM tracked_rollups") == []
    assert sql("SELECT visits FROM account_rollups WHERE dimension = '' AND unit = 'day'") == [{"visits": 1}]
    admin.delete(f"/api/user/{alice.id}/delete")
    run_jobs()
    assert sql("SELECT FROM account_rollups") == []


# --- pending visits


def test_statistics_count_pending_visits_and_are_the_same_when_they_are_rolled_up(
    target: Target, alice: Client, sql: Sql
) -> None:
    for number in range(1, 4):
        target.visit(Referer="https://t.co/x")
        before = alice.get(f"/api/qr/{target.id}").get_json()["data"]
        assert (before["clicks"], before["socialCount"]["twitter"]) == (number, number)
        assert before == target.statistics()
        sql(ROLL_UP)
        assert alice.get(f"/api/qr/{target.id}").get_json()["data"] == before
    assert sql("SELECT counted FROM totals") == [{"counted": 3}]


def test_the_queue_rolls_up_pending_visits(
    recorder: queue.VisitQueue, target: Target, alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "ROLL_UP_SECONDS", 0)
    monkeypatch.setattr(recorder, "_next_roll_up", 0)
    recorder.add(visit_of(target, alice))
    wait_until(lambda: bool(sql("SELECT FROM tracked_rollups WHERE tracked_id = %(id)s", id=target.id)))
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
    assert sql("SELECT FROM tracked_rollups") == []


def test_pending_visits_of_a_deleted_user_leave_nothing(
    alice: Client, admin: Client, sql: Sql, store: Store, run_jobs: Callable[[], None]
) -> None:
    link = factories.link(sql, alice.id)
    store([Visited(link, NOW)])
    admin.delete(f"/api/user/{alice.id}/delete")
    sql(ROLL_UP)
    run_jobs()
    for table in ("pending_visits", "tracked_rollups", "account_rollups"):
        assert sql(f"SELECT FROM {table}") == [], table


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
    assert sql("SELECT visits FROM tracked_rollups WHERE unit = 'quarter'") == [{"visits": 300}]
    assert sql(PENDING_DIFFERENCES) == []


# --- the purge


@pytest.mark.usefixtures("drop_past_months")
def test_the_purge_deletes_old_quarters_of_an_hour_and_leaves_the_days(
    located: Flask, sql: Sql, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "MAX_ROWS", 7)
    target = Target(located, sql, register("carol", plan="Business").id)
    sql("SELECT create_partition(now() - make_interval(days => 31 * n)) FROM generate_series(1, 15) n")
    sql(
        """
        INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os, bot, device, language)
        SELECT %(id)s, now() - make_interval(hours => 7 * n), '', 'Country ' || n %% 5, 'Other', 'Other', 'Other',
               n %% 9 = 0, 'phone', 'German'
          FROM generate_series(1, 1500) n
        RETURNING 1
        """,
        id=target.id,
    )
    sql(PENDING)
    sql("INSERT INTO totals VALUES (%(id)s, 1334, 0) RETURNING 1", id=target.id)
    assert differences(sql) == []
    purge(located)
    assert differences(sql) == []
    for table in ("tracked_rollups", "account_rollups"):
        [old] = sql(
            f"""
            SELECT count(*) FILTER (WHERE unit = 'quarter') AS quarters,
                   count(*) FILTER (WHERE unit = 'day') AS days
              FROM {table} WHERE at < now() - interval '401 days' AND at > '-infinity'
            """
        )
        assert (old["quarters"], old["days"] > 30) == (0, True)


# --- concurrency

PROCESS = """
import json, random, sys, time
from linkmgr import create_app
from linkmgr.visits.queue import Visit

number, targets, settings = json.loads(sys.argv[1])
app, chance = create_app(**settings), random.Random(number)
queue, now = app.extensions["linkmgr_visit_queue"], time.time()
with app.app_context():
    for n in range(1000):
        tracked_id, user_id = targets[min(int(chance.paretovariate(0.8)), len(targets)) - 1]
        bot = chance.random() < 0.1
        referrer = "Direct, email and other" if bot else f"site{chance.randrange(30)}"
        system = "Unknown" if bot else "Linux"
        queue.add(Visit(tracked_id, user_id, now - n, f"{chance.randrange(999):04}", chance.choice("ABC"), referrer,
                        "Firefox", system, None, bot=bot, device="phone"))
        if n % 300 == 0:
            assert queue.flush()
    assert queue.flush()
"""


def test_visits_that_four_processes_store_at_once_are_counted_exactly(
    app: Flask, sql: Sql, alice: Client, bob: Client, tmp_path: Path
) -> None:
    targets = [(factories.link(sql, user.id), user.id) for user in (alice, bob, alice, bob, alice)]
    settings = {
        "database_url": app.extensions["linkmgr_database"].dsn,
        "secret_key": app.config["SECRET_KEY"],
        "data_dir": str(tmp_path),
    }
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, json.dumps([number, targets, settings])])
        for number in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert sql("SELECT count(*) AS n FROM visits") == [{"n": 4000}]
    assert differences(partial(execute, str(settings["database_url"]))) == []
    [unique] = sql("SELECT (SELECT sum(visitors) FROM totals) = (SELECT count(*) FROM visitors) AS agree")
    assert unique["agree"]
