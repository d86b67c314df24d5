"""Scopes: every API operation for keys with every scope. A new route is in these tests without a change."""

from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.core import keys
from linkmgr.core.web import scopes
from tests.conftest import Client
from tests.support.document import document
from tests.support.factories import Sql
from tests.support.operations import CALLS, KEYED, READS, Call
from tests.support.pages import docs
from tests.support.worlds import Rows, World, ask

WithScopes = Callable[[Client, list[str]], Client]


@pytest.fixture
def with_scopes(sql: Sql) -> WithScopes:
    """Return a client with a key that has exactly these scopes, whatever the user may give."""

    def make(owner: Client, names: list[str]) -> Client:
        secret = keys.new_scoped_key()
        sql(
            """
            INSERT INTO api_keys (user_id, name, prefix, digest, scopes)
            VALUES (%(user_id)s, 'Scoped', 'lmk_', %(digest)s, %(scopes)s) RETURNING 1
            """,
            user_id=owner.id,
            digest=keys.digest(secret),
            scopes=names,
        )
        return Client(owner.http, secret, owner.id, owner.username)

    return make


def actor(call: Call) -> str:
    return "administrator" if call.operation.is_for_administrators else "owner"


def rows_of(call: Call, world: World) -> list[int]:
    return world.ready_ids(call, "owner" if actor(call) == "administrator" else actor(call))


def needed(call: Call) -> str:
    """Return the scope that the document names."""
    [scope] = document()["paths"][call.route.path][call.method.lower()]["security"][0]["key"]
    return str(scope)


def covers(name: str, scope: str) -> bool:
    """Return True if a key with `name` has `scope`."""
    word = scope.partition(":")[0]
    return name in (scope, f"{word}:write") or (name == "*" and scope != "admin")


def test_a_key_without_the_scope_is_refused_and_changes_nothing(
    app: Flask, world: World, dump: Callable[[], Rows], with_scopes: WithScopes
) -> None:
    """A key with all other scopes at once is refused, so a key with any of them is."""
    ids = {call: rows_of(call, world) for call in KEYED}
    clients: dict[tuple[str, str], Client] = {}
    for owner, scope in {(actor(call), needed(call)) for call in KEYED}:
        with app.app_context():
            others = [name for name in scopes.names() if not covers(name, scope)]
        assert len(others) > 20
        clients[owner, scope] = with_scopes(world.clients[owner], others)
    before = dump()
    for call in KEYED:
        scope = needed(call)
        answer = ask(clients[actor(call), scope], call, ids[call])
        assert (answer.status_code, answer.get_json()["code"]) == (403, "scope_missing"), call
        assert scope in answer.get_json()["message"]
        assert answer.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{scope}"'
    assert dump() == before


@pytest.mark.parametrize(
    "calls", [READS, *([call] for call in KEYED if call not in READS)], ids=lambda calls: str(calls[0])
)
def test_a_key_with_only_the_scope_is_allowed(world: World, with_scopes: WithScopes, calls: list[Call]) -> None:
    for call in calls:
        # Keys are within the limits of their maker, and only one without limits turns on the default key.
        is_unlimited = call.path.startswith("/api/key/") and call.method != "GET"
        client = with_scopes(world.clients[actor(call)], ["*"] if is_unlimited else [needed(call)])
        assert ask(client, call, rows_of(call, world)).status_code == 200, call


def test_reading_keys_change_nothing(
    app: Flask, world: World, dump: Callable[[], Rows], with_scopes: WithScopes
) -> None:
    with app.app_context():
        client = with_scopes(world.clients["owner"], [name for name in scopes.names() if name.endswith(":read")])
    ids = {call: rows_of(call, world) for call in KEYED}
    before = dump()
    for call in KEYED:
        ask(client, call, ids[call])
    assert dump() == before


def test_creating_keys_only_create(app: Flask, world: World, with_scopes: WithScopes) -> None:
    with app.app_context():
        client = with_scopes(world.clients["owner"], [name for name in scopes.names() if name.endswith(":create")])
    for call in KEYED:
        creates = call.method == "POST" and call.path.endswith(
            (
                "/add",
                "/webhooks",
                "/conversions",
                "/conversions/batch",
                "/import",
                "/imports",
                "/imports/service",
                "/bulk",
            )
        )
        allowed = ask(client, call, rows_of(call, world)).status_code != 403
        # The example of a new key gives more than its maker has.
        assert allowed == (creates and actor(call) == "owner") or call.path == "/api/key/add", call


@pytest.mark.parametrize("call", [call for call in CALLS if call not in KEYED], ids=str)
def test_public_operations_need_no_scope(app: Flask, alice: Client, with_scopes: WithScopes, call: Call) -> None:
    client = with_scopes(alice, ["pixels:read"])
    headers = {"Authorization": f"Bearer {client.key}"}
    assert app.test_client().open(call.path, method=call.method, headers=headers).status_code == 200


def test_an_unknown_path_is_a_404_for_every_key(alice: Client, with_scopes: WithScopes) -> None:
    client = with_scopes(alice, ["pixels:read"])
    assert client.get("/api/linkz").status_code == 404
    assert client.post("/api/urls").status_code == 405


def test_a_head_request_needs_the_scope_of_get(alice: Client, with_scopes: WithScopes) -> None:
    client = with_scopes(alice, ["pixels:read"])
    assert client.call("HEAD", "/api/pixels").status_code == 200
    assert client.call("HEAD", "/api/urls").status_code == 403


def test_the_page_shows_the_scope_of_each_operation(app: Flask) -> None:
    page = docs(app.test_client())
    assert page.count("Scope: <code>") == len({(call.method, call.route.path) for call in KEYED})
    assert "Scope: <code>links:create</code>" in page
