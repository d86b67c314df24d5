"""Limits on wrong passwords: per account, per known browser and per session, in addition to the one per IP address."""

from collections.abc import Callable
from itertools import count

import psycopg2
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.core.database import statements
from linkmgr.core.database.statements import Row
from linkmgr.core.web import attempts, passwords
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, by_link, send
from tests.support.races import during
from tests.support.shortlinks import Make

REFUSED = "Too many wrong passwords for this e-mail address."
_NETWORK = count(1)


def sign_in(
    browser: FlaskClient, email: str = "alice@example.com", password: str = PASSWORD, *, address: str = ""
) -> TestResponse:
    """Send the form, by default from an IP address that no other attempt used."""
    number = next(_NETWORK)
    sender = {"REMOTE_ADDR": address or f"198.51.{number // 250}.{number % 250}"}
    return browser.post("/login", data={"email": email, "password": password}, environ_base=sender)


def guess(app: Flask, email: str = "alice@example.com") -> None:
    """Send a wrong password, and count as many as an account allows."""
    assert sign_in(app.test_client(), email, "guess").status_code == 401
    with app.app_context():
        counted = "UPDATE rate_windows SET count = %(most)s WHERE bucket LIKE 'account:%%' RETURNING 1"
        assert statements.rows(counted, most=attempts.PER_ACCOUNT)


@pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
def test_one_email_has_50_wrong_passwords_from_any_addresses(
    app: Flask, alice: Client, bob: Client, email: str
) -> None:
    assert [sign_in(app.test_client(), email, "guess").status_code for _ in range(50)] == [401] * 50
    for password in ("guess", PASSWORD):
        refused = sign_in(app.test_client(), email.upper(), password)
        assert refused.status_code == 429
        assert REFUSED in refused.text
        assert 0 < int(refused.headers["Retry-After"]) <= attempts.WINDOW
        assert "Set-Cookie" not in refused.headers
    assert sign_in(app.test_client(), "bob@example.com").status_code == 303


def test_existing_and_unknown_accounts_have_the_same_limit(app: Flask, alice: Client) -> None:
    pages = []
    for email in ("alice@example.com", "nobody@example.com"):
        guess(app, email)
        refused = sign_in(app.test_client(), email)
        pages.append((refused.status_code, set(refused.headers.keys()), refused.text.split(REFUSED)[0]))
    assert pages[0] == pages[1]


def test_the_window_of_an_account_ends(app: Flask, alice: Client, sql: Callable[..., list[Row]]) -> None:
    guess(app)
    assert sign_in(app.test_client()).status_code == 429
    sql("UPDATE rate_windows SET until = now() WHERE bucket LIKE 'account:%%' RETURNING 1")
    assert sign_in(app.test_client()).status_code == 303


def test_the_counter_does_not_store_the_email(app: Flask, sql: Callable[..., list[Row]]) -> None:
    for email in ("nobody@example.com", "x" * 5000 + "@example.com"):
        assert sign_in(app.test_client(), email).status_code == 401
    buckets = [row["bucket"] for row in sql("SELECT bucket FROM rate_windows WHERE bucket LIKE 'account:%%'")]
    assert [len(bucket) for bucket in buckets] == [len("account:") + 64] * 2


def test_a_known_browser_signs_in_while_others_are_locked_out(
    app: Flask, admin: Client, alice: Client, bob: Client
) -> None:
    browser, linked, of_bob = app.test_client(), by_link(app, admin, alice), app.test_client()
    sign_in(browser)
    sign_in(of_bob, "bob@example.com")
    browser.post("/account/sign-out")
    guess(app)
    assert sign_in(browser).status_code == 303
    assert sign_in(linked).status_code == 303
    assert sign_in(of_bob).status_code == 429


def test_a_known_browser_has_its_own_limit_of_ten_wrong_passwords(app: Flask, alice: Client) -> None:
    browser, other = app.test_client(), app.test_client()
    sign_in(browser)
    sign_in(other)
    assert [sign_in(browser, password="guess").status_code for _ in range(11)] == [401] * 10 + [429]
    assert sign_in(browser).status_code == 429
    assert sign_in(other).status_code == 303
    assert sign_in(app.test_client()).status_code == 303


def test_a_new_password_revokes_known_browsers_except_the_current_one(app: Flask, alice: Client) -> None:
    browser, other = app.test_client(), app.test_client()
    sign_in(browser)
    sign_in(other)
    send(browser, "/account/password", password="another horse", current_password=PASSWORD)
    guess(app)
    assert sign_in(browser, password="another horse").status_code == 303
    assert sign_in(other, password="another horse").status_code == 429


