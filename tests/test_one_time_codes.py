"""One-time codes after a password or a link, their recovery codes, and how many can be tried."""

from collections.abc import Callable

import pyotp
import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.web import attempts
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, by_link, is_signed_in, send, signed_in
from tests.support.races import at_once
from tests.support.receivers import Deliver
from tests.support.second_factors import confirm, next_code, password_given, set_up_codes

Phone = tuple[pyotp.TOTP, list[str]]


@pytest.fixture
def phone(console: FlaskClient) -> Phone:
    return set_up_codes(console)


def answer_code(browser: FlaskClient, code: str) -> int:
    return browser.post("/login/code", data={"code": code}).status_code


def test_codes_are_asked_for_once_the_first_one_was_right(app: Flask, console: FlaskClient, sql: Sql) -> None:
    confirm(console)
    page = console.post("/account/factors/codes").text
    assert 'src="data:image/svg+xml' in page
    assert console.post("/account/factors/codes/first", data={"code": "12"}).status_code == 401
    assert is_signed_in(signed_in(app))
    _, recovery = set_up_codes(console)
    assert len({*recovery}) == 10
    [row] = sql("SELECT row_to_json(f)::text AS row FROM factors f")
    assert not [text for text in (*recovery, page.split('"text mono">')[1][:4]) if text in row["row"]]
    assert recovery[0] not in console.get("/account/factors").text
    assert console.post("/account/factors/codes").status_code == 400  # a second secret
    password_given(app)


