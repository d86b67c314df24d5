"""A write under an Idempotency-Key happens once, and its answer is replayed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

import pytest
from flask import Flask

from bench import trips
from linkmgr.core.database import statements
from tests.conftest import Client
from tests.support.factories import Sql, qr
from tests.support.operations import KEYED, Call
from tests.support.races import at_once
from tests.support.repeated import PIXEL, Connection, add, contents, is_replayed, rows, under
from tests.support.stage import Stage
from tests.support.targets import wait_until

WRITES = [call for call in KEYED if call.method != "GET"]
WAITING = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.mark.parametrize("call", WRITES, ids=str)
def test_a_write_under_a_key_happens_once_and_its_answer_is_replayed_byte_for_byte(
    stage: Stage, sql: Sql, call: Call
) -> None:
    client, path, body = stage.caller(call), stage.path(call), stage.bodies(call)[-1]
    first = client.call(call.method, path, body, **under(), **call.upload)
    assert first.status_code == 200, first.text
    assert not is_replayed(first)
    stored = rows(sql)
    assert len(stored["idempotency_keys"]) == 1
    assert first.text[1:-1] not in str(stored["idempotency_keys"])
    again = client.call(call.method, path, body, **under(), **call.upload)
    assert contents(again) == contents(first)
    assert is_replayed(again)
    assert rows(sql) == stored


def test_a_create_under_a_key_needs_five_round_trips_to_postgresql(app: Flask, on_plan: Callable[..., Client]) -> None:
    carol = on_plan(alias={"enabled": "1"})

    def request() -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {carol.key}", "Idempotency-Key": token_hex(8)}
        body = {"url": f"https://{token_hex(8)}.example"}
        return {"path": "/api/url/add", "method": "POST", "json": body, "headers": headers}

    assert trips.count(app, request) == 5  # identify; find; lock and find again; write; store and commit


def test_exactly_one_of_50_concurrent_requests_writes(alice: Client, sql: Sql) -> None:
    responses = at_once(50, lambda _: add(alice), threads=25)
    written = [response for response in responses if response.status_code == 200]
    assert {response.status_code for response in responses} <= {200, 409}
    assert {response.get_json()["code"] for response in responses if response.status_code == 409} <= {
        "idempotency_key_in_use"
    }
    assert len({response.data for response in written}) == 1
    assert sum(not is_replayed(response) for response in written) == 1
    assert len(sql("SELECT FROM pixels")) == 1


def test_a_request_that_is_still_running_is_409_and_is_replayed_afterwards(
    alice: Client, sql: Sql, raw: Connection
) -> None:
    with ThreadPoolExecutor(1) as pool, raw.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE pixels IN SHARE MODE")
        running = pool.submit(add, alice)
        wait_until(lambda: bool(sql(WAITING)))
        answer = add(alice)
        assert (answer.status_code, answer.get_json()["code"]) == (409, "idempotency_key_in_use")
        cursor.execute("COMMIT")
        assert running.result().status_code == 200
    assert contents(add(alice)) == contents(running.result())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/pixel/add", PIXEL | {"name": "other"}),
        ("POST", "/api/pixel/add?x=1", PIXEL),
        ("POST", "/api/pixel/add?%ff", PIXEL),
        ("POST", "/api/channel/1/assign/%ff%00/1", None),
        ("POST", "/api/channel/add", PIXEL),
        ("PUT", "/api/account/update", PIXEL),
    ],
)
def test_another_request_under_the_same_key_is_422(
    alice: Client, sql: Sql, method: str, path: str, body: dict[str, Any]
) -> None:
    first = add(alice)
    answer = alice.call(method, path, body, **under())
    assert (answer.status_code, answer.get_json()["code"]) == (422, "idempotency_key_reused")
    assert contents(add(alice)) == contents(first)
    assert len(sql("SELECT FROM pixels")) == 1


def test_another_request_that_is_answered_meanwhile_is_422(
    alice: Client, bob: Client, sql: Sql, raw: Connection
) -> None:
    """The update has looked for an answer, and waits for the type of the QR code before its first write."""
    path = f"/api/qr/{qr(sql, alice.id)}/update"
    with ThreadPoolExecutor(1) as pool, raw.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE qrs")
        waiting = pool.submit(alice.put, path, {"data": "new"}, **under())
        wait_until(lambda: bool(sql(WAITING)))
        first = add(alice)
        cursor.execute("COMMIT")
        assert waiting.result().status_code == 422
    assert contents(add(alice)) == contents(first)
    assert sql("SELECT FROM qrs WHERE data #>> '{}' = 'new'") == []


def test_another_users_key_is_another_key(alice: Client, bob: Client, sql: Sql) -> None:
    assert not is_replayed(add(alice))
    assert not is_replayed(add(bob, name="other"))
    assert len(sql("SELECT FROM pixels")) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [("abc-1", '"abc-1"'), ('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"'), ("a b", '"a b"'), ("x" * 255, f'"{"x" * 255}"')],
)
def test_a_key_is_the_same_with_and_without_quotes(alice: Client, first: str, second: str) -> None:
    assert not is_replayed(add(alice, first))
    assert is_replayed(add(alice, second))


@pytest.mark.parametrize("key", ["", '""', "x" * 256, '"', '"a', '"a"b"', r'"a\b"', "é", "a\tb", '"a";b=1'])
def test_a_malformed_key_is_400_and_changes_nothing(alice: Client, sql: Sql, key: str) -> None:
    answer = add(alice, key)
    assert (answer.status_code, answer.get_json()["code"]) == (400, "idempotency_key_invalid")
    assert sql("SELECT FROM pixels") == sql("SELECT FROM idempotency_keys") == []


def test_get_ignores_the_key(alice: Client, sql: Sql) -> None:
    for key in ("", "key-1", "key-1"):
        assert not is_replayed(alice.get("/api/account", **under(key)))
    assert sql("SELECT FROM idempotency_keys") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/pixel/add", {"type": "bing"}, 400),
        ("POST", "/api/channel/add", {"name": "News"}, 400),
        ("PUT", "/api/qr/1/update", {"data": "x"}, 404),
        ("DELETE", "/api/channel/1/delete", None, 404),
        ("POST", "/api/channel/add", [], 400),
    ],
)
def test_the_answer_to_invalid_input_is_replayed_too(
    *, alice: Client, sql: Sql, method: str, path: str, body: Any, status: int
) -> None:
    alice.add("/api/channel/add", {"name": "News"})
    first = alice.call(method, path, body, **under())
    assert first.status_code == status
    sql("DELETE FROM channels RETURNING 1")
    again = alice.call(method, path, body, **under())
    assert contents(again) == contents(first)
    assert is_replayed(again)
    assert sql("SELECT FROM channels") == []


def test_a_refused_write_leaves_nothing_of_its_statements(
    alice: Client, sql: Sql, register: Callable[..., Client]
) -> None:
    """The slug of a deleted user is released before the name of the campaign is refused."""
    carol = register("carol")
    for slug in ("sale", "spring"):
        carol.post("/api/campaign/add", {"name": slug, "slug": slug})
    sql("DELETE FROM users WHERE id = %(id)s RETURNING 1", id=carol.id)
    taken = alice.post("/api/campaign/add", {"name": "c", "slug": "sale"}, **under())
    assert taken.status_code == 200
    refused = alice.post("/api/campaign/add", {"name": "c", "slug": "spring"}, **under("key-2"))
    assert refused.get_json()["code"] == "campaign_name_taken"
    assert contents(alice.post("/api/campaign/add", {"name": "c", "slug": "spring"}, **under("key-2"))) == contents(
        refused
    )
    released = sql("SELECT name, slug FROM campaigns WHERE user_id = %(id)s ORDER BY name", id=carol.id)
    assert released == [{"name": "sale", "slug": None}, {"name": "spring", "slug": "spring"}]


def test_401_and_429_are_not_stored(
    alice: Client, sql: Sql, app_with: Callable[..., Flask], register: Callable[..., Client]
) -> None:
    assert add(Client(alice.http)).status_code == 401
    limited = register("carol", via=app_with(rate_limit="1 per minute"))
    sql("UPDATE plans SET rate = NULL WHERE name = 'Business' RETURNING 1")
    try:
        assert [add(limited).status_code for _ in range(2)] == [200, 429]
    finally:
        sql("UPDATE plans SET rate = 600 WHERE name = 'Business' RETURNING 1")
    assert len(sql("SELECT FROM idempotency_keys")) == 1


def test_a_connection_lost_before_the_commit_is_503_and_stores_nothing(
    alice: Client, sql: Sql, raw: Connection
) -> None:
    with raw.cursor() as cursor:
        cursor.execute(
            """
            CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER die AFTER INSERT ON pixels DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION die()
            """
        )
        try:
            assert add(alice).status_code == 503
        finally:
            cursor.execute("DROP FUNCTION die CASCADE")
    assert sql("SELECT FROM pixels") == sql("SELECT FROM idempotency_keys") == []
    assert add(alice).status_code == 200
    assert is_replayed(add(alice))
    assert len(sql("SELECT FROM pixels")) == 1


def test_a_statement_that_fails_in_the_database_is_503_and_is_not_stored(
    alice: Client, sql: Sql, raw: Connection
) -> None:
    with raw.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE pixels IN SHARE MODE")
        assert add(alice).get_json()["code"] == "busy"
        cursor.execute("ROLLBACK")
    assert sql("SELECT FROM idempotency_keys") == []
    assert add(alice).status_code == 200


def test_a_changed_table_is_503_once(app: Flask, alice: Client, sql: Sql, raw: Connection) -> None:
    """A prepared statement whose result has changed cannot be prepared again inside a transaction."""
    channel = {"name": "n"}
    assert alice.post("/api/channel/add", channel, **under("key-1")).status_code == 200
    with raw.cursor() as cursor:
        cursor.execute(
            "DROP SCHEMA restricted_own, restricted_domains, noted CASCADE; "
            "ALTER TABLE channels ALTER name TYPE varchar"
        )
        try:
            statuses = [alice.post("/api/channel/add", {"name": "m"}, **under("key-2")).status_code for _ in range(3)]
        finally:
            cursor.execute(
                "ALTER TABLE channels ALTER name TYPE text; SELECT create_restricted_views(), create_noted_views()"
            )
    assert statuses == [503, 200, 200]
    assert len(sql("SELECT FROM channels")) == 2
    with app.app_context():
        statements.database().close_idle()  # other tests prepare their statements anew
