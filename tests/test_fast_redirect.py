"""Links that only redirect, which are answered before Flask, exactly as their route answers."""

import re
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import psycopg2
import pytest
from flask import request_started
from psycopg2.errors import QueryCanceled
from werkzeug.test import TestResponse

from linkmgr.public.short import FastRedirects
from linkmgr.repository import public
from tests.conftest import BASE_URL
from tests.support.shortlinks import ANDROID, BRANDED, FACEBOOK, TARGET, Make, Short
from tests.support.targets import FIREFOX

PAST = datetime(2020, 1, 1, tzinfo=UTC)
PLAIN: list[dict[str, Any]] = [
    {},
    {"title": "Title"},
    {"status": "private"},
    {"extrapath": True},
    {"url": f"{TARGET}?a=b&c=%C3%A9#d"},
]
OTHERS: list[dict[str, Any]] = [
    {"expiry": PAST},
    {"password_hash": "hash"},
    {"type": "frame"},
    {"geotarget": {"Germany": "https://example.com/de"}},
    {"devicetarget": {"iPhone": "https://example.com/phone"}},
    {"languagetarget": {"fr": "https://example.com/fr"}},
    {"parameters": [{"name": "utm_source", "value": "mail"}]},
    {"variants": [{"name": name, "url": f"https://example.com/{name}", "weight": 1} for name in ("a", "b")]},
    {"deeplink": {"auto": True, "google": "https://play.google.com/store"}},
    {"url": f"{BASE_URL}/nothing"},
]


@pytest.fixture
def in_flask() -> Any:
    """The requests that reach Flask."""
    reached: list[Any] = []

    def note(_app: Any, **_: Any) -> None:
        reached.append(1)

    request_started.connect(note)
    yield reached
    request_started.disconnect(note)


def outline(answer: TestResponse) -> Any:
    headers = sorted(item for item in answer.headers if item[0] not in ("X-Request-Id", "Content-Security-Policy"))
    return answer.status, headers, re.sub('nonce="[^"]*"|[0-9a-f]{16}', "", answer.text)


def as_route(link: Short, monkeypatch: pytest.MonkeyPatch, **request: Any) -> Any:
    with monkeypatch.context() as patched:
        patched.setattr(FastRedirects, "_visit", lambda _self, _environ: None)
        return outline(link.ask(**request))


@pytest.mark.parametrize("columns", [*PLAIN, *OTHERS], ids=str)
def test_the_answer_is_that_of_the_route(short: Make, monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any]) -> None:
    link = short(**columns)
    for method, agent in (("GET", ANDROID), ("GET", FACEBOOK), ("HEAD", FIREFOX), ("POST", FIREFOX)):
        answer = outline(link.ask(method=method, agent=agent))
        assert answer == as_route(link, monkeypatch, method=method, agent=agent), (method, agent)


@pytest.mark.parametrize("columns", PLAIN, ids=str)
def test_a_link_that_only_redirects_does_not_reach_flask(
    short: Make, in_flask: list[Any], columns: dict[str, Any]
) -> None:
    link = short(**columns)
    assert link.redirect_target() == columns.get("url", TARGET)
    assert (in_flask, link.clicks) == ([], 1)


def test_a_link_that_only_redirects_on_a_branded_domain_does_not_reach_flask(short: Make, in_flask: list[Any]) -> None:
    link = short()
    link.brand()
    assert link.redirect_target(Host=BRANDED) == TARGET
    assert link.ask(Host="192.0.2.1").status_code == 404
    assert (len(in_flask), link.clicks) == (1, 1)


@pytest.mark.parametrize("columns", OTHERS, ids=str)
def test_any_other_link_is_read_once_and_passed_on(
    short: Make, in_flask: list[Any], monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any]
) -> None:
    link, read, reads = short(**columns), public.short_link, []

    def count(host: str | None, alias: str, **options: Any) -> Any:
        reads.append(alias)
        return read(host, alias, **options)

    monkeypatch.setattr(public, "short_link", count)
    link.ask(agent=ANDROID)
    assert (len(in_flask), reads.count(link.alias)) == (1, 1)


def test_pages_of_the_service_cost_no_lookup(short: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "short_link", lambda *_, **__: pytest.fail("a page was looked up"))
    for path in ("/login", "/console", "/healthz", "/api/account", "/"):
        short().app.test_client().get(path)


@pytest.mark.parametrize("failure", [psycopg2.OperationalError("lost"), QueryCanceled("timeout")])
def test_a_link_that_the_database_does_not_return_is_not_read_again(
    short: Make, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    read = Mock(side_effect=failure)
    monkeypatch.setattr(public, "short_link", read)
    assert (short().ask().status_code, read.call_count) == (503, 1)
