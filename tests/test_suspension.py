"""Users whom an administrator suspends and reinstates, and administrators who are appointed."""

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, by_link, fields, get, message, signed_in

ROOT = "/console/administration/users"
SENTENCE = "This account is suspended. Ask an administrator to reinstate it."
DISABLED = "This link has been turned off."


@pytest.fixture
def browser(app: Flask, admin: Client) -> FlaskClient:
    """A browser of the administrator."""
    return signed_in(app, "admin@example.com")


def change(browser: FlaskClient, user: Client, **typed: str) -> str:
    """Send the form of a user, and return the page of the user or the form with its messages. A box that is typed as ""
    is not checked."""
    path = f"{ROOT}/{user.id}/edit"
    sent = {name: values[0] for name, values in fields(get(browser, path)).items()} | {"current_password": PASSWORD}
    answer = browser.post(path, data={name: value for name, value in (sent | typed).items() if value})
    return answer.text if answer.status_code == 400 else get(browser, answer.headers["Location"])


def test_the_keys_and_sessions_of_a_suspended_user_are_refused_until_the_user_is_reinstated(
    app: Flask, browser: FlaskClient, admin: Client, alice: Client, make_key: Callable[..., Client]
) -> None:
    scoped, alices = make_key(alice, "links:read"), signed_in(app)
    assert scoped.get("/api/urls").status_code == alice.get("/api/account").status_code == 200
    assert "suspended" in change(browser, alice, suspended="access")
    for client, path in ((alice, "/api/account"), (scoped, "/api/urls")):
        answer = client.get(path)
        assert (answer.status_code, answer.get_json()["code"]) == (403, "account_suspended")
        assert answer.get_json()["message"] == SENTENCE
    for refused in (alices, by_link(app, admin, alice), signed_in(app)):
        for path in ("/console", "/account"):
            answer = refused.get(path)
            assert (answer.status_code, SENTENCE in answer.text) == (403, True)
    assert "Sign in" in get(alices, "/login")  # for another account
    assert 'href="/login"' in alices.get("/console").text
    assert alices.post("/account/sign-out").headers["Location"] == "/login"
    alices = signed_in(app)
    assert re.search("alice</a>.*suspended", get(browser, ROOT), re.DOTALL)
    assert "suspended" not in change(browser, alice, suspended="no")
    assert alices.get("/console").status_code == 200
    assert scoped.get("/api/urls").status_code == alice.get("/api/account").status_code == 200


@pytest.fixture
def public_paths(alice: Client, sql: Sql) -> list[str]:
    """The pages that visitors of alice see."""
    campaign = alice.post("/api/campaign/add", {"name": "Spring", "slug": "spring", "public": True}).get_json()
    alice.add("/api/url/add", {"url": "https://example.com", "custom": "shop", "campaign": campaign["id"]})
    alice.add("/api/url/add", {"url": "https://example.com", "custom": "frame", "type": "frame"})
    bio = sql("SELECT alias FROM bios WHERE id = %(id)s", id=factories.bio(sql, alice.id))[0]["alias"]
    code = alice.post("/api/qr/add", {"type": "text", "data": "hello"}).get_json()["link"].rpartition("/")[2]
    return ["/shop", "/frame", f"/{bio}", f"/q/{code}", campaign["list"].removeprefix(BASE_URL)]


def test_the_links_of_a_suspended_user_answer_or_are_turned_off(
    app: Flask, browser: FlaskClient, alice: Client, public_paths: list[str]
) -> None:
    visitor = app.test_client()
    statuses = [visitor.get(path).status_code for path in public_paths]
    assert statuses == [302, 200, 200, 200, 200]
    change(browser, alice, suspended="access")
    assert [visitor.get(path).status_code for path in public_paths] == statuses
    change(browser, alice, suspended="all")
    for path in public_paths:
        answer = visitor.get(path)
        assert (answer.status_code, DISABLED in answer.text) == (410, True), path
        assert "Sign in" not in answer.text
    chosen = visitor.get("/r/spring").headers["Location"].removeprefix(BASE_URL)
    assert DISABLED in visitor.get(chosen).text
    change(browser, alice, suspended="no")
    assert [visitor.get(path).status_code for path in public_paths] == statuses


def test_the_domains_and_forms_of_a_user_whose_links_are_off_lead_nowhere(app: Flask, alice: Client, sql: Sql) -> None:
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))[0]["host"]
    sql("UPDATE domains SET redirectroot = 'https://example.com/', redirect404 = 'https://example.com/' RETURNING 1")
    visitor = app.test_client()
    for path, status in (("/", 200), ("/unknown", 404)):
        assert visitor.get(path, base_url=f"https://{host}").status_code == 302
        sql("UPDATE users SET suspended = 'all' RETURNING id")
        assert visitor.get(path, base_url=f"https://{host}").status_code == status
        sql("UPDATE users SET suspended = 'no' RETURNING id")


