"""The rate limit: one counter per user over all of /api, exact over workers, with headers on every response."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from flask import Flask
from redis import Redis

from bench import trips
from linkmgr.core.database import statements
from tests.conftest import Client, structured_list
from tests.support.pages import signed_in
from tests.support.targets import wait_until

LIMIT = 30


@pytest.fixture
def limited(app_with: Callable[..., Flask], app: Flask) -> Flask:
    """The service with its default rate limit."""
    return app_with(rate_limit="30 per minute")


def send_calls(client: Client, times: int, path: str = "/api/account") -> Counter[int]:
    return Counter(client.get(path).status_code for _ in range(times))


def test_the_31st_request_of_a_minute_is_refused_with_the_time_to_wait(
    limited: Flask, register: Callable[..., Client]
) -> None:
    alice = register("alice", plan="Free", via=limited)
    before = int(time.time())
    first = alice.get("/api/account")
    assert (first.headers["X-RateLimit-Limit"], first.headers["X-RateLimit-Remaining"]) == ("30", "29")
    assert before + 60 <= int(first.headers["X-RateLimit-Reset"]) <= before + 65
    assert send_calls(alice, LIMIT - 1) == {200: LIMIT - 1}
    refused = alice.get("/api/account")
    assert refused.status_code == 429
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    wait = int(refused.headers["Retry-After"])
    assert 1 <= wait <= 60
    assert refused.get_json()["message"] == (
        f"You have exceeded the limit of 30 requests per minute. Try again in {wait} seconds."
    )
    bob = register("bob", plan="Free", via=limited)
    assert bob.get("/api/account").headers["X-RateLimit-Remaining"] == "29"


def test_the_standard_headers_have_the_policy_and_the_rest_of_the_window(
    limited: Flask, app_with: Callable[..., Flask], register: Callable[..., Client]
) -> None:
    alice = register("alice", plan="Free", via=limited)
    first = alice.get("/api/account").headers
    assert first["RateLimit-Policy"] == '"default";q=30;w=60'
    [(name, service)] = structured_list(first["RateLimit"])
    assert (name, service["r"]) == ("default", 29)
    assert 55 <= service["t"] <= 60
    plan = register("bob", plan="Pro", via=limited).get("/api/account").headers
    assert plan["RateLimit-Policy"] == '"default";q=120;w=60'
    daily = Client(app_with(rate_limit="500 per 2 hours").test_client()).get("/api/account").headers
    assert structured_list(daily["RateLimit-Policy"]) == [("default", {"q": 500, "w": 7200})]
    [(_, service)] = structured_list(daily["RateLimit"])
    assert 7195 <= service["t"] <= 7200


def test_the_rest_of_the_window_becomes_shorter(
    limited: Flask, register: Callable[..., Client], sql: Callable[..., list[statements.Row]]
) -> None:
    alice = register("alice", plan="Free", via=limited)
    alice.get("/api/account")
    sql("UPDATE rate_windows SET until = clock_timestamp() + interval '20 seconds' RETURNING 1")
    [(_, service)] = structured_list(alice.get("/api/account").headers["RateLimit"])
    assert service["r"] == 28
    assert 15 <= service["t"] <= 20
    assert send_calls(alice, LIMIT)[429] == 2
    [(_, service)] = structured_list(alice.get("/api/account").headers["RateLimit"])
    assert service["r"] == 0


def test_the_headers_of_a_refusal_agree_while_time_passes(
    limited: Flask, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = register("alice", plan="Free", via=limited)
    send_calls(alice, LIMIT)
    clock, calls = time.time, count()
    monkeypatch.setattr(time, "time", lambda: clock() + 0.7 * next(calls))
    refused = alice.get("/api/account").headers
    assert next(calls) > 2
    [(_, service)] = structured_list(refused["RateLimit"])
    assert service["t"] == int(refused["Retry-After"])


def test_all_paths_share_one_counter_even_those_that_do_not_exist(
    limited: Flask, register: Callable[..., Client]
) -> None:
    alice = register("alice", plan="Free", via=limited)
    answers = [
        alice.get("/api/account"),
        alice.get("/api/pixels"),
        alice.post("/api/pixel/add", {}),
        alice.get("/api/nothing"),
        alice.delete("/api/account"),
        alice.get("/api"),
        alice.get("/api/users"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400, 404, 405, 404, 403]
    assert [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers] == list(range(29, 22, -1))


def test_the_window_ends_by_the_clock_of_the_database(
    limited: Flask, register: Callable[..., Client], sql: Callable[..., list[statements.Row]]
) -> None:
    alice = register("alice", plan="Free", via=limited)
    assert send_calls(alice, LIMIT + 1)[429] == 1
    sql("UPDATE rate_windows SET until = clock_timestamp() RETURNING 1")
    assert alice.get("/api/account").headers["X-RateLimit-Remaining"] == "29"


def test_a_plan_may_have_its_own_rate(limited: Flask, register: Callable[..., Client]) -> None:
    alice = register("alice", plan="Pro", via=limited)
    assert alice.get("/api/account").headers["X-RateLimit-Limit"] == "120"
    assert send_calls(alice, 120) == {200: 119, 429: 1}


def test_another_plan_starts_another_window(
    app_with: Callable[..., Flask], register: Callable[..., Client], sql: Callable[..., list[statements.Row]]
) -> None:
    alice = register("alice", plan="Free", via=app_with(rate_limit="3 per day"))
    assert send_calls(alice, 5) == {200: 3, 429: 2}
    sql(
        "UPDATE users SET plan_id = (SELECT id FROM plans WHERE name = 'Pro') WHERE id = %(id)s RETURNING 1",
        id=alice.id,
    )
    assert alice.get("/api/account").headers["X-RateLimit-Remaining"] == "119"


def test_invalid_keys_are_counted_by_ip_address_and_block_neither_valid_keys_nor_pages(
    limited: Flask, register: Callable[..., Client]
) -> None:
    alice = register("alice", plan="Free", via=limited)
    thief, nobody = Client(limited.test_client(), "guess"), Client(limited.test_client())
    assert send_calls(thief, 20) + send_calls(nobody, 20) == {401: LIMIT, 429: 10}
    assert alice.get("/api/account").headers["X-RateLimit-Remaining"] == "29"
    health = limited.test_client().get("/healthz")
    assert health.status_code == 200
    assert not [name for name, _ in health.headers if "ratelimit" in name.lower()]
    elsewhere = thief.get("/api/account", environ_base={"REMOTE_ADDR": "192.0.2.1"})
    assert (elsewhere.status_code, elsewhere.headers["X-RateLimit-Remaining"]) == (401, "29")


def test_an_ipv6_client_is_counted_by_its_network(limited: Flask) -> None:
    thief = Client(limited.test_client(), "guess")
    remaining = [
        thief.get("/api/account", environ_base={"REMOTE_ADDR": address}).headers["X-RateLimit-Remaining"]
        for address in ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "fe80::1%eth0")
    ]
    assert remaining == ["29", "28", "29", "29"]


def test_pages_of_a_user_and_public_lists_have_a_limit_of_their_own(
    app_with: Callable[..., Flask], alice: Client, bob: Client
) -> None:
    app = app_with(page_rate_limit="3 per minute")
    path = alice.post("/api/campaign/add", {"name": "Spring", "public": True}).get_json()["list"].split("/", 3)[3]
    short = alice.post("/api/url/add", {"url": "https://example.com/page"}).get_json()["shorturl"]
    anonymous = app.test_client()
    first, second, bobs = signed_in(app), signed_in(app), signed_in(app, "bob@example.com")
    answers = [browser.get("/console/links") for browser in (first, second, first, second, bobs)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 200]
    assert "You have opened more than 3 pages per minute." in answers[3].text
    assert 0 < int(answers[3].headers["Retry-After"]) <= 60
    lists = [anonymous.get(f"/{path}") for _ in range(4)]
    assert [answer.status_code for answer in lists] == [200, 200, 200, 429]
    assert lists[3].mimetype == "text/html"
    assert {anonymous.get(short).status_code for _ in range(5)} == {302}


def test_a_request_needs_one_round_trip(app_with: Callable[..., Flask], register: Callable[..., Client]) -> None:
    limited = app_with(rate_limit="100 per minute")
    alice = register("alice", via=limited)
    request = {"path": "/api/account", "headers": {"Authorization": f"Bearer {alice.key}"}}
    assert trips.count(limited, lambda: request) == 1


def test_a_revoked_key_is_refused_at_once(alice: Client) -> None:
    key = alice.post("/api/key/add", {"name": "n", "scopes": ["account:read"]}).get_json()
    client = Client(alice.http, key["key"])
    assert client.get("/api/account").status_code == 200
    assert alice.delete(f"/api/key/{key['id']}/delete").status_code == 200
    assert client.get("/api/account").status_code == 401


# --- when the storage is unavailable


def send_signal(redis_url: str, fault: signal.Signals) -> int:
    with Redis.from_url(redis_url) as redis:
        pid = int(redis.info("server")["process_id"])
    os.kill(pid, fault)
    return pid


def test_with_redis_every_response_has_the_same_headers(
    make_app: Callable[..., Flask], register: Callable[..., Client], redis_url: str
) -> None:
    over_redis = make_app(rate_limit="30 per minute", rate_limit_storage=redis_url)
    alice = register("alice", plan="Free", via=over_redis)
    before = int(time.time())
    answers = [alice.get("/api/account") for _ in range(LIMIT + 1)]
    assert [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers] == [*range(29, -1, -1), 0]
    assert answers[-1].status_code == 429
    assert before + 60 <= int(answers[-1].headers["X-RateLimit-Reset"]) <= before + 65


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_without_redis_requests_are_counted_in_the_process(
    make_app: Callable[..., Flask],
    register: Callable[..., Client],
    redis_url: str,
    caplog: pytest.LogCaptureFixture,
    fault: signal.Signals,
) -> None:
    # A Redis that answers late, as on a busy machine, is not counted as lost.
    patient = f"{redis_url}?socket_timeout=5" if fault == signal.SIGKILL else redis_url
    over_redis = make_app(rate_limit="30 per minute", rate_limit_storage=patient)
    alice = register("alice", plan="Free", via=over_redis)
    assert alice.get("/api/account").status_code == 200
    assert caplog.records == []
    pid = send_signal(redis_url, fault)
    assert send_calls(alice, LIMIT + 1) == {200: LIMIT, 429: 1}
    lost = "rate limit: Redis is unavailable, each process counts its own requests"
    assert [record.message for record in caplog.records if record.name == "linkmgr"] == [lost]
    if fault == signal.SIGSTOP:
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: alice.get("/api/account").status_code == 200)
        assert caplog.records[-1].message == "rate limit: Redis is available again"


def test_all_requests_that_wait_for_an_unresponsive_redis_are_answered(
    make_app: Callable[..., Flask], register: Callable[..., Client], redis_url: str, tmp_path: Path
) -> None:
    over_redis = make_app(rate_limit_storage=redis_url, metrics_token="m" * 16, data_dir=str(tmp_path))
    alice = register("alice", via=over_redis)
    assert alice.get("/api/account").status_code == 200
    send_signal(redis_url, signal.SIGSTOP)
    clients = [Client(over_redis.test_client(), alice.key) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda client: client.get("/api/account").status_code, clients)
    assert Counter(answers) == {200: 8}
    metrics = alice.http.get("/metrics", headers={"Authorization": f"Bearer {'m' * 16}"})
    assert "linkmgr_limiter_fallbacks_total 8.0" in metrics.text


def test_while_the_database_is_unavailable_the_response_is_503_with_all_headers(app_with: Callable[..., Flask]) -> None:
    lost = app_with(database_url="postgresql://postgres@127.0.0.1:1/linkmgr")
    answer = Client(lost.test_client(), "key").get("/api/account")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert answer.get_json()["message"] == "The service cannot reach its database. Try again in 2 seconds."
    assert lost.test_client().get("/healthz").status_code == 503
