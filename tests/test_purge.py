"""The purge holds no lock for long, however many rows there are."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import purge
from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import during, meanwhile
from tests.support.transactions import Costs

pytestmark = pytest.mark.slow

Connection = psycopg2.extensions.connection

ROWS = 12_000
VISITS = """
    INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os)
    SELECT %(id)s, now() - make_interval(days => %(days)s), sha256(int4send(n)), '', '', '', ''
      FROM generate_series(1, %(rows)s) n
    RETURNING 1
"""
# The days of these visits: the purge reads only those that have visits.
DAYS = """
    WITH days AS (
        SELECT user_id, id, date_trunc('day', now() - make_interval(days => %(days)s), 'UTC') AS at
          FROM links WHERE id = %(id)s),
    target AS (
        INSERT INTO account_targets (user_id, target, at, visits, bot)
        SELECT user_id, id, at, %(rows)s, false FROM days),
    total AS (
        INSERT INTO account_totals (user_id, at, visits, bot) SELECT user_id, at, %(rows)s, false FROM days)
    INSERT INTO tracked_rollups (tracked_id, unit, bot, at, visits) SELECT id, 'day', false, at, %(rows)s FROM days
    RETURNING 1
"""
VISITORS = """
    INSERT INTO visitors SELECT %(id)s, sha256(int4send(n)), current_date FROM generate_series(1, %(rows)s) n
    RETURNING 1
"""
LAST_SEEN = """
    WITH visit AS (
        INSERT INTO visits (tracked_id, at, visitor) VALUES (%(id)s, now() - make_interval(days => %(days)s), '0'))
    INSERT INTO visitors VALUES (%(id)s, '0', current_date - %(days)s) RETURNING 1
