"""Storing visits reads rows in proportion to its batch, however many there are."""

import json
import time
from functools import partial
from itertools import cycle

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import statements
from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support import factories
from tests.support.explain import rows_passed
from tests.support.factories import Sql

VISIT = {"country": "Peru", "referrer": "a.example", "browser": "Firefox", "os": "Linux", "kind": "click", "bot": False}


def batch_of(users: list[int], links: list[int], number: int) -> str:
    """Two visits by different visitors of each link, some of which have variants."""
    common = VISIT | {"at": time.time()}
    variant = {0: {"variant": "A"}}
    return json.dumps(
        [
            common | variant.get(link % 5, {}) | {"tracked_id": link, "user_id": user, "visitor": visitor}
            for user, link in zip(cycle(users), links[:number], strict=False)
            for visitor in ("00", "01")
        ]
    )


def store(app: Flask, batch: str) -> None:
    with app.app_context():
        assert visits.add("batches", 0, 1, batch)
        visits.delete_spool("batches")


def test_a_batch_takes_as_long_for_each_link_with_many_as_with_few(
    alice: Client, app: Flask, dsn: str, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = sql(
        "INSERT INTO links (user_id, alias, url) SELECT %(id)s, 'batch-' || n, 'https://example.org/' || n"
        " FROM generate_series(1, 400) n RETURNING id",
        id=alice.id,
    )
    users = sql(
        "INSERT INTO users (username, email, password_hash, key_digest, key_ciphertext)"
        " SELECT 'batch-' || n, 'batch-' || n || '@example.com', '', int4send(n), '' FROM generate_series(1, 400) n"
        " RETURNING id",
    )
    owners, ids = ([row["id"] for row in rows] for rows in (users, links))
    few, many = (
        rows_passed(monkeypatch, dsn, partial(store, app, batch_of(owners, ids, number)))[0] for number in (40, 400)
    )
    sql("DELETE FROM users WHERE username LIKE 'batch-%%'")
    assert many < 11 * few


@pytest.mark.parametrize("before", ["empty", "small"])
def test_a_plan_that_was_made_for_small_tables_reads_grown_ones_by_their_keys(
    alice: Client, app: Flask, raw: psycopg2.extensions.connection, sql: Sql, before: str
) -> None:
    """A connection keeps its plans until the tables are analyzed."""
    link = factories.link(sql, alice.id)
    batch = batch_of([alice.id], [link] * 4, 4)  # as many visits of a day as make it detailed
    tables = "visitors, visits, tracked_rollups, account_totals, account_targets, account_labels, totals, visit_months"
    scanned = "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE relname = ANY (string_to_array(%s, ', '))"
    with raw.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables}")
        with app.app_context():
            if before == "small":
                store(app, batch)
                cursor.execute("ANALYZE")
            statements.database().close_idle()
            store(app, batch)
        cursor.execute(
            """
            INSERT INTO visitors (tracked_id, visitor, seen)
            SELECT %(id)s, int4send(n), now() FROM generate_series(1, 3000) n;
            INSERT INTO visits (tracked_id, at, visitor, country, browser, os, referrer)
            SELECT %(id)s + n, now(), int4send(n), '', '', '', '' FROM generate_series(1, 3000) n;
            INSERT INTO tracked_rollups (tracked_id, unit, bot, at, visits)
            SELECT %(id)s, 'day', false, date_trunc('day', now(), 'UTC') - n * interval '1 day', 1
              FROM generate_series(1, 3000) n;
            INSERT INTO account_targets (user_id, target, at, bot, visits)
            SELECT %(user)s, %(id)s + n, date_trunc('day', now(), 'UTC'), false, 1 FROM generate_series(1, 3000) n;
            INSERT INTO account_totals (user_id, at, bot, visits)
            SELECT %(user)s, date_trunc('day', now(), 'UTC') - n * interval '1 day', false, 1
              FROM generate_series(1, 3000) n;
            INSERT INTO account_labels (user_id, dimension, at, label, bot, visits)
            SELECT %(user)s, 'city', date_trunc('day', now(), 'UTC'), n, false, 1 FROM generate_series(1, 3000) n;
            INSERT INTO totals (tracked_id, clicks, visitors) SELECT %(id)s + n, 1, 1 FROM generate_series(1, 3000) n;
            INSERT INTO visit_months
            SELECT %(user)s, this_month() - n, false, false, 1, 1 FROM generate_series(1, 3000) n
            """,
            {"id": link, "user": alice.id},
        )
        cursor.execute(scanned, [tables])
        read = dict(cursor.fetchall())
        with app.app_context():
            for _ in range(2):
                store(app, batch)
            statements.run("SELECT pg_stat_force_next_flush()")
            statements.run("SELECT 1")
        cursor.execute(scanned, [tables])
        after = dict(cursor.fetchall())
        cursor.execute(f"TRUNCATE {tables}")
    assert {table: after[table] - read[table] for table in after} == dict.fromkeys(after, 0)
