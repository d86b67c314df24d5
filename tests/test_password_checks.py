"""Password hashes of requests take turns, and all checks are limited per IP address and per account."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import pytest
from argon2 import PasswordHasher
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.web import attempts, passwords
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, send, signed_in
from tests.support.races import at_once
from tests.support.shortlinks import Make

SECRET = "open sesame"
FORM = {"email": "alice@example.com", "password": PASSWORD}


# --- turns


@pytest.fixture
def costly() -> PasswordHasher:
    """The hasher of the service, not the fast one of tests."""
    memory, passes, lanes = passwords.MAX_COSTS
    return PasswordHasher(memory_cost=memory, time_cost=passes, parallelism=lanes)


def post(base: str, path: str, form: dict[str, str]) -> int:
    return send_to(base, path, urlencode(form), Content_Type="application/x-www-form-urlencoded")


def send_to(base: str, path: str, body: str, **headers: str) -> int:
    with closing(HTTPConnection(urlsplit(base).netloc, timeout=30)) as connection:
        connection.request("POST", path, body, {name.replace("_", "-"): headers[name] for name in headers})
        return connection.getresponse().status


@pytest.mark.services
def test_links_with_passwords_that_a_user_creates_at_once_are_all_created(unlimited: str, alice: Client) -> None:
    def create(number: int) -> int:
        body = f'{{"url": "https://example.com/{number}", "password": "{SECRET}"}}'
        return send_to(unlimited, "/api/url/add", body, Authorization=f"Bearer {alice.key}")

    assert at_once(3, create) == [200] * 3
    assert at_once(16, create) == [200] * 16


@pytest.mark.services
def test_visitors_who_send_the_password_of_a_link_at_once_are_all_served(
    unlimited: str, short: Make, costly: PasswordHasher
) -> None:
    link, began = short(password_hash=costly.hash(SECRET)), time.monotonic()
    assert at_once(50, lambda _: post(unlimited, link.path, {"password": SECRET}), threads=50) == [303] * 50
    assert time.monotonic() - began < 10


@pytest.mark.services
def test_40_correct_sign_ins_at_once_succeed_and_one_more(
    unlimited: str, alice: Client, sql: Sql, costly: PasswordHasher
) -> None:
    hashed = costly.hash(PASSWORD)
    sql("UPDATE users SET password_hash = %(hash)s WHERE id = %(id)s RETURNING 1", hash=hashed, id=alice.id)
    assert at_once(40, lambda _: post(unlimited, "/login", FORM), threads=40) == [303] * 40
    assert post(unlimited, "/login", FORM) == 303


@contextmanager
def taken() -> Iterator[None]:
    for _ in range(passwords.TURNS):
        assert passwords.turns.acquire(timeout=1)
    yield
    passwords.turns.release(passwords.TURNS)


def test_a_password_waits_three_seconds_for_its_turn(app: Flask, alice: Client) -> None:
    began = time.monotonic()
    with taken():
        refused = app.test_client().post("/login", data=FORM)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
        waited = time.monotonic() - began
        answer = alice.post("/api/url/add", {"url": "https://example.com", "password": SECRET})
        assert (answer.status_code, answer.get_json()["code"]) == (503, "password_busy")
    assert passwords.WAIT <= waited < 2 * passwords.WAIT
    with ThreadPoolExecutor(1) as visitors:
        with taken():
            visitor = visitors.submit(app.test_client().post, "/login", data=FORM)
            time.sleep(0.2)
            assert not visitor.done()
        assert visitor.result().status_code == 303


# --- limits


def sign_in(app: Flask, number: int, email: str = FORM["email"]) -> TestResponse:
    """Sign in from another IP address for each number."""
    sender = {"REMOTE_ADDR": f"198.51.100.{number}"}
    return app.test_client().post("/login", data=FORM | {"email": email}, environ_base=sender)


def test_sign_ins_to_an_account_are_limited_even_if_all_are_correct(app: Flask, alice: Client, bob: Client) -> None:
    browser = signed_in(app)
    answers = [sign_in(app, number) for number in range(attempts.CHECKS)]
    assert [answer.status_code for answer in answers] == [303] * (attempts.CHECKS - 1) + [429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= attempts.WINDOW
    assert "Too many passwords for this account." in answers[-1].text
    assert sign_in(app, 1, "ALICE").status_code == 429
    assert sign_in(app, 1, "bob@example.com").status_code == 303
    assert browser.post("/login", data=FORM).status_code == 303  # strangers cannot lock out a known browser


def test_known_browsers_of_an_account_are_limited_together_with_its_confirmations(app: Flask, alice: Client) -> None:
    first, second = signed_in(app), signed_in(app)
    for number in range(attempts.CHECKS):
        sender = {"REMOTE_ADDR": f"198.51.100.{number}"}
        browser = (first, second)[number % 2]
        assert browser.post("/login", data=FORM, environ_base=sender).status_code == 303
    refused = first.post("/login", data=FORM)
    assert (refused.status_code, "Too many passwords for this account." in refused.text) == (429, True)
    assert "Too many passwords for this account." in send(second, "/account/key", current_password=PASSWORD)
    assert sign_in(app, 1).status_code == 303


def test_all_passwords_from_an_ip_address_are_limited_together(app: Flask, alice: Client, short: Make) -> None:
    link = short(password_hash=passwords.hashed(SECRET))

    def unlock(address: str = "192.0.2.1") -> int:
        sender = {"REMOTE_ADDR": address}
        return app.test_client().post(link.path, data={"password": SECRET}, environ_base=sender).status_code

    half = attempts.CHECKS // 2
    assert [unlock() for _ in range(half)] == [303] * half
    sender = {"REMOTE_ADDR": "192.0.2.1"}
    answers = [app.test_client().post("/login", data=FORM, environ_base=sender) for _ in range(half)]
    assert [answer.status_code for answer in answers] == [303] * half
    refused = app.test_client().post("/login", data=FORM, environ_base=sender)
    assert (refused.status_code, "Too many passwords from your IP address." in refused.text) == (429, True)
    assert 0 < int(refused.headers["Retry-After"]) <= attempts.WINDOW
    assert unlock() == 429
    assert unlock("192.0.2.2") == 303
