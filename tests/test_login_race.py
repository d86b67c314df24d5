"""Concurrent sign-ins over several workers: by login link, by password, and to links with a password."""

import http.client
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode, urlsplit

import psycopg2
import pytest
from argon2 import PasswordHasher
from flask import Flask

from tests.conftest import PASSWORD, Client
from tests.support.factories import Sql
from tests.support.races import at_once, during
from tests.support.shortlinks import Make


def use(link: str) -> tuple[int, bool]:
    """Consume the link. Return the status, and True if the response signs in."""
    address = urlsplit(link)
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    headers = {"Origin": f"{address.scheme}://{address.netloc}", "Content-Length": "0"}
    connection.request("POST", address.path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, "console" in answer.headers.get("Location", "") and "Set-Cookie" in answer.headers


def test_of_50_concurrent_uses_exactly_one_signs_in(serve: Callable[..., str], admin: Client, alice: Client) -> None:
    base = serve("--workers", "4")
    for _ in range(3):
        token = admin.get(f"/api/user/login/{alice.id}").get_json()["url"].rsplit("/", 1)[1]
        with ThreadPoolExecutor(25) as pool:
            outcomes = Counter(pool.map(use, [f"{base}/login/{token}"] * 50))
        assert outcomes == {(303, True): 1, (410, False): 49}


def post(base: str, path: str, **fields: str) -> int:
    """Send a form and return the status."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", path, urlencode(fields), headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture
def costly(sql: Sql, alice: Client) -> str:
    """Give alice a password hash as strong as the service makes it, so that comparisons overlap; return the hash."""
    strong: str = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1).hash(PASSWORD)
    sql("UPDATE users SET password_hash = %(strong)s WHERE id = %(id)s RETURNING 1", strong=strong, id=alice.id)
    return strong


@pytest.mark.usefixtures("costly")
def test_40_concurrent_correct_passwords_and_one_more_sign_in(serve: Callable[..., str]) -> None:
    base = serve("--workers", "2")
    statuses = at_once(40, lambda _: post(base, "/login", email="alice@example.com", password=PASSWORD), threads=40)
    assert statuses == [303] * 40
    assert post(base, "/login", email="alice@example.com", password=PASSWORD) == 303


@pytest.mark.usefixtures("costly")
def test_of_40_concurrent_wrong_passwords_ten_are_checked(serve: Callable[..., str]) -> None:
    base = serve("--workers", "2")
    statuses = at_once(40, lambda n: post(base, "/login", email="alice@example.com", password=f"guess {n}"), threads=40)
    assert Counter(statuses) == {401: 10, 429: 30}
    assert post(base, "/login", email="alice@example.com", password=PASSWORD) == 429


@pytest.mark.usefixtures("costly")
def test_correct_passwords_among_wrong_ones_do_not_use_up_the_limit(serve: Callable[..., str]) -> None:
    base = serve("--workers", "2")

    def attempt(number: int) -> int:
        password = f"guess {number}" if number < 9 else PASSWORD
        return post(base, "/login", email="alice@example.com", password=password)

    assert Counter(at_once(40, attempt, threads=40)) == {401: 9, 303: 31}
    assert [attempt(0), attempt(0)] == [401, 429]


def test_40_concurrent_visitors_with_the_password_of_a_link_are_redirected(
    serve: Callable[..., str], short: Make, costly: str, sql: Sql
) -> None:
    base, link = serve("--workers", "2"), short(password_hash=costly)
    statuses = at_once(40, lambda _: post(base, link.path, password=PASSWORD), threads=40)
    assert statuses == [303] * 40
    assert post(base, link.path, password=PASSWORD) == 303
    wrong = at_once(40, lambda n: post(base, link.path, password=f"guess {n}"), threads=40)
    assert Counter(wrong) == {401: 10, 429: 30}


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("bucket", "limit"), [("login:127.0.0.1", 10), ("account:%", 50)])
def test_a_correct_password_is_refused_after_the_last_wrong_one_is_counted(
    app: Flask, raw: psycopg2.extensions.connection, sql: Sql, bucket: str, limit: int
) -> None:
    """Compare both passwords at the same time: the order in which they are counted decides."""

    def sign_in(password: str) -> int:
        sent = {"email": "alice@example.com", "password": password}
        return app.test_client().post("/login", data=sent).status_code

    assert sign_in("guess") == 401
    assert sql("UPDATE rate_windows SET count = %(n)s WHERE bucket LIKE %(b)s RETURNING 1", n=limit - 1, b=bucket)
    last = f"UPDATE rate_windows SET count = count + 1 WHERE bucket LIKE '{bucket}'"
    assert during(raw, last, lambda: sign_in(PASSWORD)) == 429
