"""Users, API keys and rows that are deleted during a request that needs them."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import users
from tests.conftest import Client
from tests.support import factories
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.keyring import Make, code
from tests.support.races import during


@pytest.mark.parametrize("kind", ["bio", "campaign", "overlay", "qr", "url"])
def test_a_write_that_waits_for_the_delete_of_its_user_reports_an_invalid_key(
    app: Flask, alice: Client, raw: psycopg2.extensions.connection, kind: str
) -> None:
    client = Client(app.test_client(), alice.key)
    delete = f"DELETE FROM users WHERE id = {alice.id}"
    answer = during(raw, delete, lambda: client.post(f"/api/{kind}/add", LEAST[kind]))
    assert answer.status_code == 401, answer.text
    assert answer.get_json()["message"].startswith("The API key is invalid. ")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("table", ["users", "api_keys"])
def test_a_request_that_waits_for_the_delete_of_its_key_reports_an_invalid_key(
    app: Flask, alice: Client, make_key: Make, raw: psycopg2.extensions.connection, table: str
) -> None:
    key = make_key(alice)
    client = Client(app.test_client(), key.key)
    column = "id" if table == "users" else "user_id"
    answer = during(raw, f"DELETE FROM {table} WHERE {column} = {alice.id}", lambda: client.get("/api/urls"))
    assert code(answer) == (401, "key_unknown")


@pytest.mark.parametrize(
    ("method", "path", "members"),
    [("POST", "/api/urls/bulk", {"urls": [{"url": "https://example.com"}]}), ("GET", "/api/account/export", None)],
)
def test_a_recent_caller_whom_another_process_deletes_gets_an_invalid_key(
    alice: Client, raw: psycopg2.extensions.connection, method: str, path: str, members: dict[str, object] | None
) -> None:
    alice.get("/api/account")
    with raw.cursor() as cursor:
        cursor.execute("DELETE FROM users WHERE id = %s", (alice.id,))
    assert code(alice.call(method, path, members)) == (401, "key_unknown")


def test_a_login_link_for_a_user_who_is_being_deleted_is_invalid(
    app: Flask, admin: Client, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    client = Client(app.test_client(), admin.key)
    answer = during(raw, f"DELETE FROM users WHERE id = {alice.id}", lambda: client.get(f"/api/user/login/{alice.id}"))
    assert (answer.status_code, answer.get_json()["message"]) == (404, "There is no user with this id.")


@pytest.mark.parametrize("parent", ["campaign", "channel"])
@pytest.mark.parametrize("deleted", ["parent", "link"])
def test_a_row_that_is_deleted_during_its_assignment_is_not_found(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection, parent: str, deleted: str
) -> None:
    parent_id, link_id = factories.ALL[parent](sql, alice.id), factories.link(sql, alice.id)
    path = f"/api/{parent}/{parent_id}/assign/{'links/' * (parent == 'channel')}{link_id}"
    kind = parent if deleted == "parent" else "link"
    answer = during(raw, f"DELETE FROM {kind}s", lambda: alice.post(path))
    assert (answer.status_code, answer.get_json()["message"]) == (404, f"There is no {kind} with this id.")


def test_a_final_delete_finds_a_link_that_moves_meanwhile(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    back = "links SELECT (jsonb_populate_record(NULL::links, to_jsonb(moved))).*"
    for table, insert in (("links", "binned_links SELECT *, '{}', now()"), ("binned_links", back)):
        path = f"/api/url/{factories.link(sql, alice.id)}/delete"
        if table == "binned_links":
            alice.delete(f"{path}?bin=1")
        move = f"WITH moved AS (DELETE FROM {table} RETURNING *) INSERT INTO {insert} FROM moved"
        assert during(raw, move, partial(alice.delete, path)).status_code == 200
        assert sql("SELECT FROM links UNION ALL SELECT FROM binned_links") == []


@pytest.mark.parametrize("kind", ["campaign", "channel"])
def test_a_link_is_restored_without_a_row_that_is_deleted_meanwhile(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection, kind: str
) -> None:
    row_id = factories.ALL[kind](sql, alice.id)
    link = alice.add("/api/url/add", {"url": "https://example.com", kind: row_id if kind == "campaign" else [row_id]})
    alice.delete(f"/api/url/{link}/delete?bin=1")
    answer = during(raw, f"DELETE FROM {kind}s", lambda: alice.post(f"/api/url/{link}/restore"))
    assert (answer.status_code, answer.get_json()["record"][kind] or None) == (200, None)


def test_writes_around_the_delete_of_their_user_succeed_or_are_refused(
    app: Flask, admin: Client, register: Callable[..., Client]
) -> None:
    for number in range(5):
        carol = register(f"carol{number}")

        def write(number: int, carol: Client = carol) -> int:
            client = Client(app.test_client(), carol.key)
            return client.post("/api/url/add", {"url": f"https://example.com/{number}"}).status_code

        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(write, number) for number in range(12)]
            deleted = pool.submit(Client(app.test_client(), admin.key).delete, f"/api/user/{carol.id}/delete")
            assert Counter(answer.result() for answer in answers).keys() <= {200, 401}
        assert deleted.result().status_code == 200
    with app.app_context():
        assert [user["username"] for found in users.search() for user in found] == ["admin"]
