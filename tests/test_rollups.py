"""Rollups and stored statistics agree with the visits, on concurrent storage and after the purge."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from linkmgr.repository import purge as purging
from linkmgr.visits import queue
from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support import factories, geoip
from tests.support.factories import Sql
from tests.support.races import at_once
from tests.support.reports import DAY, NOTHING, NOW, TODAY, date, report, rows
from tests.support.rollups import DIFFERENCES
from tests.support.schemas import execute
from tests.support.targets import IPHONE, Target
from tests.support.visit_queues import visit_of
from tests.support.visited import Store, Visited, purge

pytestmark = pytest.mark.slow

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def rollup(sql: Sql, tracked_id: int) -> dict[tuple[str, str, bool], int]:
    rows = sql(
        """
        SELECT dimension, label, is_bot AS bot, sum(visits)::int AS visits
          FROM (VALUES (false), (true)) AS halves (is_bot),
               tracked_counts(ARRAY[%(id)s]::bigint[], %(dimensions)s, '-infinity', 'infinity', '{}', ARRAY[is_bot])
         GROUP BY 1, 2, 3
        """,
        id=tracked_id,
        dimensions=visits.ALL_DIMENSIONS,
    )
    return {(row["dimension"], row["label"], row["bot"]): row["visits"] for row in rows}


def test_a_visit_is_counted_with_its_device_city_and_language(target: Target, sql: Sql) -> None:
    target.visit(agent=IPHONE, address=geoip.LIMA, Accept_Language="es-PE,es;q=0.9,en;q=0.8")
    expected = {
        ("", "", False): 1,
        ("country", "Peru", False): 1,
        ("city", "Lima", False): 1,
        ("referrer", "Direct, email and other", False): 1,
        ("browser", "Mobile Safari", False): 1,
        ("os", "iOS", False): 1,
        ("device", "phone", False): 1,
        ("language", "Spanish", False): 1,
        ("kind", "scan", False): 1,
    }
    assert rollup(sql, target.id).items() >= expected.items()
    assert sql(DIFFERENCES) == []


def test_a_bot_is_stored_and_changes_no_statistics(target: Target, sql: Sql, alice: Client) -> None:
    target.visit(agent=GOOGLEBOT)
    assert target.statistics() == NOTHING
    assert alice.get(f"/api/qr/{target.id}").get_json()["data"] == NOTHING
    assert sql("SELECT bot, browser, visit_label(v, 'device') AS device FROM visits v") == [
        {"bot": True, "browser": "Googlebot", "device": "Unknown"}
    ]
    assert rollup(sql, target.id)["browser", "Googlebot", True] == 1
    assert sql("SELECT total FROM visit_months WHERE bot") == [{"total": 1}]
    assert sql("SELECT FROM usage WHERE counted LIKE 'visits %%'") == []
    target.visit()
    assert alice.get(f"/api/qr/{target.id}").get_json()["data"]["clicks"] == 1
    assert sql(DIFFERENCES) == []


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
    assert sql(DIFFERENCES) == []


def test_invented_labels_are_bounded_in_rollups_too(target: Target, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "MAX_LABELS", 2)
    for number in range(5):
        target.visit(Referer=f"https://site{number}.example.com/")
    [stored] = sql("SELECT labels -> 'referrer' AS referrers FROM tracked_rollups WHERE unit = 'all'")
    assert stored["referrers"] == {"site0.example.com": 1, "site1.example.com": 1, "Other": 3}


@pytest.mark.usefixtures("drop_past_months")
def test_labels_of_days_and_of_single_visits_are_completed_when_a_link_has_as_many_visits_as_labels(
    located: Flask, sql: Sql, store: Store, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "MAX_LABELS", 30)
    link = factories.link(sql, register("carol", plan="Free").id)
    first = [
        Visited(link, NOW - day * DAY, b"", city=f"City {day}-{n}", bot=is_bot)
        for day, number in ((100, 9), (95, 2), (40, 10), (3, 2))
        for n in range(number)
        for is_bot in (False, True)
    ]
    store(first)
    purge(located)
    labels = "SELECT coalesce(labels -> 'city', '{}') AS cities FROM tracked_rollups WHERE unit = 'all' ORDER BY bot"
    assert [row["cities"] for row in sql(labels)] == [{}, {}]
    store([Visited(link, NOW, b"", city=f"City {n}") for n in range(9)])
    cities = {visit.city: 1 for visit in first if not visit.bot}
    assert sql(labels)[0]["cities"] == cities | {f"City {n}": 1 for n in range(7)} | {"Other": 2}
    assert sql(labels)[1]["cities"] == {}


def test_visits_of_a_deleted_target_count_for_its_account_only_and_those_of_a_deleted_user_nowhere(
    *,
    alice: Client,
    admin: Client,
    sql: Sql,
    recorder: queue.VisitQueue,
    target: Target,
    run_jobs: Callable[[], None],
) -> None:
    target.visit()
    alice.delete(f"/api/qr/{target.id}/delete?bin=0")
    run_jobs()
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    assert report(alice, "by=target")["data"]["rows"] == [{"target": target.id, "clicks": 2}]
    assert sql("SELECT FROM tracked_rollups") == []
    admin.delete(f"/api/user/{alice.id}/delete")
    recorder.add(visit_of(target, alice))
    assert recorder.flush()
    run_jobs()
    assert sql("SELECT FROM account_sums") == []


# --- the purge


@pytest.mark.usefixtures("drop_past_months")
def test_the_purge_deletes_old_quarters_of_an_hour_and_leaves_the_days(
    located: Flask, sql: Sql, store: Store, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "MAX_ROWS", 7)
    monkeypatch.setattr(visits, "FEW", 2)
    target = Target(located, sql, register("carol", plan="Business").id)
    store(
        Visited(target.id, NOW - timedelta(hours=7 * n), b"", f"Country {n % 5}", bot=n % 9 == 0)
        for n in range(1, 1500)
    )
    store(Visited(target.id, NOW - timedelta(days=405, minutes=n), b"", "Country 0") for n in range(200))
    assert sql(DIFFERENCES) == []
    purge(located)
    assert sql(DIFFERENCES) == []
    for table, has_quarters in {
        "tracked_rollups": "unit = 'quarter'",
        "account_totals": "detailed",
        "account_targets": "detailed",
        "account_labels": "detailed",
    }.items():
        [old] = sql(
            f"""
            SELECT count(*) FILTER (WHERE {has_quarters}) AS quarters, count(*) AS days
              FROM {table} WHERE at < now() - interval '401 days' AND at > '-infinity'
            """
        )
        assert (old["quarters"], old["days"] > 30) == (0, True)


# --- concurrency


def test_days_with_few_visits_stay_exact_while_visits_are_stored_at_once_and_purged(
    located: Flask, sql: Sql, store: Store, register: Callable[..., Client]
) -> None:
    carol = register("carol", plan="Free")  # which keeps visits for 90 days
    links, random = [factories.link(sql, carol.id) for _ in range(3)], Random(44)  # noqa: S311 - reproducible
    visits = [
        Visited(
            link,
            min(TODAY - day * DAY + timedelta(seconds=random.randrange(86400)), NOW),
            country=random.choice(["Germany", "Peru", "Unknown"]),
            bot=random.random() < 0.2,
        )
        for link in links
        for day in range(110)
        for _ in range(random.randrange(13))
    ]
    random.shuffle(visits)
    late = [visit for visit in visits[::2] if visit.at < NOW - 91 * DAY]
    meanwhile = [visit for visit in visits[::2] if visit.at > NOW - 31 * DAY]
    first = [*visits[1::2], *(visit for visit in visits[::2] if NOW - 91 * DAY <= visit.at <= NOW - 31 * DAY)]

    def store_at_once(visits: list[Visited], *others: Callable[[], None]) -> None:
        sql("SELECT create_partition(now() - make_interval(months => n))::text FROM generate_series(0, 4) n")
        batches = [visits[start : start + 40] for start in range(0, len(visits), 40)]
        calls: list[Callable[[], None]] = [*others, *(partial(store, batch) for batch in batches)]
        at_once(len(calls), lambda number: calls[number](), threads=4)

    def purge_visits() -> None:
        with located.app_context():
            purging.purge()

    def assert_exact(stored: list[Visited]) -> None:
        for zone, bots, ids in product(("UTC", "Asia/Kathmandu"), ("exclude", "include"), (links, links[:1])):
            counted = [visit for visit in stored if visit.tracked_id in ids and (bots == "include" or not visit.bot)]
            query = f"timezone={zone}&bots={bots}&ids={','.join(map(str, ids))}&limit=10000&by=time:"
            times = [(visit.at.astimezone(ZoneInfo(zone)), visit.country) for visit in counted]
            found = rows(carol, f"{query}day,country&from={date(112)}")
            assert {(row["time"], row["country"]): row["clicks"] for row in found if row["clicks"]} == Counter(
                (at.date().isoformat(), country) for at, country in times
            )
            found = rows(carol, f"{query}hour&from={date(95)}")
            assert {row["time"][:13]: row["clicks"] for row in found if row["clicks"]} == Counter(
                at.isoformat()[:13] for at, _ in times if at.date().isoformat() >= date(95)
            )

    store_at_once(first)
    assert sql(DIFFERENCES) == []
    assert_exact(first)
    store_at_once(meanwhile, purge_visits)
    assert_exact([*first, *meanwhile])
    store_at_once(late)
    assert_exact(visits)
    purge_visits()
    assert_exact(visits)
    [raw] = sql(
        """
        SELECT min(at)::date AS first, count(*) > 50 AS many
          FROM account_targets t
         WHERE NOT EXISTS (SELECT FROM tracked_rollups r
                            WHERE tracked_id = target AND unit = 'day' AND r.bot = t.bot AND r.at = t.at)
        """
    )
    assert (raw["first"], raw["many"]) == (date(89), True), "nothing but sums is left of days that have ended"


PROCESSES = """
import json, random, sys, time
from multiprocessing import get_context
from linkmgr import create_app
from linkmgr.visits.counting import Visit

targets, settings = json.loads(sys.argv[1])

def store(number):
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

with get_context("fork").Pool(4) as pool:
    pool.map(store, range(4), 1)
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
    subprocess.run([sys.executable, "-c", PROCESSES, json.dumps([targets, settings])], check=True)
    assert sql("SELECT count(*) AS n FROM visits") == [{"n": 4000}]
    assert execute(str(settings["database_url"]), DIFFERENCES) == []
    [unique] = sql("SELECT (SELECT sum(visitors) FROM totals) = (SELECT count(*) FROM visitors) AS agree")
    assert unique["agree"]
