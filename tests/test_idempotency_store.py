"""Answers stored under an Idempotency-Key: how long, encrypted, and deleted in batches."""

import secrets
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from flask import Flask

from linkmgr.core.database import paging, statements, transaction
from linkmgr.core.web import idempotency as web_idempotency
from linkmgr.core.web import idempotency_store
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support.batches import BATCH
from tests.support.factories import Sql
from tests.support.repeated import PIXEL, Connection, add, contents, is_replayed, under
from tests.support.transactions import Costs

AGE = "UPDATE idempotency_keys SET created = created - interval '24 hours 1 second' RETURNING 1"
ANSWERS = """
    INSERT INTO idempotency_keys (user_id, key, response, created)
    SELECT %(owner)s, n, 'x', now() - make_interval(hours => %(hours)s) FROM generate_series(1, %(many)s) n RETURNING 1
"""


def test_an_answer_is_kept_for_24_hours(alice: Client, sql: Sql) -> None:
    first = add(alice)
    sql(AGE)
    second = add(alice)
    assert second.get_json()["id"] > first.get_json()["id"]
    assert contents(add(alice)) == contents(second)
    assert len(sql("SELECT FROM pixels")) == 2
    sql(AGE)
    assert add(alice, name="other").status_code == 200


def test_answers_are_read_with_the_secrets_of_the_settings_only(
    make_app: Callable[..., Flask], register: Callable[..., Client]
) -> None:
    before, after = "before" * 6, "after" * 7
    alice = register("carol", via=make_app(secret_key=before))
    first = add(alice)
    changed = Client(make_app(secret_key=after, secret_key_fallbacks=before).test_client(), alice.key)
    assert contents(add(changed)) == contents(first)
    lost = Client(make_app(secret_key=after).test_client(), alice.key)
    assert add(lost).get_json()["code"] == "other_secret"


def test_an_answer_cannot_be_read_as_another_users(alice: Client, bob: Client, sql: Sql) -> None:
    add(alice)
    sql("UPDATE idempotency_keys SET user_id = %(id)s RETURNING 1", id=bob.id)
    assert bob.http.post(
        "/api/pixel/add", json=PIXEL, headers={"Authorization": f"Bearer {bob.key}", **under()["headers"]}
    ).status_code == 500  # fmt: skip


def test_a_read_after_the_first_write_of_a_request_sees_it(app: Flask, alice: Client) -> None:
    listed = "SELECT id FROM pixels"
    with app.app_context():
        with transaction.lazily(lambda: None):
            statements.run(
                "INSERT INTO pixels (user_id, type, name, tag) VALUES (%(id)s, 'bing', 'n', 't')", id=alice.id
            )
            seen = [statements.row(listed), statements.replica_row(listed), *statements.rows(listed)]
            seen += paging.page(f"{listed} LIMIT %(limit)s OFFSET %(offset)s", "1", limit=1, number=1).rows
            assert len({row["id"] for row in seen if row}) == 1
            assert len(seen) == 4
        assert statements.row(listed) is None


def test_a_request_without_the_header_runs_no_further_statement(alice: Client, costs: Costs) -> None:
    spent = costs(lambda: alice.post("/api/pixel/add", PIXEL))
    assert len(spent) == 2, "the caller is identified, and the pixel is stored"


def test_expired_answers_are_purged_in_batches(
    app: Flask, alice: Client, sql: Sql, raw: Connection, costs: Costs
) -> None:
    add(alice, "kept")
    sql(ANSWERS, owner=alice.id, hours=25, many=2 * purge.MAX_ROWS + 1)
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE idempotency_keys")
    with app.app_context():
        spent = costs(purge.purge)
    assert max(cost.rows for cost in spent) <= 4 * purge.MAX_ROWS
    assert is_replayed(add(alice, "kept"))
    assert len(sql("SELECT FROM idempotency_keys")) == 1


def test_a_user_with_many_answers_is_deleted_at_once_and_the_answers_in_batches(
    admin: Client, alice: Client, sql: Sql, run_jobs: Callable[[], None], costs: Costs
) -> None:
    sql(ANSWERS, owner=alice.id, hours=0, many=2000)
    spent = costs(lambda: admin.delete(f"/api/user/{alice.id}/delete"))
    assert max(cost.rows for cost in spent) < 100
    spent = costs(run_jobs)
    assert max(cost.rows for cost in spent) < BATCH
    assert sql("SELECT FROM idempotency_keys") == []


def test_the_answer_to_a_bulk_request_is_repeated_completely(
    alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    trim = Mock()
    monkeypatch.setattr(idempotency_store, "trim", trim)
    body = {"urls": [{"url": "https://example.com/", "custom": secrets.token_urlsafe(24)} for _ in range(800)]}
    first = alice.post("/api/urls/bulk", body, **under())
    assert first.get_json()["created"] == 800
    assert trim.called, "a large answer may exceed the limits of its user"
    assert contents(alice.post("/api/urls/bulk", body, **under())) == contents(first)
    assert sql("SELECT count(*) AS number FROM links") == [{"number": 800}]


@pytest.mark.parametrize("limit", [("MAX_NUMBER", 3), ("MAX_BYTES", 1000)])
def test_the_oldest_answers_of_a_user_are_dropped_beyond_a_limit(
    alice: Client, bob: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(web_idempotency, "_TRIM_EVERY", 1)
    add(bob)
    monkeypatch.setattr(idempotency_store, *limit)
    for number in range(8):
        add(alice, f"key-{number}")
    kept = sql("SELECT key FROM idempotency_keys WHERE user_id = %(id)s ORDER BY created", id=alice.id)
    assert 1 <= len(kept) <= 6
    assert [row["key"] for row in kept] == [f"key-{number}" for number in range(8 - len(kept), 8)]
    assert is_replayed(add(bob))


def test_many_answers_are_trimmed_with_a_plan_that_was_made_for_few(
    alice: Client, sql: Sql, raw: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_idempotency, "_TRIM_EVERY", 1)
    with raw.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE idempotency_keys")
    add(alice, "first")
    sql(ANSWERS, owner=alice.id, hours=1, many=10_000)
    assert add(alice, "last").status_code == 200, "within the timeout of a statement"
