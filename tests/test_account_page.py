"""The account page: its content and its forms."""

import re
import time
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.database.statements import Row
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, by_link, login_path, send, signed_in, words
from tests.support.races import at_once


def use_of(page: str, label: str) -> str:
    """Return the text of the amount next to a plan limit."""
    amount = re.search(f'<span>{label}</span>\\s*<span class="amount">(.*?)</span>', page, re.DOTALL)
    assert amount
    return words(re.sub("<.*?>", "", amount[1]))


def test_it_shows_the_account(console: FlaskClient) -> None:
    page = console.get("/account").text
    for text in ("alice@example.com", "Plan: Business", "/avatar/alice.png", "This plan does not expire."):
        assert text in page


def test_it_shows_the_use_of_each_limit(
    app: Flask, register: Callable[..., Client], sql: Callable[..., list[Row]]
) -> None:
    frida = register("frida", plan="Free")
    sql("""INSERT INTO visit_months
           SELECT %(id)s::bigint, month, bot, imported, total, 0
             FROM (VALUES (this_month(), false, false, 1234), (this_month(), true, false, 7),
                          (this_month(), false, true, 8), (this_month() - 31, false, false, 5)
                  ) visits (month, bot, imported, total) RETURNING 1""",
        id=frida.id)  # fmt: skip
    frida.add("/api/pixel/add", {"type": "bing", "name": "Shop", "tag": "1"})
    page = signed_in(app, "frida@example.com").get("/account").text
    assert use_of(page, "Pixels") == "1 of 3"
    assert use_of(page, "Links") == "0 of 100"
    assert use_of(page, "QR codes") == "0 no limit"
    assert "<dd>1,000,000 per minute <small>More get the status 429.</small></dd>" in page
    assert "90 days" in page
    assert use_of(page, "Visits this month") == "1,234 of 10,000"


def test_a_feature_that_the_plan_lacks_is_marked(
    app: Flask, register: Callable[..., Client], sql: Callable[..., list[Row]]
) -> None:
    sql("""INSERT INTO plans (name, free, limits)
           SELECT 'Small', false, (limits::jsonb || '{"domain": {"enabled": "0", "count": "5"}}')::json
             FROM plans WHERE name = 'Free' RETURNING 1""")
    register("frida", plan="Small")
    page = signed_in(app, "frida@example.com").get("/account").text
    assert use_of(page, "Branded domains") == "not in your plan"
    assert 'class="excluded">Targets by country' in words(page)
    assert 'class="included">API' in words(page)


def test_no_limits_apply_to_an_administrator(app: Flask, register: Callable[..., Client]) -> None:
    register("root", admin=True, plan="Free")
    page = signed_in(app, "root@example.com").get("/account").text
    assert use_of(page, "Links") == "0 no limit"
    assert "Limits do not apply to administrators." in page


def test_the_key_is_shown_after_the_password_is_entered(console: FlaskClient, alice: Client) -> None:
    assert alice.key
    assert alice.key not in console.get("/account").text
    answer = console.post("/account/key", data={"current_password": PASSWORD})
    assert alice.key in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    returned = console.get("/account/key")
    assert (returned.status_code, returned.headers["Location"]) == (303, "/account#key")


@pytest.mark.parametrize("path", ["/account/key", "/account/key/replace"])
def test_a_session_of_a_login_link_needs_the_password_for_the_key(
    app: Flask, admin: Client, alice: Client, path: str
) -> None:
    answer = by_link(app, admin, alice).post(path)
    assert answer.status_code == 400
    assert alice.key
    assert alice.key not in answer.text
    assert alice.get("/api/account").status_code == 200


def test_a_replaced_key_works_and_the_old_one_does_not(console: FlaskClient, alice: Client) -> None:
    page = console.post("/account/key/replace", data={"current_password": PASSWORD}).text
    assert "This is your new API key." in page.split('aria-labelledby="key"')[1]
    assert "This is your new API key." not in console.get("/account").text
    assert alice.get("/api/account").status_code == 401
    alice.key = page.split('id="api-key">')[1].split("<")[0]
    assert alice.get("/api/account").get_json()["data"]["username"] == "alice"


def test_a_new_email_signs_in(app: Flask, console: FlaskClient) -> None:
    page = send(console, "/account/email", email="new@example.org", current_password=PASSWORD)
    assert "Your e-mail address is now new@example.org." in page
    signed_in(app, "new@example.org")


def test_a_new_password_ends_other_sessions_and_keeps_this_one(app: Flask, console: FlaskClient, bob: Client) -> None:
    other, of_bob = signed_in(app), signed_in(app, "bob@example.com")
    page = send(console, "/account/password", password="another horse", current_password=PASSWORD)
    assert "Your password has been changed." in page
    assert other.get("/account").status_code == 303
    assert of_bob.get("/account").status_code == 200
    signed_in(app, password="another horse")
    assert (
        app.test_client().post("/login", data={"email": "alice@example.com", "password": PASSWORD}).status_code == 401
    )


