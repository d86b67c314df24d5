"""Rollups and stored statistics agree with the visits: on concurrent storage, after an upgrade and after folding."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Thread

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

from linkmgr.repository import rollups as jobs
from linkmgr.repository import visits
from tests import factories, geoip
from tests.conftest import Client
from tests.factories import Sql
from tests.rollups import ROLL_UP, differences
from tests.targets import IPHONE, Target, wait_until
from tests.test_schema import execute
from tests.test_visits import NOTHING
from tests.test_visits_recording import purge

pytestmark = pytest.mark.slow

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
# The statement of the previous version, reduced to what it writes.
OLD_VISIT = """
    WITH stored AS (
        INSERT INTO visits (target_id, at, visitor, country, referrer, browser, os)
        SELECT %(id)s, now() - make_interval(hours => n), int4send(n), 'Country ' || n %% 3, 'direct', 'Firefox',
               'Linux'
          FROM generate_series(1, %(number)s) n
        RETURNING country),
    counted AS (
        INSERT INTO totals AS t (target_id, clicks, visitors) VALUES (%(id)s, %(number)s, %(number)s)
        ON CONFLICT (target_id) DO UPDATE SET clicks = t.clicks + excluded.clicks)
    INSERT INTO {breakdowns} AS b (target_id, dimension, label, total)
    SELECT %(id)s, dimension, label, count(*)
      FROM stored, LATERAL (VALUES ('country', country), ('referrer', 'direct'), ('browser', 'Firefox'), ('os', 'Linux')
                           ) AS dimensions (dimension, label)
     GROUP BY dimension, label
    ON CONFLICT (target_id, dimension, label) DO UPDATE SET total = b.total + excluded.total
