"""Storage of visits: plan limits and retention."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg2
import pytest
from flask import Flask

from linkmgr.visits.counting import DIRECT, Visit
from linkmgr.visits.queue import VisitQueue
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.rollups import FOLLOW_VISITS
from tests.support.targets import Target
from tests.support.visited import purge

MONTHS_AHEAD = 2


# --- the plan limit


def test_over_the_monthly_limit_visitors_are_redirected_and_not_recorded(
    located: Flask, sql: Sql, register: Callable[..., Client], admin: Client
) -> None:
    sql(
        """
        INSERT INTO plans (name, free, limits)
        SELECT 'Tiny', false, jsonb_set(limits::jsonb, '{clicks}', '3') FROM plans WHERE name = 'Free' RETURNING 1
        """
    )
    carol = register("carol", plan="Tiny")
    target, other = Target(located, sql, carol.id), Target(located, sql, carol.id)
    for _ in range(3):
        target.visit()
        other.visit()
    assert (target.clicks, other.clicks) == (2, 1)
    sql("UPDATE visit_months SET month = '2020-01-01' RETURNING 1")
    target.visit()
    assert target.clicks == 3, "a new month"
    unlimited = Target(located, sql, admin.id)
    unlimited.visit()
    assert unlimited.clicks == 1


def test_visits_are_recorded_without_prepared_statements_too(
    make_app: Callable[..., Flask], sql: Sql, alice: Client
) -> None:
    target = Target(make_app(prepare="0"), sql, alice.id)
    target.visit()
    assert target.clicks == 1


# --- retention


def rows_of(sql: Sql, tracked_id: int) -> dict[str, int]:
    found = sql(
        """
        SELECT (SELECT count(*) FROM visits WHERE tracked_id = %(id)s) AS visits,
               (SELECT count(*) FROM visitors WHERE tracked_id = %(id)s) AS visitors,
               (SELECT count(*) FROM totals WHERE tracked_id = %(id)s) AS totals,
               (SELECT count(*) FROM tracked_rollups WHERE tracked_id = %(id)s) AS rollups
        """,
        id=tracked_id,
    )
    return dict(found[0])


@pytest.fixture
def past_months(raw: psycopg2.extensions.connection, sql: Sql) -> Iterator[int]:
    """Add the monthly partitions of `visits` of a service that was started long ago. Return their
    number, which is one more on the first day of most months.
    """
    months = sql(
        """
        SELECT to_char(month, '"visits_"YYYY_MM') AS part, month::text AS start,
               (month + interval '1 month')::text AS over
          FROM generate_series(date_trunc('month', now() - interval '366 days'), now() - interval '1 month',
                               interval '1 month') AS month
        """
    )
    with raw.cursor() as cursor:
        cursor.execute("SELECT drop_partition(partition, false) FROM partitions WHERE until <= now()")  # of other tests
        for month in months:
            bounds = f"FROM ('{month['start']}') TO ('{month['over']}')"
            cursor.execute(f"CREATE TABLE {month['part']} PARTITION OF visits FOR VALUES {bounds}")
        yield len(months)
        for month in months:
            cursor.execute(f"DROP TABLE IF EXISTS {month['part']}")


def parts(sql: Sql) -> int:
    [found] = sql("SELECT count(*) AS n FROM pg_inherits WHERE inhparent = 'visits'::regclass")
    return int(found["n"])


def test_the_purge_deletes_visits_past_the_retention_of_the_plan(
    located: Flask, sql: Sql, register: Callable[..., Client], past_months: int
) -> None:
    plans = ("Free", "Pro", "Business")
    targets = {plan: Target(located, sql, register(plan.lower(), plan=plan).id) for plan in plans}
    # The retention is a promise to visitors, so it applies to administrators too.
    targets["administrator"] = Target(located, sql, register("root", plan="Free", admin=True).id)
    for target in targets.values():
        for number in range(4):
            target.visit(address=f"192.0.2.{number}")
    sql(
        """
        UPDATE visits SET at = now() - make_interval(days => age)
          FROM (SELECT tracked_id, visitor,
                       (array[0, 89, 91, 366])[row_number() OVER (PARTITION BY tracked_id ORDER BY visitor)] AS age
                  FROM visits) aged
         WHERE visits.tracked_id = aged.tracked_id AND visits.visitor = aged.visitor
        RETURNING 1
        """
    )
    sql(FOLLOW_VISITS)
    before = {plan: target.statistics() for plan, target in targets.items()}
    assert purge(located).startswith("5 visits deleted, ")
    assert {plan: rows_of(sql, target.id)["visits"] for plan, target in targets.items()} == {
        "Free": 2,
        "Pro": 3,
        "Business": 4,
        "administrator": 2,
    }
    assert rows_of(sql, targets["Free"].id)["visitors"] == 2, "visitors are stored no longer than their visits"
    assert {plan: target.statistics() for plan, target in targets.items()} == before
    assert purge(located) == "0 visits deleted, 0 monthly partitions dropped.\n"
    [months] = sql("SELECT count(DISTINCT date_trunc('month', at)) AS n FROM visits")
    assert parts(sql) == months["n"] + MONTHS_AHEAD, "months without a visit are dropped"


def test_months_that_no_plan_retains_are_dropped_as_partitions(
    located: Flask, sql: Sql, register: Callable[..., Client], past_months: int
) -> None:
    target = Target(located, sql, register("carol", plan="Free").id)
    for number in range(3):
        target.visit(address=f"192.0.2.{number}")
    sql("UPDATE visits SET at = now() - interval '300 days' RETURNING 1")
    sql(FOLLOW_VISITS)
    assert purge(located) == f"0 visits deleted, {past_months} monthly partitions dropped.\n"
    assert rows_of(sql, target.id)["visitors"] == 0
    assert parts(sql) == 1 + MONTHS_AHEAD
    assert target.clicks == 3


@pytest.mark.parametrize(("days", "bot"), [(0, False), (100, True)])
def test_the_purge_deletes_visits_that_arrived_during_the_delete_of_their_target(
    *, target: Target, sql: Sql, alice: Client, register: Callable[..., Client], past_months: int, days: int, bot: bool
) -> None:
    register("carol", plan="Free")
    recorder: VisitQueue = target.app.extensions["linkmgr_visit_queue"]
    at = time.time() - timedelta(days=days).total_seconds()
    recorder.add(Visit(2**40, alice.id, at, "00", "Peru", DIRECT, "Firefox", "Linux", None, bot=bot))
    assert recorder.flush()
    assert rows_of(sql, 2**40)["visits"] == 1
    purge(target.app)
    assert rows_of(sql, 2**40) == {"visits": 0, "visitors": 0, "totals": 0, "rollups": 0}


def test_the_purge_deletes_the_counters_of_past_months(target: Target, sql: Sql) -> None:
    target.visit()
    sql("INSERT INTO visit_months SELECT user_id, '2020-01-01', false, false, 5, 5 FROM visit_months RETURNING 1")
    purge(target.app)
    assert len(sql("SELECT FROM visit_months")) == 1
    assert target.clicks == 1