"""


@pytest.fixture
def parts(raw: Connection) -> Iterator[list[str]]:
    """Two monthly partitions of `visits`, half a year and a year old."""
    names = []
    with raw.cursor() as cursor:
        for days in (180, 360):
            month = f"date_trunc('month', now() - interval '{days} days')"
            cursor.execute(f"""SELECT to_char({month}, '"visits_"YYYY_MM'), {month}, {month} + interval '1 month'""")
            [(name, since, until)] = cursor.fetchall()
            names.append(name)
            cursor.execute(f"CREATE TABLE {name} PARTITION OF visits FOR VALUES FROM ('{since}') TO ('{until}')")
        yield names
        for name in names:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def visited(sql: Sql, raw: Connection, register: Callable[..., Client], parts: list[str]) -> list[int]:
    """A link whose plan keeps visits for 90 days, and one whose plan keeps them for 365."""
    made = [factories.link(sql, register(plan.lower(), plan=plan).id) for plan in ("Free", "Pro")]
    for link in made:
        for days in (0, 180):
            sql(VISITS, id=link, days=days, rows=ROWS)
            sql(DAYS, id=link, days=days, rows=ROWS)
        sql(VISITORS, id=link, rows=ROWS)
    sql(LAST_SEEN, id=made[0], days=180)
    for link in made:
        sql("INSERT INTO totals VALUES (%(id)s, %(rows)s * 2, %(rows)s + 1) RETURNING 1", id=link, rows=ROWS)
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE visits, visitors, totals")  # autovacuum may have done so before there were rows
    return made


def purged(app: Flask) -> purge.Purged:
    with app.app_context():
        return purge.purge()


def counts(sql: Sql, table: str) -> dict[int, int]:
    found = sql(f"SELECT tracked_id, count(*) AS n FROM {table} GROUP BY tracked_id")
    return {row["tracked_id"]: row["n"] for row in found}


def test_rows_are_deleted_in_batches_and_never_counted_under_a_strong_lock(
    app: Flask, sql: Sql, visited: list[int], costs: Costs
) -> None:
    free, pro = visited
    sql(VISITS, id=2**40, days=0, rows=ROWS)  # its link was deleted meanwhile
    sql("INSERT INTO totals VALUES (%(id)s, 1, 1) RETURNING 1", id=2**40)
    spent = costs(lambda: purged(app))
    assert counts(sql, "visits") == {free: ROWS, pro: 2 * ROWS}
    assert counts(sql, "visitors") == {free: ROWS, pro: ROWS}
    assert counts(sql, "totals") == {free: 1, pro: 1}
    assert any(cost.exclusive for cost in spent), "the empty month was dropped"
    assert max(cost.rows for cost in spent if cost.exclusive) < 100
    assert max(cost.rows for cost in spent if "DELETE" in cost.sql) < 5 * purge.MAX_ROWS


def test_a_month_that_no_plan_keeps_is_dropped_without_reading_its_rows(
    app: Flask, sql: Sql, visited: list[int], costs: Costs
) -> None:
    sql("UPDATE users SET plan_id = (SELECT id FROM plans WHERE name = 'Free') RETURNING 1")
    results: list[purge.Purged] = []
    spent = costs(lambda: results.append(purged(app)))
    assert results == [purge.Purged(visits=0, months=2)]
    assert counts(sql, "visits") == counts(sql, "visitors") == dict.fromkeys(visited, ROWS)
    assert max(cost.rows for cost in spent if cost.exclusive) < 100


def test_no_visit_waits_while_the_purge_runs(app: Flask, dsn: str, sql: Sql, visited: list[int]) -> None:
    visitor = psycopg2.connect(dsn)
    visitor.autocommit = True
    with visitor.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")

        def visit() -> None:
            values: dict[str, Any] = {"id": visited[1], "days": 0, "rows": 1}
            cursor.execute(VISITS, values)
            cursor.execute("INSERT INTO visitors VALUES (%(id)s, '', current_date) ON CONFLICT DO NOTHING", values)

        with meanwhile(visit) as visits:
            assert purged(app).months
    visitor.close()
    assert counts(sql, "visits")[visited[1]] == 2 * ROWS + len(visits)


def test_a_month_that_is_being_read_is_dropped_later(
    app: Flask, raw: Connection, parts: list[str], visited: list[int]
) -> None:
    with raw.cursor() as cursor:
        cursor.execute(f"BEGIN; LOCK TABLE {parts[1]} IN ACCESS SHARE MODE")
        assert purged(app) == (ROWS + 1, 0)
        cursor.execute("COMMIT")
    assert purged(app) == (0, 1)


def test_a_month_in_which_a_visit_is_stored_meanwhile_is_kept(
    app: Flask, sql: Sql, parts: list[str], visited: list[int]
) -> None:
    sql(VISITS, id=visited[0], days=360, rows=1)
    with app.app_context():
        assert not purge._drop_partition(parts[1], if_empty=True)
    assert counts(sql, parts[1]) == {visited[0]: 1}


@pytest.mark.usefixtures("drop_past_months")
def test_a_month_that_two_workers_need_at_once_is_created_once(app: Flask, raw: Connection) -> None:
    def create() -> None:
        with app.app_context():
            visits.create_partitions_for('[{"at": 1000000000}]')

    during(raw, "SELECT create_partition(to_timestamp(1000000000))", create)


def test_expired_counters_are_deleted_through_an_index(app: Flask, sql: Sql, raw: Connection, costs: Costs) -> None:
    sql(
        """
        INSERT INTO rate_windows
        SELECT 'address:' || n, 1, now() + CASE WHEN n <= 12000 THEN interval '-2 hours' ELSE interval '1 minute' END
          FROM generate_series(1, 13000) n RETURNING 1
        """
    )
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE rate_windows")
    spent = costs(lambda: purged(app))
    batches = [cost.rows for cost in spent if "DELETE FROM rate_windows" in cost.sql]
    assert len(batches) == 3
    assert max(batches) <= 4 * purge.MAX_ROWS
    assert sql("SELECT count(*) AS n FROM rate_windows") == [{"n": 1000}]