"""


def rollup(sql: Sql, target_id: int) -> dict[tuple[str, str, bool], int]:
    counts = "SELECT dimension, label, bot, sum(visits)::int AS visits FROM target_rollups WHERE target_id = %(id)s"
    rows = sql(f"{counts} GROUP BY dimension, label, bot", id=target_id)
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
    monkeypatch.setattr(visits, "MAX_LABELS", 2)
    for number in range(5):
        target.visit(Referer=f"https://site{number}.example.com/")
    referrers = {label: n for (dimension, label, _), n in rollup(sql, target.id).items() if dimension == "referrer"}
    assert referrers == {"site0.example.com": 1, "site1.example.com": 1, "Other": 3}


def test_deleting_a_target_deletes_its_rollups_and_deleting_its_user_those_of_the_account(
    target: Target, sql: Sql, alice: Client, admin: Client, run_jobs: Callable[[], None]
) -> None:
    target.visit()
    sql(ROLL_UP)
    sql("INSERT INTO target_folds SELECT target_id, now()::date, bot, visits, labels FROM target_quarters RETURNING 1")
    alice.delete(f"/api/qr/{target.id}/delete")
    run_jobs()
    assert sql("SELECT FROM target_quarters") == sql("SELECT FROM target_folds") == []
    assert sql("SELECT visits FROM account_days WHERE dimension = ''") == [{"visits": 1}]
    admin.delete(f"/api/user/{alice.id}/delete")
    run_jobs()
    assert sql("SELECT FROM account_days") == sql("SELECT FROM account_rollups") == []


# --- folding


@pytest.mark.usefixtures("drop_past_months")
def test_the_purge_folds_old_quarters_of_an_hour_into_days(
    located: Flask, sql: Sql, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_ROWS", 7)
    target = Target(located, sql, register("carol", plan="Business").id)
    sql("SELECT create_partition(now() - make_interval(days => 31 * n)) FROM generate_series(1, 15) n")
    sql(
        """
        INSERT INTO visits (target_id, at, visitor, country, referrer, browser, os, bot, device, language)
        SELECT %(id)s, now() - make_interval(hours => 7 * n), '', 'Country ' || n %% 5, 'Other', 'Other', 'Other',
               n %% 9 = 0, 'phone', 'German'
          FROM generate_series(1, 1500) n
        RETURNING 1
        """,
        id=target.id,
    )
    sql(ROLL_UP)
    sums = "SELECT dimension, label, bot, sum(visits)::int AS n FROM {} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    before = sql(sums.format("target_rollups"))
    purge(located)
    rows = sql(sums.format("(SELECT * FROM target_rollups UNION ALL SELECT * FROM target_days) both_ages"))
    assert rows == before
    assert sql("SELECT FROM target_quarters WHERE at < now() - interval '401 days'") == []
    assert sql("SELECT FROM account_rollups WHERE at < now() - interval '401 days'") == []
    [folded] = sql("SELECT sum(visits)::int AS n, max(day) < now() - interval '399 days' AS old FROM target_folds")
    assert folded["n"] > 100
    assert folded["old"]
    assert [row for row in differences(sql) if row["compared"] not in ("totals", "statistics")] == []


# --- upgrades


@pytest.fixture
def upgraded(empty: str, flask: Callable[..., Result]) -> list[int]:
    """Two links of an upgraded database, with 20 and 5 visits that the previous version has stored."""
    execute(empty, (Path(__file__).parent / "schemas_of_the_past" / "1.sql").read_text())
    execute(
        empty,
        """
        INSERT INTO users (id, username, email, password_hash, key_digest, key_ciphertext)
        VALUES (1, 'a', 'a', '', '', '');
        INSERT INTO links (user_id, alias, url) VALUES (1, 'one', 'https://example.com/'), (1, 'two', '')
        """,
    )
    ids = [row[0] for row in execute(empty, "SELECT id FROM links ORDER BY id")]
    store_old(empty, "tallies", ids[0], 20)
    store_old(empty, "tallies", ids[1], 5)
    assert flask("database", "upgrade").exit_code == 0
    assert execute(empty, "SELECT count(*) FROM visits WHERE NOT rolled") == [(25,)]
    return ids


def store_old(dsn: str, breakdowns: str, target_id: int, number: int) -> None:
    with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(OLD_VISIT.format(breakdowns=breakdowns), {"id": target_id, "number": number})


def test_an_upgrade_counts_each_visit_once_also_if_it_is_killed_and_the_old_version_stores_more(
    empty: str, fresh: Flask, upgraded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_VISITS", 4)
    fills = 0
    with fresh.app_context():
        done = False
        while not done:
            fills += 1
            if fills in (3, 5):
                store_old(empty, "target_breakdowns", upgraded[1], 3)
                kill_batch(empty)
            done = jobs.fill({})
    assert fills > 5
    assert differences(partial(execute, empty)) == []
    assert execute(empty, "SELECT clicks FROM totals ORDER BY 1") == [(11,), (20,)]


@pytest.mark.usefixtures("upgraded")
def test_two_processes_that_run_the_job_at_the_same_time_count_each_visit_once(empty: str, fresh: Flask) -> None:
    def fill() -> None:
        with fresh.app_context():
            while not jobs.fill({}):
                pass

    with closing(psycopg2.connect(empty)) as connection, connection.cursor() as cursor:
        cursor.execute(jobs._VISITS, {"limit": 4})
        other = Thread(target=fill)
        other.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        wait_until(lambda: len(execute(empty, waiting)) == 1)
        connection.commit()
        other.join()
    assert differences(partial(execute, empty)) == []


def kill_batch(dsn: str) -> None:
    """Run a batch on a connection that breaks before it commits."""
    connection = psycopg2.connect(dsn)
    with connection.cursor() as cursor:
        cursor.execute(jobs._VISITS, {"limit": 4})
        assert cursor.fetchone() == (False, 4)
    connection.close()


def test_statistics_are_computed_when_they_are_read_until_the_job_has_stored_them(
    target: Target, sql: Sql, alice: Client, located: Flask
) -> None:
    target.visit()
    before = alice.get(f"/api/qr/{target.id}").get_json()
    link_id = factories.link(sql, alice.id)
    sql("INSERT INTO totals VALUES (%(id)s, 5, 2) RETURNING 1", id=link_id)
    sql("UPDATE totals SET statistics = NULL RETURNING 1")
    assert alice.get(f"/api/qr/{target.id}").get_json() == before
    assert alice.get(f"/api/url/{link_id}").get_json()["data"]["clicks"] == 5
    with located.app_context():
        assert jobs.fill({}) is False
        assert jobs.fill({}) is True
    assert sql("SELECT FROM totals WHERE statistics IS NULL") == []
    assert alice.get(f"/api/qr/{target.id}").get_json() == before


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
        target_id, user_id = targets[min(int(chance.paretovariate(0.8)), len(targets)) - 1]
        bot = chance.random() < 0.1
        referrer = "Direct, email and other" if bot else f"site{chance.randrange(30)}"
        system = "Unknown" if bot else "Linux"
        queue.add(Visit(target_id, user_id, now - n, f"{chance.randrange(999):04}", chance.choice("ABC"), referrer,
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
