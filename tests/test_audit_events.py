"""Events that only administrators get."""

import re
from collections.abc import Callable

from flask import Flask

from tests.conftest import Client
from tests.support.pages import PASSWORD, signed_in
from tests.support.receivers import Deliver, events, subscribe


def test_administrators_learn_of_new_and_deleted_users(admin: Client, alice: Client, deliver: Deliver) -> None:
    subscribe(admin, "", "user.*")
    subscribe(alice, "", "*")
    new = {"username": "carol", "email": "carol@example.com", "password": "secret"}
    user_id = admin.post("/api/user/add", new).get_json()["data"]["id"]
    assert admin.delete(f"/api/user/{user_id}/delete").status_code == 200
    deliver()
    assert [event["type"] for event in events(admin)] == ["user.created", "user.deleted"]
    assert [event["actor"] for event in events(admin)] == [{"user": admin.id, "key": None}] * 2
    assert events(admin)[1]["data"] == {"id": user_id, "username": "carol", "email": "carol@example.com"}
    assert events(alice) == []


def test_administrators_audit_sign_ins_keys_users_plans_and_shown_keys(
    app: Flask, admin: Client, alice: Client, make_key: Callable[..., Client], deliver: Deliver
) -> None:
    subscribe(admin, "", "audit.*")
    refused = alice.post("/api/webhooks", {"name": "Audit", "events": ["audit.*"]})
    assert (refused.status_code, "audit.*" in refused.get_json()["message"]) == (400, True)
    key = alice.post("/api/key/add", {"name": "Robot", "scopes": ["links:read"]}).get_json()
    alice.put(f"/api/key/{key['id']}/update", {"scopes": ["links:write"]})
    Client(app.test_client(), key["key"]).get("/api/urls")
    alice.delete(f"/api/key/{key['id']}/delete")
    admin.put(f"/api/user/{alice.id}/update", {"suspended": "access"})
    admin.put(f"/api/user/{alice.id}/update", {"suspended": "no"})
    admin.get(f"/api/user/{alice.id}")
    app.test_cli_runner().invoke(args=["users", "login", "alice"])
    app.test_cli_runner().invoke(args=["plans", "add", "Extra", "--free"])
    deliver()
    audited = [
        (event["type"].partition(".")[2], event["data"]["action"], event["actor"]["user"]) for event in events(admin)
    ]
    assert audited == [
        ("key", "created", alice.id), ("key", "updated", alice.id), ("key", "deleted", alice.id),
        ("user", "updated", admin.id), ("user", "updated", admin.id), ("secret", "shown", admin.id),
        ("sign_in", "created", None), ("plan", "created", None),
    ]  # fmt: skip
    assert events(admin)[1]["data"]["changes"] == {"scopes": [["links:read"], ["links:write"]]}
    assert events(admin)[3]["data"]["changes"] == {"suspended": ["no", "access"]}
    assert events(make_key(admin, scopes=["webhooks:read"])) == events(alice) == []
    browser = signed_in(app)
    shown = browser.post("/account/key", data={"current_password": PASSWORD})
    browser.post("/account/password", data={"password": "another password", "current_password": PASSWORD})
    deliver()
    signed, revealed, changed = (event["data"] for event in events(admin)[9:])
    assert (signed["user_id"], revealed["user_id"], changed["id"]) == (alice.id, alice.id, alice.id)
    assert changed["changes"] == {"password_hash": []}
    assert str(alice.key) in shown.text
    assert not re.search(r"argon2|digest'|linkmgr_|lmk_", str(events(admin)))
