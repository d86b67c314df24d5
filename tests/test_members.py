"""Members: users who work in the account of another user, and their invitations."""

import re
from collections.abc import Callable
from unittest.mock import ANY

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.joined import joined, switch
from tests.support.pages import PASSWORD, fields, get, is_signed_in, seen, signed_in
from tests.support.races import at_once
from tests.support.receivers import subscribe
from tests.support.worlds import Rows

INVITED = {"email": "erin@example.com", "role": "editor"}


def invite(client: Client, **members: str) -> str:
    """Return the path of a new invitation."""
    answer = client.post("/api/member/add", INVITED | members)
    assert answer.status_code == 200, answer.text
    return "/account" + str(answer.get_json()["url"]).partition("/account")[2]


def listed(client: Client) -> list[dict[str, object]]:
    return list(client.get("/api/members").get_json()["data"]["members"])


def test_an_invitation_is_accepted_by_who_has_it_and_this_person_is_named(
    app: Flask, alice: Client, bob: Client
) -> None:
    path, browser = invite(alice), app.test_client()
    invited = {"id": ANY, "email": "erin@example.com", "role": "editor", "state": "invited", "user": None,
               "name": "erin@example.com", "joined": None, "date": ANY, "updated": ANY}  # fmt: skip
    assert listed(alice) == [invited]
    assert "Sign in first, then open this link again." in seen(get(browser, path))
    assert browser.post(path).headers["Location"] == "/login"
    browser = signed_in(app, "bob@example.com")
    for _ in range(2):  # opening it does not use it up
        assert "Work in the account of alice ?" in seen(get(browser, path))
    assert browser.post(path).headers["Location"] == "/console"
    assert listed(alice) == [invited | {"state": "joined", "user": bob.id, "name": "bob", "joined": ANY}]
    browser.post("/console/channels/new", data={"name": "Of bob"})
    assert [row["name"] for row in alice.get("/api/channels").get_json()["data"]["channels"]] == ["Of bob"]
    assert bob.get("/api/channels").get_json()["data"]["result"] == 0
    for request in (browser.get, browser.post):
        assert request(path).status_code == 410
    assert "Account alice editor" in seen(get(browser, "/console"))
    switch(browser, bob)
    assert "Account bob" in seen(get(browser, "/console"))


def test_of_20_concurrent_acceptances_one_succeeds(
    app: Flask, alice: Client, register: Callable[..., Client], sql: Sql
) -> None:
    path = invite(alice)
    browsers = []
    for number in range(20):
        register(f"user{number}")
        browsers.append(signed_in(app, f"user{number}@example.com"))
    answers = at_once(20, lambda number: browsers[number].post(path).status_code, threads=20)
    assert sorted(answers) == [303] + 19 * [410]
    assert len(sql("SELECT FROM members WHERE member_id IS NOT NULL")) == 1


