"""Password hashes of requests take turns."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import pytest
from argon2 import PasswordHasher
from flask import Flask

from linkmgr.core.web import passwords
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD
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
