"""The access matrix: every API operation for every kind of caller."""

import json
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask
from psycopg2 import sql as composed
from werkzeug.test import TestResponse

from linkmgr.openapi.model import Access
from tests import factories
from tests.conftest import Client
from tests.factories import Sql
from tests.operations import KEYED, Call

GHOST = 2**62  # an id that never existed
OF_USERS = [call for call in KEYED if call.operation.access is Access.USER]
OF_ADMINISTRATORS = [call for call in KEYED if call.operation.access is Access.ADMINISTRATOR]
WITHOUT_ID = [call for call in OF_USERS if not call.rows]
WITH_ID = [call for call in OF_USERS if call.rows]


class World:
    """Alice with one row of each kind, and other users who must not reach them."""

    def __init__(self, app: Flask, register: Callable[..., Client], sql: Sql) -> None:
        self.app, self.register, self.sql = app, register, sql
        self.clients = {
            "owner": register("alice", via=app),
            "other": register("bob", via=app),
            "administrator": register("admin", admin=True, via=app),
        }
        self.made: dict[tuple[str, str], int] = {}

    def id(self, what: str, actor: str) -> int:
        """Return the id of a row of the actor, created on first use."""
        if (what, actor) not in self.made:
            self.made[what, actor] = self._make(what, self.clients[actor])
        return self.made[what, actor]

    def ids(self, call: Call, actor: str) -> list[int]:
        return [self.id(what, actor) for what in call.rows]

    def fill(self, actor: str) -> None:
        for what in factories.ALL:
            self.id(what, actor)

    def _make(self, what: str, client: Client) -> int:
        match what:
            case "user":
                return client.id
            case "plan":
                return int(self.sql("SELECT id FROM plans WHERE name = 'Pro'")[0]["id"])
            case _:
                return factories.ALL[what](self.sql, client.id)


@pytest.fixture(scope="module")
def aging(make_app: Callable[..., Flask]) -> Flask:
    """The service with expiring keys."""
    return make_app(key_lifetime_days="30")


@pytest.fixture
def world(aging: Flask, register: Callable[..., Client], sql: Sql) -> World:
    return World(aging, register, sql)


Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
def dump(raw: psycopg2.extensions.connection) -> Callable[[], Rows]:
    """Every row of every table except the rate limit counters."""

    def read() -> Rows:
        with raw.cursor() as cursor:
            cursor.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'rate_windows'"
            )
            found = {}
            for (table,) in cursor.fetchall():
                cursor.execute(composed.SQL("SELECT to_jsonb(t) FROM {} t").format(composed.Identifier(table)))
                found[table] = sorted((row for (row,) in cursor), key=lambda row: json.dumps(row, sort_keys=True))
            return found

    return read


def owned_by(user_id: int, rows: Rows) -> Rows:
    return {
        table: [row for row in found if user_id in (row.get("user_id"), row["id"] if table == "users" else None)]
        for table, found in rows.items()
    }


def over(calls: list[Call]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", calls, ids=str)


def ask(client: Client, call: Call, ids: list[int]) -> TestResponse:
    return client.call(call.method, call.path_of(ids), call.example)


def replaced(ids: list[int], place: int, by: int) -> list[int]:
    return [by if each == place else own for each, own in enumerate(ids)]


def lists_rows(data: Any) -> bool:
    return bool(data.get("result")) if isinstance(data, dict) else bool(data)


def comparable(answer: TestResponse) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return everything in a response that reveals data: all of it except the rate limit headers and the request id."""
    headers = [
        header for header in answer.headers if not header[0].startswith(("X-RateLimit", "RateLimit", "X-Request-Id"))
    ]
    return answer.status_code, answer.data, sorted(headers)


@pytest.mark.parametrize("caller", ["anonymous", "bad key", "expired key", "owner's expired key", "deleted user"])
def test_without_a_valid_key_nothing_is_revealed_and_nothing_changes(
    world: World, dump: Callable[[], Rows], caller: str
) -> None:
    world.fill("owner")
    client = Client(world.app.test_client())
    match caller:
        case "bad key":
            client.key = "linkmgr_" + "x" * 43
        case "expired key":
            client.key = world.register("late", admin=True, via=world.app).key
            world.sql("UPDATE users SET key_created = now() - interval '31 days' WHERE username = 'late'")
        case "owner's expired key":
            client.key = world.clients["owner"].key
            world.sql("UPDATE users SET key_created = now() - interval '31 days'")
        case "deleted user":
            client.key = world.register("gone", admin=True, via=world.app).key
            world.sql("DELETE FROM users WHERE username = 'gone'")
    before = dump()
    for call in KEYED:
        assert ask(client, call, world.ids(call, "owner")).status_code == 401, call
    assert dump() == before


@pytest.mark.parametrize("actor", ["other", "administrator"])
@over(WITHOUT_ID)
def test_a_route_without_an_id_uses_only_the_callers_rows(
    world: World, dump: Callable[[], Rows], call: Call, actor: str
) -> None:
    world.fill("owner")
    before, owner = dump(), world.clients["owner"]
    answer = ask(world.clients[actor], call, [])
    assert answer.status_code == 200
    assert owned_by(owner.id, dump()) == owned_by(owner.id, before)
    assert owner.username.encode() not in answer.data
    assert call.operation.file or not lists_rows(answer.get_json().get("data"))


@over(OF_USERS)
def test_the_owner_is_allowed(world: World, call: Call) -> None:
    assert ask(world.clients["owner"], call, world.ids(call, "owner")).status_code == 200


@pytest.mark.parametrize("actor", ["other", "administrator"])
def test_each_id_of_another_user_is_the_same_404_as_an_id_that_never_existed(
    world: World, dump: Callable[[], Rows], actor: str
) -> None:
    world.fill("owner")
    world.fill(actor)
    client, before = world.clients[actor], dump()
    for call in WITH_ID:
        foreign, own = world.ids(call, "owner"), world.ids(call, actor)
        for place in range(len(own)):
            answers = [ask(client, call, replaced(own, place, other)) for other in (foreign[place], GHOST)]
            assert answers[0].status_code == 404, call
            assert comparable(answers[0]) == comparable(answers[1]), call
        assert comparable(ask(client, call, foreign)) == comparable(ask(client, call, [GHOST] * len(own))), call
    assert dump() == before


@pytest.mark.parametrize("actor", ["owner", "other"])
def test_administration_is_forbidden_to_users_even_for_themselves(
    world: World, dump: Callable[[], Rows], actor: str
) -> None:
    client, before = world.clients[actor], dump()
    for call in OF_ADMINISTRATORS:
        ids = world.ids(call, "owner")
        answer = ask(client, call, ids)
        assert answer.status_code == 403, call
        assert comparable(answer) == comparable(ask(client, call, [GHOST] * len(ids))), call
    assert dump() == before


@over(OF_ADMINISTRATORS)
def test_administrators_are_allowed(world: World, call: Call) -> None:
    assert ask(world.clients["administrator"], call, world.ids(call, "owner")).status_code == 200


def test_an_administrator_who_names_a_missing_row_changes_nothing(world: World, dump: Callable[[], Rows]) -> None:
    before = dump()
    for call in OF_ADMINISTRATORS:
        ids = world.ids(call, "owner")
        for place in range(len(ids)):
            answer = ask(world.clients["administrator"], call, replaced(ids, place, GHOST))
            assert answer.status_code == 404, call
    assert dump() == before
