"""Sign-in by password and by login link."""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import extract_parameters
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.console import login as login_pages
from linkmgr.core.database.statements import Row
from linkmgr.core.web import attempts, passwords
from tests.conftest import Client
from tests.support.pages import PASSWORD, is_signed_in, login_path


@pytest.fixture
def browser_of(app: Flask) -> FlaskClient:
    return app.test_client()


def sign_in(browser: FlaskClient, email: str = "alice@example.com", password: str = PASSWORD) -> TestResponse:
    return browser.post("/login", data={"email": email, "password": password})


@pytest.mark.parametrize("email", ["alice@example.com", "ALICE@Example.com", " alice@example.com ", "Alice"])
def test_the_correct_password_redirects_to_the_console(browser_of: FlaskClient, alice: Client, email: str) -> None:
    assert not is_signed_in(browser_of)
    answer = sign_in(browser_of, email)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console")
    assert is_signed_in(browser_of)


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("alice@example.com", "wrong horse"),
        ("alice@example.com", ""),
        ("alice@example.com", PASSWORD + "\0"),
        ("alice%", PASSWORD),
        ("nobody@example.com", PASSWORD),
        ("alice@example.com\0x", PASSWORD),
        ("\ud800@example.com".encode("utf-8", "surrogatepass").decode("latin-1"), PASSWORD),
        ("", ""),
        ("x" * 5000, "y" * 5000),
    ],
)
def test_every_failed_sign_in_has_the_same_message(
    browser_of: FlaskClient, alice: Client, email: str, password: str
) -> None:
    answer = sign_in(browser_of, email, password)
    assert answer.status_code == 401
    assert "The name or the password is wrong. Check both for typing errors." in answer.text
    assert not is_signed_in(browser_of)


def test_a_form_without_its_fields_is_rejected(browser_of: FlaskClient) -> None:
    assert browser_of.post("/login").status_code == 401
    assert browser_of.post("/login", json={"email": "a"}).status_code == 401
    assert browser_of.post("/login", data=b"\xff\x00=%", content_type="multipart/form-data").status_code == 401