def test_an_invitation_that_cannot_be_accepted_says_why(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    own, browser = signed_in(app), signed_in(app, "bob@example.com")
    path = invite(alice)
    answer = own.post(path)
    assert (answer.status_code, "to your own account" in answer.text) == (400, True)
    factories.member(sql, alice.id, member_id=bob.id)
    answer = browser.post(path)
    assert (answer.status_code, "You work in this account already" in answer.text) == (400, True)
    sql("DELETE FROM members WHERE member_id IS NOT NULL RETURNING 1")
    for statement, undo in (
        ("UPDATE users SET suspended = 'access' WHERE username = 'alice'", "UPDATE users SET suspended = 'no'"),
        ("UPDATE members SET created = now() - interval '8 days'", "UPDATE members SET created = now()"),
    ):
        sql(f"{statement} RETURNING 1")
        assert {browser.get(path).status_code, browser.post(path).status_code} == {410}
        sql(f"{undo} RETURNING 1")
    [row] = listed(alice)
    alice.delete(f"/api/member/{row['id']}/delete")
    assert browser.post(path).status_code == 410


def test_invitations_are_bounded_and_count_for_the_plan(
    app: Flask, on_plan: Callable[..., Client], register: Callable[..., Client], sql: Sql
) -> None:
    carol = on_plan(team={"enabled": "1", "count": "2"})
    answers = at_once(9, lambda n: carol.post("/api/member/add", INVITED | {"email": f"{n}@example.com"}).get_json())
    added, refused = ([row for row in answers if ("code" in row) == is_refused] for is_refused in (False, True))
    assert [row["code"] for row in refused] == ["plan_limit"] * 7
    assert "limit of 2 members" in refused[0]["message"]
    again = INVITED | {"email": added[0]["data"]["email"].upper()}
    assert carol.post("/api/member/add", again).get_json()["code"] == "invitation_open"
    sql("""UPDATE plans SET limits = '{"api": {"enabled": "1"}, "team": {"enabled": "0", "count": "0"}}'
            WHERE name = 'Own' RETURNING 1""")
    assert len(listed(carol)) == 2  # a limit stops growth only
    carol.delete(f"/api/member/{added[0]['id']}/delete")
    answer = carol.post("/api/member/add", INVITED).get_json()
    assert (answer["code"], answer["message"][:34]) == ("plan_feature", "Your plan does not include members")
    assert "/console/members" in get(signed_in(app, "carol@example.com"), "/console")  # which has one
    register("dave", plan="Pro")
    assert "/console/members" not in get(signed_in(app, "dave@example.com"), "/console")
    admin = register("root", admin=True, plan="Pro")
    sql("""INSERT INTO members (user_id, email, role, digest)
           SELECT %(id)s, n || '@example.com', 'viewer', n::text::bytea FROM generate_series(1, 499) n RETURNING 1""",
        id=admin.id)  # fmt: skip
    answers = at_once(4, lambda n: admin.post("/api/member/add", INVITED | {"email": f"x{n}@example.com"}).status_code)
    assert sorted(answers) == [200, 400, 400, 400]


def test_only_a_key_without_limits_makes_owners(alice: Client, make_key: Callable[..., Client]) -> None:
    limited, full = make_key(alice, "members:write"), make_key(alice)
    assert limited.post("/api/member/add", INVITED | {"role": "owner"}).get_json()["code"] == "owner_exceeded"
    member_id = limited.add("/api/member/add", INVITED)
    assert limited.put(f"/api/member/{member_id}/update", {"role": "owner"}).get_json()["code"] == "owner_exceeded"
    assert limited.put(f"/api/member/{member_id}/update", {"role": "viewer"}).status_code == 200
    answer = full.put(f"/api/member/{member_id}/update", {"role": "owner"})
    assert answer.get_json()["data"]["role"] == "owner"


@pytest.mark.parametrize("way", ["new", "rotated"])
@pytest.mark.parametrize("scope", ["*", "account:write"])
def test_a_key_of_a_member_does_not_take_over_the_account(
    *, app: Flask, alice: Client, bob: Client, sql: Sql, way: str, scope: str
) -> None:
    path = "new"
    if way == "rotated":
        path = f"{alice.add('/api/key/add', {'name': 'Robot', 'scopes': [scope]})}/rotate"
    browser = joined(app, sql, alice, bob, "owner")
    form = {"name": "Robot", "scopes": scope, "current_password": PASSWORD}
    page = browser.post(f"/console/keys/{path}", data=form).text
    robot = Client(alice.http, re.findall(r'id="secret">(\w+)<', page)[0])
    before = sql("SELECT email, password_hash FROM users ORDER BY id")
    for has_left in (False, True):
        for sent in ({"email": "mine@example.com"}, {"password": "a vast heron"}):
            answer = robot.put("/api/account/update", sent)
            assert (answer.status_code, answer.get_json()["code"]) == (403, "account_shared"), has_left
        sql("DELETE FROM members RETURNING 1")
    assert sql("SELECT email, password_hash FROM users ORDER BY id") == before
    assert robot.put("/api/account/update", {"domain": ""}).status_code == 200
    assert alice.put("/api/account/update", {"email": "new@example.com"}).status_code == 200


@pytest.mark.parametrize("way", ["removed", "role", "left", "account suspended", "account deleted"])
def test_who_loses_an_account_sees_the_own_one_at_the_next_request_and_changes_nothing(
    *, app: Flask, alice: Client, bob: Client, admin: Client, sql: Sql, dump: Callable[[], Rows], way: str
) -> None:
    browser = joined(app, sql, alice, bob)
    [row] = listed(alice)
    match way:
        case "removed":
            alice.delete(f"/api/member/{row['id']}/delete")
        case "role":
            alice.put(f"/api/member/{row['id']}/update", {"role": "viewer"})
        case "left":
            other = switch(signed_in(app, "bob@example.com"), alice)
            assert other.post("/account/leave", data={"account": alice.id}).status_code == 303
            assert other.post("/account/leave", data={"account": alice.id}).status_code == 404
        case "account suspended":
            admin.put(f"/api/user/{alice.id}/update", {"suspended": "access"})
        case "account deleted":
            admin.delete(f"/api/user/{alice.id}/delete")
    before = dump()["channels"]
    answer = browser.post("/console/channels/new", data={"name": "Late"})
    assert (answer.status_code, dump()["channels"]) == (403, before)
    if way == "role":
        assert "You can look at this, but not change it" in answer.text
        return
    assert "You no longer work in that account" in answer.text
    assert "Account alice" not in seen(get(browser, "/console"))
    assert browser.post("/console/channels/new", data={"name": "Own"}).status_code == 303
    assert bob.get("/api/channels").get_json()["data"]["result"] == 1
    assert browser.post("/account/switch", data={"account": alice.id}).status_code == 403


def test_a_form_of_another_account_changes_nothing_after_a_switch(
    app: Flask, alice: Client, bob: Client, sql: Sql, dump: Callable[[], Rows]
) -> None:
    browser = joined(app, sql, alice, bob)
    assert f'data-account="{alice.id}"' in get(browser, "/console")
    switch(browser, bob)
    before = dump()["channels"]
    answer = browser.post(f"/console/channels/new?account={alice.id}", data={"name": "Of alice"})
    assert (answer.status_code, dump()["channels"]) == (409, before)
    answer = browser.post(f"/console/channels/new?account={bob.id}", data={"name": "Of bob"})
    assert answer.status_code == 303


def test_a_member_who_is_suspended_or_deleted_has_no_access(
    app: Flask, alice: Client, bob: Client, admin: Client, sql: Sql
) -> None:
    browser = joined(app, sql, alice, bob, "owner")
    admin.put(f"/api/user/{bob.id}/update", {"suspended": "access"})
    assert browser.get("/console").status_code == 403
    admin.put(f"/api/user/{bob.id}/update", {"suspended": "no"})
    assert "Account alice" in seen(get(browser, "/console"))
    admin.delete(f"/api/user/{bob.id}/delete")
    assert browser.get("/console").headers["Location"] == "/login"
    assert listed(alice) == []


def test_the_account_page_is_about_the_person(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    browser = joined(app, sql, alice, bob, "owner")
    page = get(browser, "/account")
    assert ("bob@example.com" in page, "alice@example.com" in page) == (True, False)
    assert str(alice.key) not in browser.post("/account/key", data={"current_password": PASSWORD}).text
    browser.post("/account/timezone", data={"timezone": "Europe/Berlin"})
    browser.post("/account/email", data={"email": "robert@example.com", "current_password": PASSWORD})
    zones = {row["username"]: (row["timezone"], row["email"]) for row in sql("SELECT * FROM users")}
    assert zones == {"alice": ("UTC", "alice@example.com"), "bob": ("Europe/Berlin", "robert@example.com")}
    browser.post("/account/password", data={"password": "battery staple", "current_password": PASSWORD})
    assert is_signed_in(signed_in(app))
    form = {"name": "Shop", "scopes": "links:read", "current_password": PASSWORD}
    assert browser.post("/console/keys/new", data=form).status_code == 400  # it is the own password that counts
    page = browser.post("/console/keys/new", data=form | {"current_password": "battery staple"}).text
    assert "Your new API key" in page
    [key] = alice.get("/api/keys").get_json()["data"]["keys"]
    assert key["made_by"] == "bob"
    secret = re.findall(r'id="secret">(\w+)<', page)[0]
    assert Client(app.test_client(), secret).get("/api/urls").status_code == 200
    assert "Who made this key no longer works" not in get(signed_in(app), "/console/keys")
    alice.delete(f"/api/member/{listed(alice)[0]['id']}/delete")
    page = seen(get(signed_in(app), "/console/keys"))
    assert ("made by bob" in page, "Who made this key no longer works in this account" in page) == (True, True)
    sql("DELETE FROM users WHERE username = 'bob' RETURNING 1")
    assert alice.get(f"/api/key/{key['id']}").get_json()["data"]["made_by"] is None
    assert "made by a deleted user" in seen(get(signed_in(app), "/console/keys"))


@pytest.mark.parametrize("role", ["owner", "editor"])
def test_a_member_of_an_administrators_account_is_no_administrator(
    *, app: Flask, admin: Client, bob: Client, sql: Sql, dump: Callable[[], Rows], role: str
) -> None:
    powerful = admin.post("/api/key/add", {"name": "All", "scopes": ["*", "admin"]}).get_json()["id"]
    browser = joined(app, sql, admin, bob, role)
    assert "Administration" not in get(browser, "/console")
    before = dump()
    for path in ("", "/users", f"/users/{admin.id}", "/plans", "/reports", "/activity", f"/users/{bob.id}/login"):
        for request in (browser.get, browser.post):
            assert request(f"/console/administration{path}").status_code in (403, 405), path
    password = {"current_password": PASSWORD}
    for path, form in (
        ("new", {"name": "Mine", "scopes": ["*", "admin"]}),
        (f"{powerful}/rotate", {}),
        (f"{powerful}/edit", {"name": "Mine", "scopes": ["*", "admin"], "version": "1"}),
        (f"{powerful}/delete", {}),
    ):
        answer = browser.post(f"/console/keys/{path}", data=form | password)
        assert (answer.status_code >= 400, "lmk_" in answer.text) == (True, False), path
    hook = {"name": "Hook", "events": ["user.created"]}
    assert browser.post("/console/webhooks/new", data=hook).status_code == (400 if role == "owner" else 403)
    assert dump() == before


def test_members_of_an_administrators_account_get_no_events_of_all_users(
    app: Flask, admin: Client, bob: Client, sql: Sql, dump: Callable[[], Rows]
) -> None:
    """`*` includes the audit trail there, and a webhook that has it shows what it has sent."""
    hooks = [subscribe(admin, "", name)[0] for name in ("*", "audit.*")]
    own, _ = subscribe(admin, "", "link.*")
    browser = joined(app, sql, admin, bob, "owner")
    assert 'value="*"' not in get(browser, "/console/webhooks/new")
    before = dump()
    form = {"name": "Mine", "url": "https://example.com/hook"}
    answer = browser.post("/console/webhooks/new", data=form | {"events": "*"})
    assert (answer.status_code, "which only administrators receive here" in answer.text) == (400, True)
    sent = fields(get(browser, f"/console/webhooks/{own}/edit")) | {"events": ["*"]}
    assert browser.post(f"/console/webhooks/{own}/edit", data=sent).status_code == 400
    for hook in hooks:
        assert browser.get(f"/console/webhooks/{hook}").status_code == 403
        for path in ("edit", "secret", "test", "retry", "delete"):
            changed = form | {"events": "link.*"}
            assert browser.post(f"/console/webhooks/{hook}/{path}", data=changed).status_code == 403, path
    assert dump() == before
    assert browser.get(f"/console/webhooks/{own}").status_code == 200
    assert signed_in(app, "admin@example.com").get(f"/console/webhooks/{hooks[0]}").status_code == 200


def test_owners_of_other_accounts_get_all_events_of_theirs(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    browser = joined(app, sql, alice, bob, "owner")
    assert browser.post("/console/webhooks/new", data={"name": "All", "events": "*"}).status_code == 200
    [hook] = sql("SELECT id, user_id FROM webhooks")
    assert hook["user_id"] == alice.id
    assert browser.get(f"/console/webhooks/{hook['id']}").status_code == 200


def test_the_console_invites_changes_and_removes(app: Flask, alice: Client, bob: Client, console: FlaskClient) -> None:
    form = {"email": "bob@example.com", "role": "viewer"}
    assert "Your current password is wrong" in console.post("/console/members/new", data=form).text
    made = console.post("/console/members/new", data=form | {"current_password": PASSWORD})
    assert made.headers["Cache-Control"] == "no-store"
    path = "/account" + re.findall(r'id="secret">[^<]*/account(/invitation/[\w-]{43})<', made.text)[0]
    assert path.rpartition("/")[2] not in get(console, "/console/members")
    browser = signed_in(app, "bob@example.com")
    browser.post(path)
    page = seen(get(console, "/console/members"))
    assert ("bob viewer" in page, "invited as bob@example.com" in page) == (True, True)
    assert "bob viewer you" in seen(get(browser, "/console/members"))
    [row] = listed(alice)
    version = re.findall('name="version" value="([0-9]+)"', get(console, f"/console/members/{row['id']}/edit"))[0]
    change = {"role": "owner", "version": version, "current_password": PASSWORD}
    assert console.post(f"/console/members/{row['id']}/edit", data=change).status_code == 303
    assert listed(alice)[0]["role"] == "owner"
    assert browser.post(f"/console/members/{row['id']}/delete").status_code == 303  # an owner, of itself
    assert listed(alice) == []
    assert bob.get(f"/api/member/{row['id']}").status_code == 404


def test_expired_invitations_are_deleted_and_members_stay(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    factories.member(sql, alice.id, member_id=bob.id)
    invite(alice)
    sql("UPDATE members SET created = now() - interval '8 days' RETURNING 1")
    assert [row["state"] for row in listed(alice)] == ["expired", "joined"]
    app.test_cli_runner().invoke(args=["visits", "purge"])
    assert [row["state"] for row in listed(alice)] == ["joined"]
    assert alice.get("/api/members").get_json()["data"]["result"] == 1