def test_an_administrator_is_appointed_and_dismissed(
    app: Flask, browser: FlaskClient, admin: Client, alice: Client
) -> None:
    alices = signed_in(app)
    change(browser, alice, admin="1")
    assert alices.get(ROOT).status_code == alice.get("/api/users").status_code == 200
    own = change(alices, alice, admin="")
    assert message(own, "admin") == "You cannot take administration from yourself. Ask another administrator."
    both = change(browser, alice, suspended="access")
    assert message(both, "suspended").startswith("An administrator cannot be suspended,")
    change(browser, alice, admin="")
    assert alices.get(ROOT).status_code == alice.get("/api/users").status_code == 403
    assert message(change(browser, alice, admin="1", current_password="wrong"), "current_password")
    assert alice.get("/api/users").status_code == 403


def test_administrators_change_a_user_by_the_api(admin: Client, alice: Client, bob: Client) -> None:
    path = f"/api/user/{alice.id}"
    read = admin.get(path)

    def put(code: str = "", **body: Any) -> dict[str, Any]:
        answer = body.pop("client", admin).put(f"{path}/update", body).get_json()
        assert answer.get("code", "") == code
        return answer.get("data") or {}

    assert "warnings" not in admin.put(f"{path}/update", read.get_json()["data"]).get_json()
    stale = admin.put(f"{path}/update", {"admin": True}, headers={"If-Match": '"1-x"'})
    assert stale.get_json()["code"] == "changed_meanwhile"
    assert put(email="new@example.com", suspended="access")["suspended"] == "access"
    assert alice.get("/api/account").get_json()["code"] == "account_suspended"
    put("administrator_suspended", admin=True)
    assert put(suspended="no", admin=True)["status"] == "admin"
    assert alice.get("/api/users?email=new@").get_json()["data"][0]["admin"] is True
    put("demote_self", client=alice, admin=False)
    put(admin=False)
    put("administrators_only", client=alice, admin=True)
    for body in ({"suspended": "x"}, {"admin": "yes"}, {"email": "x"}):
        put("invalid", **body)
    put("email_taken", email="bob@example.com")
    carol = {"username": "carol", "email": "carol@example.com", "password": "12345", "admin": True, "suspended": "all"}
    made = admin.post("/api/user/add", carol).get_json()["data"]
    assert (made["status"], made["suspended"]) == ("admin", "no")


def test_a_link_to_a_disabled_link_still_redirects(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    bob.add("/api/url/add", {"url": "https://go.example.org/shop", "custom": "bobs"})
    alice.add("/api/domain/add", {"domain": "https://go.example.org"})
    alice.add("/api/url/add", {"url": "https://example.com", "custom": "shop", "domain": "https://go.example.org"})
    sql("UPDATE users SET suspended = 'all' WHERE id = %(id)s RETURNING id", id=alice.id)
    assert app.test_client().get("/bobs").headers["Location"] == "https://go.example.org/shop"


def test_a_new_user_can_be_an_administrator_and_nothing_else_of_the_form(browser: FlaskClient, sql: Sql) -> None:
    typed = {"username": "carol", "email": "carol@example.com", "current_password": PASSWORD, "admin": "1"}
    assert browser.post(f"{ROOT}/new", data=typed | {"suspended": "all"}).status_code == 200
    assert sql("SELECT admin, suspended FROM users WHERE username = 'carol'") == [{"admin": True, "suspended": "no"}]


def test_only_the_changed_members_of_a_user_are_stored(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    sql("UPDATE users SET suspended = 'all' WHERE id = %(id)s RETURNING id", id=alice.id)
    change(browser, alice, email="new@example.com")
    rows = sql("SELECT email, admin, suspended FROM users WHERE id = %(id)s", id=alice.id)
    assert rows == [{"email": "new@example.com", "admin": False, "suspended": "all"}]
    assert (
        message(change(browser, alice, email="admin@example.com"), "email") == "This e-mail address is already in use."
    )


def test_the_command_line_appoints_suspends_and_reinstates(app: Flask, alice: Client, admin: Client) -> None:
    def edit(*arguments: str) -> Result:
        return app.test_cli_runner().invoke(args=["users", "edit", *arguments])

    assert edit("alice", "--suspended", "access").output == "alice has been changed.\n"
    assert alice.get("/api/account").status_code == 403
    assert edit("alice", "--suspended", "no", "--admin").exit_code == 0
    assert alice.get("/api/users").status_code == 200
    assert edit("admin", "--no-admin").exit_code == 0
    for arguments, sentence in (
        (["alice", "--no-admin"], "There is no other administrator. Appoint one first."),
        (["alice", "--suspended", "all"], "An administrator cannot be suspended,"),
        (["alice"], "Nothing to change: use at least one option."),
        (["nobody", "--admin"], "There is no user named 'nobody'."),
    ):
        refused = edit(*arguments)
        assert (refused.exit_code != 0, sentence in refused.output) == (True, True), refused.output
    assert alice.get("/api/users").status_code == 200


def test_an_exported_account_has_no_suspension(alice: Client) -> None:
    with zipfile.ZipFile(BytesIO(alice.get("/api/account/export").data)) as archive:
        texts = [archive.read(name) for name in archive.namelist()]
    assert any(b"alice" in text for text in texts)
    assert not any(b"suspended" in text for text in texts)