def test_an_unknown_email_costs_the_same_hash_as_an_existing_one(
    app: Flask, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    matches = passwords.matches

    def record(password: str, password_hash: str) -> bool:
        compared.append(extract_parameters(password_hash))
        return matches(password, password_hash)

    monkeypatch.setattr(passwords, "matches", record)
    login_pages._dummy_hash.cache_clear()
    for email in ("alice@example.com", "nobody@example.com"):
        assert sign_in(app.test_client(), email, "wrong horse").status_code == 401
    assert len(compared) == 2
    assert compared[0] == compared[1]


def test_password_attempts_are_limited(
    app: Flask, browser_of: FlaskClient, alice: Client, sql: Callable[..., list[Row]]
) -> None:
    def guess(number: int) -> TestResponse:
        while (answer := sign_in(app.test_client(), "alice@example.com", f"guess {number}")).status_code == 503:
            time.sleep(0.01)  # another one is being compared
        return answer

    with ThreadPoolExecutor(4) as pool:
        tries = [pool.submit(guess, n) for n in range(20)]
    assert [each.result().status_code for each in tries].count(401) == attempts.ATTEMPTS
    assert sign_in(browser_of).status_code == 429  # the same response for the correct password
    other = browser_of.post(
        "/login", data={"email": "alice@example.com", "password": PASSWORD}, environ_base={"REMOTE_ADDR": "192.0.2.7"}
    )
    assert other.status_code == 303
    assert alice.get("/api/account").status_code == 200  # the API's rate limit is separate
    sql("UPDATE rate_windows SET until = now() WHERE bucket = 'login:127.0.0.1' RETURNING 1")
    assert sign_in(app.test_client()).status_code == 303


def test_correct_passwords_do_not_count_and_do_not_reset_the_limit(app: Flask, alice: Client) -> None:
    for _ in range(attempts.ATTEMPTS + 2):
        assert sign_in(app.test_client()).status_code == 303
    answers = []
    for _ in range(attempts.ATTEMPTS + 1):
        answers.append(sign_in(app.test_client(), "bob@example.com", "guess").status_code)
        sign_in(app.test_client())
    assert answers == [401] * attempts.ATTEMPTS + [429]


def test_a_link_signs_in_once(app: Flask, admin: Client, alice: Client) -> None:
    path = login_path(admin, alice)
    for _ in range(3):
        page = app.test_client().get(path)  # a mail scanner
        assert page.status_code == 200
        assert "Set-Cookie" not in page.headers
        assert app.test_client().head(path).status_code == 200
    browser = app.test_client()
    answer = browser.post(path)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console")
    assert is_signed_in(browser)
    assert app.test_client().get(path).status_code == 410
    other = app.test_client().post(path)
    assert other.status_code == 410
    assert "Set-Cookie" not in other.headers
    assert browser.post(path).status_code == 410
    assert is_signed_in(browser)


def test_a_link_replaces_an_existing_session_only_after_confirmation(
    app: Flask, admin: Client, alice: Client, bob: Client
) -> None:
    browser = app.test_client()
    sign_in(browser, "bob@example.com")
    path = login_path(admin, alice)
    page = browser.get(path).text
    assert "<script" not in page
    assert "You are already signed in." in page
    assert '<button class="button wide">Sign out and use this link</button>' in page
    assert "bob@example.com" in browser.get("/account").text
    assert browser.post(path).status_code == 303
    assert "alice@example.com" in browser.get("/account").text
    assert "<script" in app.test_client().get(login_path(admin, alice)).text


def test_a_link_expires_after_an_hour(app: Flask, admin: Client, alice: Client, sql: Callable[..., list[Row]]) -> None:
    path = login_path(admin, alice)
    sql("UPDATE sessions SET created = created - interval '59 minutes' RETURNING 1")
    assert app.test_client().get(path).status_code == 200
    sql("UPDATE sessions SET created = created - interval '1 minute' RETURNING 1")
    assert app.test_client().get(path).status_code == 410
    assert app.test_client().post(path).status_code == 410


def test_sign_in_creates_a_new_session_and_ends_the_previous_one(
    app: Flask, browser_of: FlaskClient, alice: Client, sql: Callable[..., list[Row]]
) -> None:
    sign_in(browser_of)
    first = browser_of.get_cookie("linkmgr")
    sign_in(browser_of)
    second = browser_of.get_cookie("linkmgr")
    assert first
    assert second
    assert first.value != second.value
    assert len(sql("SELECT 1 FROM sessions")) == 1
    thief = app.test_client()
    thief.set_cookie("linkmgr", first.value)
    assert not is_signed_in(thief)


def test_sign_in_redirects_to_the_console_only(browser_of: FlaskClient, alice: Client) -> None:
    form = {"email": "alice@example.com", "password": PASSWORD, "next": "//evil.example"}
    assert browser_of.post("/login?next=//evil.example", data=form).headers["Location"] == "/console"


@pytest.mark.parametrize("path", ["/console/links/5", "/console/links?q=a%2Fb&page=2", "/owner"])
def test_sign_in_returns_to_the_page_that_was_asked_for(
    app: Flask, browser_of: FlaskClient, alice: Client, path: str
) -> None:
    if path == "/owner":
        path = "/console/links/by-address?url=http%3A%2F%2Flocalhost%2Fabc"
        assert browser_of.get("/abc/owner").headers["Location"].endswith(path)
    assert browser_of.get(path).headers["Location"] == "/login"
    assert sign_in(browser_of).headers["Location"] == path
    browser_of.post("/account/sign-out")
    assert sign_in(browser_of).headers["Location"] == "/console"  # once


def test_sign_in_returns_to_no_page_of_another_host_or_of_an_earlier_day(
    browser_of: FlaskClient, alice: Client
) -> None:
    framed = {"Sec-Fetch-Dest": "iframe"}
    for path in (
        "/console//evil.example",
        "/console/nowhere",
        "/account",
        "/console/" + "x" * 1000,
        "/console?next=//evil",
    ):
        browser_of.get(path)
    browser_of.get("/console/links", headers=framed)
    browser_of.post("/console/links/new")
    assert sign_in(browser_of).headers["Location"] == "/console"
    browser_of.post("/account/sign-out")
    browser_of.get("/console/links")
    with browser_of.session_transaction() as session:
        session["page"] = [session["page"][0], session["page"][1] - 1801]
        session.accessed = True
    assert sign_in(browser_of).headers["Location"] == "/console"


def test_a_signed_in_user_is_redirected_to_the_console(browser_of: FlaskClient, alice: Client) -> None:
    assert (browser_of.get("/").status_code, browser_of.get("/").headers["Location"]) == (302, "/login")
    assert browser_of.get("/login").status_code == 200
    sign_in(browser_of)
    assert browser_of.get("/login").headers["Location"] == "/console"


@pytest.mark.parametrize(("path", "kind"), [("/favicon.ico", "image/"), ("/robots.txt", "text/plain")])
def test_favicon_and_robots_txt_are_served(browser_of: FlaskClient, path: str, kind: str) -> None:
    with browser_of.get(path) as answer:
        assert answer.status_code == 200
        assert str(answer.mimetype).startswith(kind)


def is_disallowed(robots: str, path: str) -> bool:
    """Match a path with the rules as RFC 9309 describes them: `$` is the end of the path, others are prefixes."""
    rules = re.findall("^Disallow: (.+)$", robots, re.MULTILINE)
    return any(path == rule[:-1] if rule.endswith("$") else path.startswith(rule) for rule in rules)


def test_robots_txt_hides_our_pages_and_no_link(browser_of: FlaskClient, alice: Client) -> None:
    with browser_of.get("/robots.txt") as answer:
        robots = answer.get_data(as_text=True)
    for path in ("/api/urls", "/login", "/login?next=/console", "/login/token", "/account", "/account/key"):
        assert is_disallowed(robots, path), path
    for path in ("/accounting", "/accounts2026", "/account-", "/login2", "/logins/qr", "/apis", "/api-docs", "/"):
        assert not is_disallowed(robots, path), path
    alice.add("/api/domain/add", {"domain": "https://go.example.org"})
    robots = browser_of.get("/robots.txt", headers={"Host": "go.example.org"}).text
    assert robots.startswith("User-agent: *\n")
    assert not is_disallowed(robots, "/login")


def test_a_session_ends_after_30_days(browser_of: FlaskClient, alice: Client, sql: Callable[..., list[Row]]) -> None:
    sign_in(browser_of)
    sql("UPDATE sessions SET created = created - interval '30 days' RETURNING 1")
    assert browser_of.get("/account").headers["Location"] == "/login"


def test_a_forged_cookie_has_no_session(app: Flask, make_app: Callable[..., Flask], alice: Client) -> None:
    other = make_app(secret_key="another secret" * 3).test_client()
    sign_in(other)
    cookie = other.get_cookie("linkmgr")
    assert cookie
    for value in (cookie.value, cookie.value[:-1], "", "x.y.z", "\u00e9"):
        browser = app.test_client()
        browser.set_cookie("linkmgr", value)
        assert not is_signed_in(browser)
