"""Retry-After never exceeds the window, whatever clocks and settings do."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from flask import Flask
from redis import Redis
from werkzeug.test import TestResponse

from linkmgr.core.web import attempts, limiter
from tests.conftest import Client
from tests.support.factories import Sql

pytestmark = pytest.mark.slow

Register = Callable[..., Client]
DAY = 86400


def refused(client: Client, times: int = 2) -> TestResponse:
    """Return the last of some requests, which exceeds the limit."""
    answer = [client.get("/api/account") for _ in range(times)][-1]
    assert answer.status_code == 429
    return answer


def wait(answer: TestResponse) -> int:
    seconds = int(answer.headers["Retry-After"])
    assert f" {seconds} seconds" in answer.text
    return seconds


def test_a_plan_has_windows_of_its_own(app_with: Callable[..., Flask], register: Register, sql: Sql) -> None:
    pro = register("pro", plan="Pro", via=app_with(rate_limit="1 per day"))
    assert pro.get("/api/account").status_code == 200
    sql("UPDATE rate_windows SET count = 120 RETURNING 1")
    assert 1 <= wait(refused(pro, 1)) <= 60


@pytest.mark.parametrize("offset", [-DAY, -1.7, 0.5, DAY])
def test_the_clocks_of_the_service_and_the_database_may_differ(
    app_with: Callable[..., Flask], register: Register, monkeypatch: pytest.MonkeyPatch, offset: float
) -> None:
    alice = register("alice", plan="Free", via=app_with(rate_limit="1 per minute"))
    clock = SimpleNamespace(time=lambda: time.time() + offset, monotonic=time.monotonic)
    monkeypatch.setattr(limiter, "time", clock)
    monkeypatch.setattr("linkmgr.core.web.auth.time", clock)
    answer = refused(alice)
    assert 55 <= wait(answer) <= 60
    assert 54 <= int(answer.headers["X-RateLimit-Reset"]) - (time.time() + offset) <= 62


def test_a_window_of_an_earlier_and_longer_setting_does_not_last(
    app_with: Callable[..., Flask], register: Register
) -> None:
    alice = register("alice", plan="Free", via=app_with(rate_limit="1 per day"))
    assert wait(refused(alice)) > DAY - 5
    later = Client(app_with(rate_limit="1 per minute").test_client(), alice.key)
    assert later.get("/api/account").status_code == 200
    assert 55 <= wait(refused(later, 1)) <= 60


def sign_in(app: Flask) -> TestResponse:
    return app.test_client().post("/login", data={"email": "alice@example.com", "password": "guess"})


def test_after_the_clock_was_set_back_no_window_is_longer_than_before(
    app_with: Callable[..., Flask], register: Register, sql: Sql
) -> None:
    app = app_with(rate_limit="1 per minute")
    alice = register("alice", plan="Free", via=app)
    refused(alice)
    while sign_in(app).status_code != 429:
        pass
    sql("UPDATE rate_windows SET until = until + interval '1 day' RETURNING 1")
    assert alice.get("/api/account").status_code == 200
    assert 55 <= wait(refused(alice, 1)) <= 60
    for _ in range(attempts.ATTEMPTS):
        assert sign_in(app).status_code == 401
    answer = sign_in(app)
    assert answer.status_code == 429
    assert attempts.WINDOW - 5 <= wait(answer) <= attempts.WINDOW


@pytest.mark.parametrize("lifetime", [None, DAY], ids=["no expiry", "a day"])
def test_in_redis_a_key_without_the_right_expiry_gets_it(
    make_app: Callable[..., Flask], register: Register, redis_url: str, lifetime: int | None
) -> None:
    alice = register("alice", plan="Free", via=make_app(rate_limit="1 per minute", rate_limit_storage=redis_url))
    assert 55 <= wait(refused(alice)) <= 60
    with Redis.from_url(redis_url) as redis:
        [key] = redis.keys()
        assert redis.persist(key)
        if lifetime:
            redis.expire(key, lifetime)
        assert 55 <= wait(refused(alice, 1)) <= 60
        assert 0 < redis.ttl(key) <= 60


def test_counted_in_the_process_it_is_the_window_too(make_app: Callable[..., Flask], register: Register) -> None:
    away = make_app(rate_limit="1 per minute", rate_limit_storage="redis://127.0.0.1:1/0")
    assert 55 <= wait(refused(register("alice", plan="Free", via=away))) <= 60
