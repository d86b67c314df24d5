"""Rows of an exported account whose import waits for another host or another thread."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database import session
from linkmgr.core.outbound import fetch
from linkmgr.features.imports import job
from tests.conftest import Client
from tests.support.archives import archive
from tests.support.foreign import answering, publish, server
from tests.support.imported import import_of, send

DOMAIN = {"id": 1, "domain": "https://go.example.com"}


Run = Callable[[Client, bytes], dict[str, Any]]


@pytest.fixture
def run(app_with: Callable[..., Flask]) -> Run:
    """Import an archive into a service that checks domains."""

    def run(client: Client, content: bytes) -> dict[str, Any]:
        answer = send(client, content)
        import_id = answer.get_json()["id"]
        with app_with(domain_check="http", base_url="https://go.example.org").app_context():
            while not job.run_batch(client.id, import_id):
                pass
        found: dict[str, Any] = import_of(client, import_id)
        return found

    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the paths that were requested from go.example.com, which belongs to another server."""
    paths: list[str] = []

    def answer(request: Any) -> None:
        paths.append(request.path)
        answering(b"x")(request)

    with server(answer) as port:
        publish(monkeypatch, {"go.example.com:80": port})
        yield paths


def test_a_host_that_does_not_respond_fails_only_its_domain(
    alice: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "DEADLINE", 1.0)
    options = f"{session.STARTUP_OPTIONS} -c idle_in_transaction_session_timeout=500"
    monkeypatch.setattr(session, "STARTUP_OPTIONS", options)
    with server(lambda _: time.sleep(1.1)) as port:
        publish(monkeypatch, {"go.example.com:80": port})
        found = run(alice, archive(domains=[DOMAIN], campaigns=[{"id": 2, "name": "Summer"}]))
    assert (found["state"], found["made"], found["failed"]) == ("done", 1, 1)
    [error] = alice.get(f"/api/imports/{found['id']}/errors", headers={"Accept": "application/json"}).get_json()["data"]
    assert error["code"] == "domain_unproven"
    assert "where no web server responded in time" in error["message"]


def test_a_domain_is_checked_whatever_its_line_says(alice: Client, run: Run, asked: list[str]) -> None:
    found = run(alice, archive(domains=[DOMAIN | {"is_checked": True}, {"id": 2, "domain": "nonsense"}]))
    assert (found["state"], found["made"], found["failed"]) == ("done", 0, 2)
    assert len(asked) == 1


def test_a_domain_that_exists_is_not_checked_again(alice: Client, bob: Client, run: Run, asked: list[str]) -> None:
    alice.add("/api/domain/add", {"domain": DOMAIN["domain"]})
    found = run(alice, archive(domains=[DOMAIN, DOMAIN | {"domain": "http://go.example.com"}]))
    assert (found["state"], found["skipped"], found["failed"]) == ("done", 1, 1)
    assert alice.get(f"/api/imports/{found['id']}/errors.csv").text.count("This domain is already in use.") == 1
    assert asked == []