def test_a_session_opens_nothing_until_the_code_is_there(app: Flask, phone: Phone, sql: Sql) -> None:
    browser = password_given(app)
    paths = ("/account", "/console", "/console/links", "/account/factors", "/account/confirm")
    assert [browser.get(path).status_code for path in paths] == [303] * len(paths)
    assert browser.post("/account/key", data={"current_password": PASSWORD}).status_code == 303
    browser.get("/console/links/5")  # the page to which the sign-in returns
    assert answer_code(browser, "000000") == 401
    code = next_code(phone[0])
    answer = browser.post("/login/code", data={"code": f"{code[:3]} {code[3:]}"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console/links/5")
    assert is_signed_in(browser)
    late = password_given(app)
    sql("UPDATE sessions SET created = created - interval '10 minutes' WHERE pending RETURNING 1")
    assert late.get("/login/code").status_code == 303
    assert answer_code(late, phone[1][0]) == 400
    assert not is_signed_in(late)
    password_given(app)
    assert len(sql("SELECT 1 FROM sessions WHERE pending")) == 1


def test_a_sign_in_link_asks_for_the_code_too(app: Flask, admin: Client, alice: Client, phone: Phone) -> None:
    browser = by_link(app, admin, alice)
    assert not is_signed_in(browser)
    assert answer_code(browser, phone[1][0].lower().replace("-", " ")) == 303
    assert "An administrator made the link" in browser.get("/account").text


def test_forty_wrong_codes_at_once_let_ten_be_tried(app: Flask, phone: Phone, bob: Client, sql: Sql) -> None:
    sql("DELETE FROM rate_windows WHERE bucket LIKE 'codes:%%' RETURNING 1")
    browsers = [password_given(app) for _ in range(40)]
    statuses = at_once(40, lambda number: answer_code(browsers[number], f"{number:06}"), threads=40)
    assert (statuses.count(401), statuses.count(429)) == (attempts.ATTEMPTS, 40 - attempts.ATTEMPTS)
    assert answer_code(browsers[0], next_code(phone[0])) == answer_code(browsers[0], phone[1][0]) == 429
    assert is_signed_in(signed_in(app, "bob@example.com"))
    sql("UPDATE rate_windows SET until = now() WHERE bucket LIKE 'codes:%%' RETURNING 1")
    assert answer_code(browsers[0], next_code(phone[0])) == 303


@pytest.mark.parametrize("is_recovery", [False, True])
def test_of_twenty_races_for_one_code_one_wins(
    app: Flask, phone: Phone, monkeypatch: pytest.MonkeyPatch, is_recovery: bool
) -> None:
    monkeypatch.setattr(attempts, "spend", lambda _limit: None)
    code, browsers = phone[1][0] if is_recovery else next_code(phone[0]), [password_given(app) for _ in range(20)]
    statuses = at_once(20, lambda number: answer_code(browsers[number], code), threads=20)
    assert sorted(statuses) == [303] + [401] * 19
    assert [is_signed_in(browser) for browser in browsers].count(True) == 1


def test_new_recovery_codes_replace_the_earlier_ones(app: Flask, console: FlaskClient, phone: Phone) -> None:
    page = console.post("/account/factors/recovery-codes").text
    assert phone[1][0] not in page
    new = page.split('id="recovery-codes">')[1].split()[0]
    browser = password_given(app)
    assert (answer_code(browser, phone[1][0]), answer_code(browser, new)) == (401, 303)
    assert "9 recovery codes left." in browser.get("/account/factors").text


def test_administrators_remove_factors_that_are_lost(
    app: Flask, admin: Client, alice: Client, console: FlaskClient, deliver: Deliver
) -> None:
    _, recovery = set_up_codes(console)
    assert answer_code(password_given(app), recovery[0]) == 303
    manager, page = signed_in(app, "admin@example.com"), f"/console/administration/users/{alice.id}"
    assert "alice has one-time codes" in manager.get(page).text
    refused = manager.post(f"{page}/factors/remove", data={"current_password": "wrong horse"})
    assert (refused.status_code, "Your current password is wrong." in refused.text) == (400, True)
    assert console.post(f"{page}/factors/remove").status_code == 403
    assert manager.post(f"{page}/factors/remove", data={"current_password": PASSWORD}).status_code == 303
    assert is_signed_in(signed_in(app))
    set_up_codes(signed_in(app))
    assert (
        app.test_cli_runner().invoke(args=["factors", "reset", "alice"]).output.startswith("alice has lost 1 factor,")
    )
    assert is_signed_in(signed_in(app))
    deliver()
    trail = " ".join(manager.get("/console/administration/activity").text.split())
    assert trail.count("was deleted") >= 2
    assert "The secret of one-time codes of" in trail
    assert "</a> was asked for a one-time code after the password" in trail
    assert "</a> signed in with a one-time code" in trail


def test_an_administrator_without_a_factor_can_only_set_one_up(
    app_with: Callable[..., Flask], admin: Client, alice: Client, sql: Sql
) -> None:
    strict = app_with(admin_factor="1")
    browser = signed_in(strict, "admin@example.com")
    for path in ("/console", "/console/administration/users", "/account", "/console/keys"):
        assert browser.get(path).headers["Location"] == "/account/factors", path
    assert browser.post("/account/key", data={"current_password": PASSWORD}).status_code == 303
    assert "Administrators of this service need" in browser.get("/account/factors").text
    sql(
        """INSERT INTO members (user_id, member_id, email, role)
           VALUES (%(id)s, %(by)s, 'admin@example.com', 'viewer') RETURNING id""",
        id=alice.id,
        by=admin.id,
    )
    sql("UPDATE sessions SET account_id = %(id)s RETURNING 1", id=alice.id)
    for path in ("/console", "/account", "/account/key"):
        assert browser.get(path).headers["Location"] == "/account/factors", "also in another account"
    sql("UPDATE sessions SET account_id = NULL RETURNING 1")
    set_up_codes(browser)
    assert browser.get("/console/administration/users").status_code == 200
    assert is_signed_in(signed_in(strict))  # alice is no administrator


def test_an_administrator_who_forgot_the_password_sets_one_before_the_factor(
    app_with: Callable[..., Flask], admin: Client, bob: Client, sql: Sql
) -> None:
    sql("UPDATE users SET admin = true WHERE username = 'bob' RETURNING 1")
    browser = by_link(app_with(admin_factor="1"), admin, bob)
    for path in ("/console", "/console/administration/users", "/console/keys"):
        assert browser.get(path).headers["Location"] == "/account/factors", path
    assert browser.post("/account/email", data={"email": "x@example.org"}).headers["Location"] == "/account/factors"
    assert "set one first" in browser.get("/account").text
    assert browser.post("/account/password", data={"password": "vast heron lamp"}).headers["Location"] == "/account"
    assert browser.get("/account").headers["Location"] == "/account/factors"
    confirm(browser, current_password="vast heron lamp")
    assert browser.post("/account/factors/codes").status_code == 200


def test_without_the_feature_a_password_is_enough(app_with: Callable[..., Flask], phone: Phone) -> None:
    browser = signed_in(app_with(features=("statistics",)))
    assert is_signed_in(browser)
    assert "This is your API key" not in send(browser, "/account/key", current_password="wrong horse")
    assert browser.post("/account/key", data={"current_password": PASSWORD}).status_code == 200