@pytest.mark.parametrize(
    ("password", "sentence"),
    [
        ("mB4$xQ9", "The new password must have at least 8 characters."),
        ("12345678", "The new password is common or easy to guess."),
        ("Password1", "The new password is common or easy to guess."),
        ("alice@example.com", "The new password is common or easy to guess."),
        ("a" * 1024, "The new password is common or easy to guess."),
    ],
)
def test_new_passwords_of_the_console_are_neither_short_nor_common(
    app: Flask, console: FlaskClient, admin: Client, password: str, sentence: str
) -> None:
    assert sentence in send(console, "/account/password", password=password, current_password=PASSWORD)
    signed_in(app)
    form = {"username": "carol", "email": "alice@example.com", "password": password, "current_password": PASSWORD}
    assert sentence in signed_in(app, "admin@example.com").post("/console/administration/users/new", data=form).text


def test_a_new_password_is_not_the_name_of_its_user(console: FlaskClient, sql: Callable[..., list[Row]]) -> None:
    sql("UPDATE users SET username = 'quorble-zintax' WHERE username = 'alice' RETURNING 1")
    page = send(console, "/account/password", password="quorble-zintax", current_password=PASSWORD)
    assert "The new password is common or easy to guess." in page


def test_a_user_who_forgot_the_password_sets_a_new_one_by_a_link(
    app: Flask, admin: Client, alice: Client, sql: Callable[..., list[Row]]
) -> None:
    console = by_link(app, admin, alice)
    assert "password-password" not in console.get("/account").text
    assert "has been changed" in send(console, "/account/password", password="remembered horse")
    signed_in(app, password="remembered horse")
    assert "password-password" in console.get("/account").text
    assert "Your current password is wrong." in send(console, "/account/password", password="taken over")


def test_a_session_of_a_login_link_sets_no_password_after_an_hour(
    app: Flask, admin: Client, alice: Client, sql: Callable[..., list[Row]]
) -> None:
    console = by_link(app, admin, alice)
    sql("UPDATE sessions SET created = created - interval '1 hour' RETURNING 1")
    assert "Your current password is wrong." in send(console, "/account/password", password="taken over")


def test_a_new_password_revokes_unused_login_links(
    app: Flask, console: FlaskClient, admin: Client, alice: Client, bob: Client
) -> None:
    of_alice, of_bob = login_path(admin, alice), login_path(admin, bob)
    send(console, "/account/email", email="new@example.org", current_password=PASSWORD)
    assert app.test_client().get(of_alice).status_code == 200
    send(console, "/account/password", password="another horse", current_password=PASSWORD)
    assert app.test_client().post(of_alice).status_code == 410
    assert app.test_client().post(of_bob).status_code == 303


def test_signing_out_ends_the_session(app: Flask, console: FlaskClient, sql: Callable[..., list[Row]]) -> None:
    cookie = console.get_cookie("linkmgr")
    assert cookie
    other = signed_in(app)
    answer = console.post("/account/sign-out")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login")
    assert "You have been signed out." in console.get("/login").text
    assert console.get("/account").status_code == 303
    thief = app.test_client()
    thief.set_cookie("linkmgr", cookie.value)
    assert thief.get("/account").status_code == 303
    assert other.get("/account").status_code == 200


def test_nothing_changes_without_a_session(app: Flask, alice: Client) -> None:
    for path in ("key", "key/replace", "email", "password", "sign-out", "sessions/end-others", "sessions/00/end"):
        answer = app.test_client().post(f"/account/{path}", data={"email": "e@example.org", "password": "another one"})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/login"), path
    assert alice.get("/api/account").get_json()["data"]["email"] == "alice@example.com"
    signed_in(app)


def test_a_deleted_user_is_signed_out(console: FlaskClient, admin: Client, alice: Client) -> None:
    admin.delete(f"/api/user/{alice.id}/delete")
    assert console.get("/account").status_code == 303


@pytest.mark.parametrize("sessions", [1, 6])
@pytest.mark.parametrize("has_password", [False, True])
def test_of_concurrent_passwords_without_the_current_one_exactly_one_is_set(
    app: Flask, admin: Client, alice: Client, sql: Sql, sessions: int, *, has_password: bool
) -> None:
    if not has_password:
        sql("UPDATE users SET password_hash = '' WHERE id = %(id)s RETURNING 1", id=alice.id)
    cookies = [by_link(app, admin, alice).get_cookie("linkmgr") for _ in range(sessions)]

    def set_password(number: int) -> str | None:
        browser, cookie = app.test_client(), cookies[number % sessions]
        browser.set_cookie("linkmgr", cookie.value if cookie else "")
        form = {"password": f"horse number {number}"}
        while (answer := browser.post("/account/password", data=form)).status_code == 503:
            time.sleep(0.01)  # another password is being hashed
        return answer.headers.get("Location")

    answers = at_once(6, set_password)
    [winner] = [number for number, location in enumerate(answers) if location in ("/console", "/account")]
    signed_in(app, password=f"horse number {winner}")