def test_a_cookie_that_the_service_did_not_sign_has_no_effect(
    app: Flask, app_with: Callable[..., Flask], alice: Client
) -> None:
    browser = app_with(secret_key="another secret of at least 32 characters").test_client()
    sign_in(browser)
    cookie = browser.get_cookie("linkmgr_known", path="/login")
    assert cookie
    guess(app)
    nonce, _, signature = cookie.value.partition(".")
    for value in (cookie.value, nonce, f".{signature}", f"{nonce}x.{signature}", "", ".", "\u00e9.\u00e9", "x" * 4000):
        stranger = app.test_client()
        stranger.set_cookie("linkmgr_known", value, path="/login")
        assert sign_in(stranger).status_code == 429
    assert sign_in(browser).status_code == 303


def test_an_earlier_secret_still_signs_the_cookie(app: Flask, app_with: Callable[..., Flask], alice: Client) -> None:
    browser = app.test_client()
    sign_in(browser)
    cookie = browser.get_cookie("linkmgr_known", path="/login")
    assert cookie
    guess(app)
    rotated = app_with(secret_key="another secret of at least 32 characters", secret_key_fallbacks=app.secret_key)
    later = rotated.test_client()
    later.set_cookie("linkmgr_known", cookie.value, path="/login")
    assert sign_in(later).status_code == 303


@pytest.mark.parametrize(("base_url", "secure"), [("http://127.0.0.1:5000", False), ("https://go.example.org", True)])
def test_the_cookie_lasts_a_year_and_is_hidden_from_scripts(
    app_with: Callable[..., Flask], alice: Client, base_url: str, secure: bool
) -> None:
    browser = app_with(base_url=base_url, serve_loopback="1").test_client()
    [cookie] = [each for each in sign_in(browser).headers.getlist("Set-Cookie") if "known" in each]
    name, *attributes = cookie.split("; ")
    assert name.startswith("__Secure-linkmgr_known=" if secure else "linkmgr_known=")
    assert ("Secure" in attributes) == secure
    assert {"HttpOnly", "SameSite=Lax", "Path=/login", "Max-Age=31536000"} <= set(attributes)
    assert "alice" not in cookie


def test_a_login_link_works_while_the_account_is_locked(app: Flask, admin: Client, alice: Client) -> None:
    guess(app)
    browser = by_link(app, admin, alice)
    assert browser.get("/account").status_code == 200
    send(browser, "/account/password", password="another horse")
    assert sign_in(browser, password="another horse").status_code == 303


def test_attempts_of_others_do_not_block_the_owners_confirmation(app: Flask, alice: Client) -> None:
    browser = app.test_client()
    sign_in(browser)
    guess(app)
    assert browser.post("/account/key", data={"current_password": PASSWORD}).status_code == 200


def test_a_session_has_ten_wrong_confirmations_from_any_addresses(app: Flask, alice: Client) -> None:
    browser = app.test_client()
    sign_in(browser)
    statuses = [
        browser.post(
            "/account/key", data={"current_password": "guess"}, environ_base={"REMOTE_ADDR": f"203.0.113.{number}"}
        ).status_code
        for number in range(11)
    ]
    assert statuses == [400] * 10 + [429]
    assert sign_in(browser).status_code == 303


def test_a_login_link_has_no_limit_over_all_addresses(short: Make) -> None:
    link = short(password_hash=passwords.hashed("open sesame"))
    for number in range(attempts.PER_ACCOUNT + 1):
        answer = link.ask(method="POST", data={"password": "guess"}, address=f"198.51.100.{number}")
        assert answer.status_code == 401
    assert link.ask(method="POST", data={"password": "open sesame"}, address="203.0.113.1").status_code == 303


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("bucket", "limit"), [("login:127.0.0.1", 10), ("account:%", 50)])
def test_a_correct_password_is_refused_after_the_last_wrong_one_is_counted(
    app: Flask, raw: psycopg2.extensions.connection, sql: Sql, bucket: str, limit: int
) -> None:
    """Compare both passwords at the same time: the order in which they are counted decides."""

    def attempt(password: str) -> int:
        return sign_in(app.test_client(), password=password, address="127.0.0.1").status_code

    assert attempt("guess") == 401
    assert sql("UPDATE rate_windows SET count = %(n)s WHERE bucket LIKE %(b)s RETURNING 1", n=limit - 1, b=bucket)
    last = f"UPDATE rate_windows SET count = count + 1 WHERE bucket LIKE '{bucket}'"
    assert during(raw, last, lambda: attempt(PASSWORD)) == 429
