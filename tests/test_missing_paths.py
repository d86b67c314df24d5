"""Paths that visitors did not find, of branded domains and of the host of the service."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import psycopg2
import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.features.missing_paths import repository
from linkmgr.features.missing_paths.paths import MissingPaths
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, signed_in
from tests.support.targets import FIREFOX

HOST = "go.example.org"


@pytest.fixture
def domain(alice: Client) -> int:
    return alice.add("/api/domain/add", {"domain": f"https://{HOST}", "redirect404": "https://example.com/lost"})


def ask(app: Flask, path: str, *, host: str = HOST, method: str = "GET", **headers: str) -> None:
    app.test_client().open(path, method=method, headers={"Host": host, "User-Agent": FIREFOX} | headers)


def store(app: Flask) -> None:
    paths: MissingPaths = app.extensions["linkmgr_missing_paths"]
    with app.app_context():
        paths.work()


def found(client: Client, domain: int, query: str = "") -> dict[str, int]:
    listed = client.get(f"/api/domain/{domain}/missing{query}").get_json()["data"]["missing"]
    return {row["path"]: row["visits"] for row in listed}


def test_browsers_are_counted_by_path_and_nothing_else_is(app: Flask, alice: Client, domain: int) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/", "custom": "here", "domain": f"https://{HOST}"})
    for path in ("/sumer", "/sumer", "/winter?key=secret", "/here", f"/{'x' * 100}"):
        ask(app, path)
    for path in ("/", "/.env", "/wp-login.php", "/a/b", "/\u00fc%00\n", f"/{'x' * 101}"):  # are no aliases
        ask(app, path)
    ask(app, "/sumer", method="HEAD")
    ask(app, "/sumer", **{"User-Agent": "Googlebot/2.1"})
    ask(app, "/sumer", Purpose="prefetch")
    ask(app, "/sumer", host="other.example.org")
    ask(app, "/nothing-here", host="127.0.0.1:5000")
    store(app)
    ask(app, "/sumer")
    store(app)
    assert found(alice, domain) == {"/sumer": 3, "/winter": 1, f"/{'x' * 100}": 1}
    assert found(alice, domain, "?limit=1") == {"/sumer": 3}
    today = datetime.now(UTC).date().isoformat()
    [row] = alice.get(f"/api/domain/{domain}/missing?limit=1").get_json()["data"]["missing"]
    assert row == {"path": "/sumer", "visits": 3, "last": today, "days": [{"date": today, "visits": 3}]}


def test_a_domain_has_a_bounded_number_of_paths_which_are_deleted_with_it(
    app: Flask, alice: Client, domain: int, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "MAX_PATHS", 3)
    factories.missing_path(sql, alice.id, domain, "/a", days=3)
    counted = []
    for paths in ("ab", "abcde", "z", "bby"):
        for path in paths:
            ask(app, f"/{path}")
        store(app)
        counted.append(found(alice, domain))
    assert counted[1:] == [
        {"/a": 3, "/b": 2, "Other": 3},
        {"/a": 3, "/b": 2, "Other": 3, "/z": 1},
        {"/b": 4, "/a": 3, "Other": 5},
    ]
    assert alice.delete(f"/api/domain/{domain}/delete").status_code == 200
    assert sql("SELECT path FROM missing_paths") == []


def test_a_flooded_domain_leaves_the_paths_of_others_their_share(
    app: Flask, alice: Client, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.features.missing_paths.paths._MAX_COUNTED", 4)
    other = alice.add("/api/domain/add", {"domain": "https://go2.example.org"})
    for path in "abcdea":
        ask(app, f"/{path}")
    for path in "yzx":
        ask(app, f"/{path}", host="go2.example.org")
    store(app)
    assert found(alice, domain) == {"/a": 2, "/b": 1, "/e": 1, "Other": 2}
    assert found(alice, other) == {"/x": 1, "/y": 1, "Other": 1}


@pytest.mark.parametrize("times", [1, 2])
def test_paths_that_are_asked_often_survive_a_flood_of_others(
    app: Flask, alice: Client, domain: int, monkeypatch: pytest.MonkeyPatch, *, times: int
) -> None:
    monkeypatch.setattr("linkmgr.features.missing_paths.paths._MAX_COUNTED", 40)
    monkeypatch.setattr(repository, "MAX_PATHS", 20)
    for number in range(150):
        for _ in range(times):
            ask(app, f"/{secrets.token_hex(4)}")
        if number % 5 == 0:
            ask(app, "/sumer")
        if number % 25 == 0:
            store(app)
    store(app)
    assert found(alice, domain)["/sumer"] > 20
    ask(app, "/winter")
    store(app)
    counted = found(alice, domain)
    assert counted["/winter"] == 1
    assert len(counted) <= 21
    assert sum(counted.values()) == 150 * times + 31


def test_what_was_counted_is_kept_while_the_database_is_away(
    app: Flask, alice: Client, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.features.missing_paths.paths._MAX_COUNTED", 3)
    counter = MissingPaths(app)
    monkeypatch.setattr(counter, "start", lambda: None)

    def count(paths: str) -> None:
        for path in paths:
            counter.add(domain, f"/{path}")

    count("aab")
    with monkeypatch.context() as away, app.app_context():
        away.setattr(repository, "run_unsynced", Mock(side_effect=psycopg2.OperationalError))
        for paths in ("ac", "de"):
            with pytest.raises(psycopg2.OperationalError):
                counter.work()
            count(paths)
    with app.app_context():
        counter.work()
        counter.work()
    assert found(alice, domain) == {"/a": 3, "/b": 1, "/e": 1, "Other": 2}


def test_a_process_stores_what_it_counted_when_it_stops(app: Flask, alice: Client, domain: int) -> None:
    counter = MissingPaths(app)
    counter.add(domain, "/sumer")
    counter.stop()
    assert found(alice, domain) == {"/sumer": 1}


def test_old_days_are_neither_listed_nor_kept(app: Flask, alice: Client, domain: int, sql: Sql) -> None:
    for days in (0, 29, repository.KEPT_DAYS + 2):
        factories.missing_path(sql, alice.id, domain, days=days)
    assert found(alice, domain) == {"/sumer": 2}
    with app.app_context():
        purge.purge()
    day = datetime.now(UTC).date() - timedelta(days=29)
    rows: list[Any] = sql("SELECT day::text FROM missing_paths WHERE path = '/sumer' ORDER BY day")
    assert [row["day"] for row in rows] == [day.isoformat(), datetime.now(UTC).date().isoformat()]


def test_the_page_of_a_domain_proposes_links(console: FlaskClient, alice: Client, domain: int, sql: Sql) -> None:
    factories.missing_path(sql, alice.id, domain, "/sumer", visits=7)
    factories.missing_path(sql, alice.id, domain, "/a/b")
    page = get(console, f"/console/domains/{domain}/edit")
    assert "Paths that visitors did not find" in page
    assert page.count("Create link") == 1
    form = get(console, f"/console/links/new?custom=sumer&domain=https://{HOST}")
    assert 'value="sumer"' in form


# --- aliases that a domain allows besides


def test_a_domain_with_wide_aliases_counts_what_could_be_one(app: Flask, alice: Client, domain: int) -> None:
    alice.put(f"/api/domain/{domain}/update", {"widealiases": True})
    for path in ("/docs/v1", "/%C3%BCber", "/u%CC%88ber", "/.env", "/a//b", "/docs/v1/qr", "/api/x", "/healthz/x"):
        ask(app, path)
    store(app)
    assert found(alice, domain) == {"/docs/v1": 1, "/\u00fcber": 2}


# --- the host of the service

OWN = "127.0.0.1:5000"


def of_service(client: Client, query: str = "") -> dict[str, int]:
    listed = client.get(f"/api/domains/missing{query}").get_json()["data"]["missing"]
    return {row["path"]: row["visits"] for row in listed}


def test_administrators_see_the_paths_of_the_host_of_the_service(
    app: Flask, admin: Client, alice: Client, domain: int
) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/", "custom": "here"})
    for path in (
        "/sumer",
        "/sumer",
        "/winter?key=secret",
        "/here",
        "/docs",
        "/login",
        "/.env",
        "/a/b",
        "/wp-login.php",
    ):
        ask(app, path, host=OWN)
    for path in ("/api/nothing", "/console/nothing", "/q/nothing", "/here/pixels"):
        ask(app, path, host=OWN)
    ask(app, "/sumer", host=OWN, method="HEAD")
    ask(app, "/sumer", host=OWN, **{"User-Agent": "Googlebot/2.1"})
    ask(app, "/lost")
    store(app)
    ask(app, "/sumer", host=OWN)
    store(app)
    assert of_service(admin) == {"/sumer": 3, "/winter": 1}
    assert of_service(admin, "?limit=1") == {"/sumer": 3}
    assert found(alice, domain) == {"/lost": 1}
    refused = alice.get("/api/domains/missing")
    assert (refused.status_code, refused.get_json()["code"]) == (403, "administrators_only")


def test_its_number_of_paths_is_bounded_likewise(
    app: Flask, admin: Client, alice: Client, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "MAX_PATHS", 3)
    for paths in ("ab", "abcde"):
        for path in paths:
            ask(app, f"/{path}", host=OWN)
        ask(app, "/kept")
        store(app)
    assert of_service(admin) == {"/a": 2, "/b": 2, "Other": 3}
    assert found(alice, domain) == {"/kept": 2}
    assert alice.delete(f"/api/domain/{domain}/delete").status_code == 200
    assert of_service(admin) == {"/a": 2, "/b": 2, "Other": 3}


def test_old_days_of_it_are_not_kept(app: Flask, admin: Client, sql: Sql) -> None:
    for days in (0, 29, repository.KEPT_DAYS + 2):
        factories.missing_path(sql, repository.OWN, repository.OWN, days=days)
    assert of_service(admin) == {"/sumer": 2}
    with app.app_context():
        purge.purge()
    assert len(sql("SELECT FROM missing_paths")) == 2


@pytest.mark.usefixtures("admin")
def test_the_page_of_the_service_proposes_links(app: Flask, sql: Sql) -> None:
    factories.missing_path(sql, repository.OWN, repository.OWN, "/sumer", visits=7)
    page = get(signed_in(app, "admin@example.com"), "/console/administration")
    assert "Paths that visitors did not find" in page
    assert 'href="/console/links/new?custom=sumer&amp;domain=http://127.0.0.1:5000"' in page


def test_a_service_without_the_feature_counts_nothing(app_with: Callable[..., Flask], sql: Sql) -> None:
    ask(app_with(features=("statistics",)), "/sumer", host=OWN)
    assert sql("SELECT FROM missing_paths") == []
