"""The statement that stores visits reads rows in proportion to its batch, however many there are."""

import json
import time
from functools import partial
from itertools import cycle

import pytest
from flask import Flask

from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support import factories
from tests.support.explain import rows_passed, rows_read
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


def test_a_batch_reads_visitors_and_sums_by_their_keys_while_the_plan_of_empty_tables_is_kept(
    alice: Client, app: Flask, dsn: str, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = factories.link(sql, alice.id)
    sql(
        """
        WITH many AS (
            INSERT INTO visitors (tracked_id, visitor, seen)
            SELECT %(id)s, int4send(n), now() FROM generate_series(1, 3000) n)
        INSERT INTO tracked_rollups (tracked_id, unit, bot, at, visits)
        SELECT %(id)s, 'raw', false, date_trunc('day', now(), 'UTC') - n * interval '1 day', 1
          FROM generate_series(0, 3000) n
        """,
        id=link,
    )
    call = partial(store, app, batch_of([alice.id], [link] * 4, 4))  # as many visits of a day as make it detailed
    plan_of_empty_tables = """
        LOCK TABLE visitors, tracked_rollups IN SHARE UPDATE EXCLUSIVE MODE;
        DELETE FROM pg_statistic WHERE starelid IN ('visitors'::regclass, 'tracked_rollups'::regclass);
        UPDATE pg_class SET relpages = 1, reltuples = 0 WHERE relname IN ('visitors', 'tracked_rollups')
    """
    assert rows_read(monkeypatch, dsn, call, plan_of_empty_tables)[0] < 200
