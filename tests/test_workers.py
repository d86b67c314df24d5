"""Limits, unique names and single uses are exact over four worker processes, which the tests share."""

import http.client
import json
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from argon2 import PasswordHasher

from tests.conftest import MANY, Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD
from tests.support.races import at_once
from tests.support.shortlinks import Make

pytestmark = pytest.mark.services

PAGE = "https://example.com/page"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
RATE_HEADERS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def base(shared: Callable[..., str]) -> str:
    return shared("--workers", "4", rate_limit=MANY)


def request(base: str, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    received = {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return answer.status, *received


def post(base: str, client: Client, path: str, members: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}
    status, _, body = request(base, "POST", path, json.dumps(members), **headers)
    return status, json.loads(body)


# --- sign-ins


def use_link(base: str, path: str) -> tuple[int, bool]:
    """Consume a login link. Return the status, and True if the response signs in."""
    status, headers, _ = request(base, "POST", path, Origin=base, **{"Content-Length": "0"})
    return status, "console" in headers.get("location", "") and "set-cookie" in headers


def test_of_50_concurrent_uses_of_a_login_link_exactly_one_signs_in(base: str, admin: Client, alice: Client) -> None:
    for _ in range(3):
        path = urlsplit(admin.get(f"/api/user/login/{alice.id}").get_json()["url"]).path
        outcomes = Counter(at_once(50, lambda _, path=path: use_link(base, path), threads=25))  # type: ignore[misc]
        assert outcomes == {(303, True): 1, (410, False): 49}


@pytest.fixture
def costly(sql: Sql, alice: Client) -> str:
    """Give alice a password hash as strong as the service makes it, so that comparisons overlap; return the hash."""
    strong: str = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1).hash(PASSWORD)
    sql("UPDATE users SET password_hash = %(strong)s WHERE id = %(id)s RETURNING 1", strong=strong, id=alice.id)
    return strong


def submit(base: str, path: str, number: int, *, wrong: int = 0) -> int:
    """Send a form with the correct password, or with a wrong one if the number is below `wrong`. Send it again while
    the service checks as many others as it can."""
    password = f"guess {number}" if number < wrong else PASSWORD
    form = urlencode({"email": "alice@example.com", "password": password})
    while (status := request(base, "POST", path, form, **FORM)[0]) == 503:
        time.sleep(0.1)
    return status


def test_20_concurrent_correct_passwords_sign_in_and_of_20_wrong_ones_ten_are_checked(
    base: str, short: Make, costly: str
) -> None:
    for path in ("/login", short(password_hash=costly).path):
        assert at_once(20, partial(submit, base, path), threads=20) == [303] * 20
        assert submit(base, path, 0) == 303
        wrong = Counter(at_once(20, partial(submit, base, path, wrong=20), threads=20))
        assert wrong == {401: 10, 429: 10}
        assert submit(base, path, 0) == 429


@pytest.mark.usefixtures("costly")
def test_correct_passwords_among_wrong_ones_do_not_use_up_the_limit(base: str) -> None:
    assert Counter(at_once(20, partial(submit, base, "/login", wrong=9), threads=20)) == {401: 9, 303: 11}
    assert [submit(base, "/login", 0, wrong=1) for _ in range(2)] == [401, 429]


# --- the rate limit


def read_account(base: str, key: str, number: int, threads: int = 40) -> Counter[tuple[int, bool]]:
    """Send requests at once. Count the statuses, each with True if the response has all three headers."""

    def read(_: int) -> tuple[int, bool]:
        status, headers, _body = request(base, "GET", "/api/account", Authorization=f"Bearer {key}")
        return status, headers.keys() >= RATE_HEADERS

    return Counter(at_once(number, read, threads=threads))


def test_of_200_concurrent_requests_postgresql_admits_exactly_30(base: str, on_plan: Callable[..., Client]) -> None:
    assert read_account(base, str(on_plan(rate=30).key), 200) == {(200, True): 30, (429, True): 170}


# --- rows


def test_of_50_concurrent_posts_of_one_alias_exactly_one_succeeds(base: str, alice: Client) -> None:
    sent = [{"url": f"{PAGE}/{number}", "custom": "Spring"} for number in range(50)]
    answers = at_once(50, lambda number: post(base, alice, "/api/url/add", sent[number]), threads=50)
    assert Counter(status for status, _ in answers) == {200: 1, 400: 49}
    refusals = {body["message"] for status, body in answers if status == 400}
    assert refusals == {"This alias is already in use. Choose another one."}
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


def test_50_concurrent_posts_of_one_url_create_one_link(base: str, alice: Client, sql: Sql) -> None:
    answers = at_once(50, lambda _: post(base, alice, "/api/url/add", {"url": PAGE}), threads=50)
    assert {status for status, _ in answers} == {200}
    assert len({(body["id"], body["shorturl"]) for _, body in answers}) == 1
    assert sql("SELECT count(*) AS n FROM links") == [{"n": 1}]


def test_of_200_concurrent_creates_exactly_5_succeed(base: str, on_plan: Callable[..., Client], sql: Sql) -> None:
    carol = on_plan(pixels={"enabled": "1", "count": "5"})
    pixel = {"type": "bing", "name": "n", "tag": "t"}
    answers = at_once(200, lambda _: post(base, carol, "/api/pixel/add", pixel)[0])
    assert Counter(answers) == {200: 5, 400: 195}
    kept = sql("SELECT total FROM usage WHERE user_id = %(id)s AND counted = 'pixels'", id=carol.id)
    assert (sql("SELECT count(*) AS n FROM pixels"), kept) == ([{"n": 5}], [{"total": 5}])
