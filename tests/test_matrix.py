"""The access matrix: every API operation for every kind of caller."""

from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.conftest import Client
from tests.support.operations import CONVERSIONS, KEYED
from tests.support.worlds import Rows, World, ask, without_request_id

GHOST = 2**62  # an id that never existed
OF_USERS = [call for call in KEYED if not call.operation.is_for_administrators]
OF_ADMINISTRATORS = [call for call in KEYED if call.operation.is_for_administrators]
WITHOUT_ID = [call for call in OF_USERS if not call.rows and call.path != CONVERSIONS]
WITH_ID = [call for call in OF_USERS if call.rows]


def owned_by(user_id: int, rows: Rows) -> Rows:
    return {
        table: [row for row in found if user_id in (row.get("user_id"), row["id"] if table == "users" else None)]
        for table, found in rows.items()
    }


def replaced(ids: list[int], place: int, by: int) -> list[int]:
    return [by if each == place else own for each, own in enumerate(ids)]


def lists_rows(data: Any) -> bool:
    return bool(data.get("result")) if isinstance(data, dict) else bool(data)


def comparable(answer: TestResponse) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return everything in a response that reveals data: all of it except the rate limit headers and the request id."""
    headers = [
        header for header in answer.headers if not header[0].startswith(("X-RateLimit", "RateLimit", "X-Request-Id"))
    ]
    return answer.status_code, without_request_id(answer), sorted(headers)


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
def test_a_route_without_an_id_uses_only_the_callers_rows(world: World, dump: Callable[[], Rows], actor: str) -> None:
    world.fill("owner")
    before, owner = dump(), world.clients["owner"]
    for call in sorted(WITHOUT_ID, key=lambda call: call.method):  # reads, before the actor has rows
        answer = ask(world.clients[actor], call, [])
        assert answer.status_code == 200, call
        assert owner.username.encode() not in answer.data, call
        assert call.method != "GET" or call.operation.file or not lists_rows(answer.get_json().get("data")), call
    assert owned_by(owner.id, dump()) == owned_by(owner.id, before)


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
    sent = [world.ids(call, "owner") for call in OF_ADMINISTRATORS]
    client, before = world.clients[actor], dump()
    for call, ids in zip(OF_ADMINISTRATORS, sent, strict=True):
        answer = ask(client, call, ids)
        assert answer.status_code == 403, call
        assert comparable(answer) == comparable(ask(client, call, [GHOST] * len(ids))), call
    assert dump() == before


def test_an_administrator_who_names_a_missing_row_changes_nothing(world: World, dump: Callable[[], Rows]) -> None:
    sent = [world.ids(call, "owner") for call in OF_ADMINISTRATORS]
    before = dump()
    for call, ids in zip(OF_ADMINISTRATORS, sent, strict=True):
        for place in range(len(ids)):
            answer = ask(world.clients["administrator"], call, replaced(ids, place, GHOST))
            assert answer.status_code == 404, call
    assert dump() == before
