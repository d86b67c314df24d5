"""Power of keys over keys: no key gives more than itself. And the default key, which allows everything."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.features.webhooks import events as records
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.keyring import URL, Make, branded, code

LINK = {"url": "https://example.com/page"}
STORED = "SELECT to_jsonb(k) - 'last_used' - 'last_address' FROM api_keys k ORDER BY id"


# --- the default key


def test_the_default_key_can_be_turned_off_while_there_is_another(
    app: Flask, alice: Client, make_key: Make, sql: Sql
) -> None:
    off, on = {"active": False}, {"active": True}
    assert code(alice.put("/api/key/default/update", off)) == (400, "default_key_only")
    other = make_key(alice)
    sql("UPDATE api_keys SET expires = now() RETURNING 1")
    assert code(alice.put("/api/key/default/update", off)) == (400, "default_key_only")
    sql("UPDATE api_keys SET expires = NULL RETURNING 1")
    assert alice.put("/api/key/default/update", off).status_code == 200
    assert code(alice.get("/api/account")) == (401, "key_unknown")
    assert other.get("/api/keys").get_json()["default"]["active"] is False
    assert other.put("/api/key/default/update", on).status_code == 200
    assert alice.get("/api/account").status_code == 200


def test_a_key_that_has_reached_the_lifetime_of_all_keys_is_no_other_key(
    app_with: Callable[..., Flask], register: Callable[..., Client], make_key: Make, sql: Sql
) -> None:
    alice = register("alice", via=app_with(key_lifetime_days="30"))
    make_key(alice)
    sql("UPDATE api_keys SET created = now() - interval '30 days' RETURNING 1")
    assert code(alice.put("/api/key/default/update", {"active": False})) == (400, "default_key_only")
    sql("UPDATE api_keys SET created = now() RETURNING 1")
    assert alice.put("/api/key/default/update", {"active": False}).status_code == 200


def test_a_restricted_key_does_not_touch_keys(alice: Client, make_key: Make, sql: Sql) -> None:
    domain_id, _ = branded(sql, alice)
    for limits in ({"own_only": True}, {"domains": [domain_id]}):
        client = make_key(alice, "keys:write", **limits)
        same = {"name": "Child", "scopes": ["keys:write"]} | limits
        for answer in (client.get("/api/keys"), client.post("/api/key/add", same)):
            assert code(answer) == (403, "key_confined")
    assert make_key(alice, "keys:read").get("/api/keys").get_json()["default"]["active"] is True


def test_a_new_default_key_is_on(app: Flask, alice: Client, make_key: Make) -> None:
    make_key(alice)
    alice.put("/api/key/default/update", {"active": False})
    key = app.test_cli_runner().invoke(args=["users", "key", "alice", "--rotate"]).output.strip()
    assert Client(alice.http, key).get("/api/account").status_code == 200


@pytest.mark.parametrize(
    "limits",
    [
        {"expires": "2099-01-01 00:00:00"},
        {"allowed_ips": ["0.0.0.0/0"]},
        {"own_only": True},
        {"scopes": ["keys:write"]},
    ],
    ids=str,
)
def test_a_limited_key_does_not_turn_the_default_key_on(alice: Client, make_key: Make, limits: dict[str, Any]) -> None:
    client = make_key(alice, **limits)
    alice.put("/api/key/default/update", {"active": False})
    assert client.put("/api/key/default/update", {"active": True}).status_code == 403
    assert alice.get("/api/account").status_code == 401


# --- escalation


def test_a_key_makes_no_key_that_allows_more(alice: Client, make_key: Make, sql: Sql) -> None:
    limits: dict[str, Any] = {"expires": "2099-01-01 00:00:00", "allowed_ips": ["127.0.0.0/8"]}
    client = make_key(alice, "keys:write", "links:create", **limits)
    same = {"name": "Child", "scopes": ["links:create"]} | limits
    child = client.add("/api/key/add", same)
    more: list[dict[str, Any]] = [
        {"scopes": ["*"]},
        {"scopes": ["links:read"]},
        {"scopes": ["links:create", "admin"]},
        {"expires": "2099-01-01 00:00:01"},
        {"allowed_ips": ["127.0.0.1", "192.0.2.1"]},
        {"allowed_ips": ["0.0.0.0/0"]},
        {"allowed_ips": []},
    ]
    before = sql(STORED)
    for exceeding in more:
        error = "admin_scope" if "admin" in exceeding.get("scopes", []) else "key_exceeded"
        assert code(client.post("/api/key/add", same | exceeding)) == (403, error), exceeding
        assert code(client.put(f"/api/key/{child}/update", exceeding)) == (403, error), exceeding
    assert code(client.put(f"/api/key/{child}/update", {"expires": ""})) == (403, "key_exceeded")
    assert sql(STORED) == before
    assert client.put(f"/api/key/{child}/update", {"allowed_ips": ["127.0.0.1"], "name": "Less"}).status_code == 200
    assert client.post(f"/api/key/{child}/rotate", {}).status_code == 200
    assert client.delete(f"/api/key/{child}/delete").status_code == 200


def test_a_key_does_not_touch_keys_that_allow_more(alice: Client, make_key: Make, sql: Sql) -> None:
    powerful, client = make_key(alice), make_key(alice, "keys:write")
    before = sql(STORED)
    path = f"/api/key/{powerful.id}"
    answers = [
        client.post(f"{path}/rotate", {}),
        client.put(f"{path}/update", {"scopes": ["keys:write"]}),
        client.delete(f"{path}/delete"),
    ]
    assert [code(answer) for answer in answers] == [(403, "key_exceeded")] * 3
    assert code(client.put(f"/api/key/{client.id}/update", {"scopes": ["*"]})) == (403, "key_exceeded")
    assert sql(STORED) == before


def test_only_administrators_give_the_scope_admin(alice: Client, admin: Client, make_key: Make) -> None:
    assert code(alice.post("/api/key/add", {"name": "A", "scopes": ["admin"]})) == (403, "admin_scope")
    everything, administration = make_key(admin), make_key(admin, "admin")
    assert code(everything.get("/api/users")) == (403, "scope_missing")
    assert code(everything.post("/api/key/add", {"name": "A", "scopes": ["admin"]})) == (403, "admin_scope")
    assert everything.get("/api/stats?user=all").get_json()["code"] == "administrators_only"
    assert administration.get("/api/users").status_code == 200
    assert code(administration.get("/api/urls")) == (403, "scope_missing")


def test_a_former_administrators_key_is_no_administrators(admin: Client, make_key: Make, sql: Sql) -> None:
    administration = make_key(admin, "admin")
    sql("UPDATE users SET admin = false RETURNING 1")
    assert code(administration.get("/api/users")) == (403, "administrators_only")


def test_a_stored_answer_is_not_given_to_another_key(alice: Client, make_key: Make) -> None:
    first, second = make_key(alice), make_key(alice)
    headers = {"Idempotency-Key": "same"}
    answers = [client.post("/api/url/add", LINK, headers=headers) for client in (first, second, first)]
    assert code(answers[1]) == (422, "idempotency_key_reused")
    assert answers[2].get_json() == answers[0].get_json()


# --- events


def test_events_of_users_need_the_scope_admin(
    app: Flask, admin: Client, register: Callable[..., Client], make_key: Make
) -> None:
    """They have the names and e-mail addresses of users."""
    client, administration = make_key(admin), make_key(admin, "*", "admin")
    for events in (["*"], ["user.*"], ["link.*", "user.created"]):
        assert code(client.post("/api/webhooks", {"name": "Hook", "events": events})) == (403, "scope_missing")
    hook = administration.add("/api/webhooks", {"name": "Hook", "events": ["*"]})
    own = client.add("/api/webhooks", {"name": "Links", "events": ["link.*"]})
    for webhook_id, changes in ((hook, {"url": URL}), (own, {"events": ["user.deleted"]})):
        assert code(client.put(f"/api/webhook/{webhook_id}/update", changes)) == (403, "scope_missing")
    assert client.put(f"/api/webhook/{own}/update", {"events": ["link.*", "visit"]}).status_code == 200
    assert code(client.get(f"/api/webhook/{hook}/deliveries")) == (403, "scope_missing")
    assert administration.get(f"/api/webhook/{hook}/deliveries").status_code == 200
    register("carol")
    client.post("/api/url/add", LINK)
    with app.app_context():
        records.move()
    types = [{event["type"] for event in actor.get("/api/events").get_json()["data"]["events"]}
             for actor in (client, administration, admin)]  # fmt: skip
    assert types == [{"link.created"}, *[{"link.created", "user.created", "audit.user"}] * 2]


def test_a_user_without_administration_subscribes_to_all_events(alice: Client, make_key: Make) -> None:
    assert make_key(alice, "webhooks:write").add("/api/webhooks", {"name": "Hook", "events": ["*"]})
