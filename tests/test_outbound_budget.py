"""Requests to other hosts: in threads of their own, after the plan was asked, and within a budget of each user."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database import jobs
from linkmgr.core.web import outbound_budget
from linkmgr.features.imports import job, requests
from tests.conftest import Client
from tests.support.archives import archive
from tests.support.codes import TEXT
from tests.support.factories import Sql
from tests.support.foreign import answering, publish, server
from tests.support.foreign_services import HOST, KEY, Start, shlink
from tests.support.imported import import_of, sale, send
from tests.support.imported import shlink as rows_of
from tests.support.repeated import under
from tests.support.targets import wait_until

DOMAINS = [{"id": number, "domain": f"https://go{number}.example.com"} for number in range(1, 6)]
BODY = {"domain": "https://go1.example.com"}


@pytest.fixture
def checking(app_with: Callable[..., Flask]) -> Flask:
    """A service that checks domains."""
    return app_with(domain_check="http")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hosts that were asked to prove that they are this service, which they are not."""
    hosts: list[str] = []

    def answer(request: Any) -> None:
        hosts.append(request.headers["Host"])
        answering(b"x")(request)

    with server(answer) as port:
        publish(monkeypatch, {f"go{number}.example.com:80": port for number in range(1, 6)})
        yield hosts


def run(app: Flask, client: Client) -> int:
    answer = send(client, archive(domains=DOMAINS)).get_json()
    assert answer["error"] == 0, answer
    import_id: int = answer["id"]
    with app.app_context():
        while not job.run_batch(client.id, import_id):
            pass
    return import_id


def test_no_host_is_asked_for_what_the_plan_refuses(
    checking: Flask, on_plan: Callable[..., Client], asked: list[str]
) -> None:
    client = on_plan(domain={"enabled": "0"})
    client.http = checking.test_client()
    found = import_of(client, run(checking, client))
    assert (found["state"], found["failed"]) == ("done", len(DOMAINS))
    refused = client.post("/api/domain/add", BODY)
    assert refused.get_json()["code"] in ("plan_limit", "plan_feature")
    assert asked == []


def test_an_import_waits_when_its_user_has_asked_too_many_hosts(
    checking: Flask, alice: Client, bob: Client, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_budget, "PER_HOUR", 3)
    with pytest.raises(jobs.Later) as later:
        run(checking, alice)
    assert 0 < later.value.seconds <= 3600
    assert len(asked) == 3
    [waiting] = alice.get("/api/imports").get_json()["data"]["imports"]
    assert (waiting["state"], waiting["read"]) == ("running", 3)
    alice.http = bob.http = checking.test_client()
    for client, code in ((alice, "fetches_limited"), (bob, "domain_unproven")):
        assert client.post("/api/domain/add", BODY).get_json()["code"] == code
    limited = alice.post("/api/qr/add", TEXT | {"logo": "http://go1.example.com/logo.png"})
    assert (limited.status_code, limited.get_json()["code"]) == (429, "fetches_limited")
    assert 0 < int(limited.headers["Retry-After"]) <= 3600
    assert len(asked) == 4


def test_a_request_under_a_key_counts_too_and_holds_no_transaction_while_a_host_answers(
    alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_budget, "PER_HOUR", 2)
    states: list[str] = []

    def answer(request: Any) -> None:
        states.extend(row["state"] for row in sql("SELECT state FROM pg_stat_activity WHERE state LIKE 'idle in%%'"))
        answering(b"no image")(request)

    with server(answer) as port:
        publish(monkeypatch, {"go1.example.com:80": port})
        body = TEXT | {"logo": "http://go1.example.com/logo.png"}
        codes = [alice.post("/api/qr/add", body, **under(f"key-{number}")).status_code for number in range(3)]
    assert (codes, states) == ([400, 400, 429], [])


def test_pages_of_a_service_have_a_budget_of_their_own(
    start_service: Start, alice: Client, run_jobs: Callable[[], None], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_budget, "PER_HOUR", 0)
    monkeypatch.setattr(outbound_budget, "PAGES_PER_HOUR", 1)
    pages = start_service(shlink)
    body = {"source": "shlink", "address": f"http://{HOST}", "token": KEY}
    import_id = alice.post("/api/imports/service", body).get_json()["id"]
    run_jobs()
    assert (import_of(alice, import_id)["state"], len(pages)) == ("running", 1)
    [waits] = sql("SELECT extract(epoch FROM due - now()) AS seconds FROM jobs")
    assert 60 < waits["seconds"] <= 3600
    assert alice.post("/api/imports/service?dry_run=1", body).status_code == 429


@pytest.mark.services
def test_imports_from_slow_services_delay_no_import_of_others(
    app: Flask, serve: Callable[..., str], alice: Client, bob: Client, sql: Sql
) -> None:
    slow: list[str] = []
    ending = threading.Event()

    def wait(request: Any) -> None:
        slow.append(request.path)
        ending.wait()

    def read(client: Client, port: int) -> int:
        with app.app_context():
            return requests.add(client.id, requests.Service("kutt", f"http://127.0.0.1:{port}", KEY), "skip")

    with ExitStack() as stack:
        port = stack.enter_context(server(wait))
        other = stack.enter_context(server(answering(b'{"data": [], "total": 0}')))
        stack.callback(ending.set)
        serve("--workers", "1", base_url="https://go.example.org")
        begun = [read(alice, port) for _ in range(3)]
        wait_until(lambda: slow)
        own = [send(bob, rows_of(sale("row"))).get_json()["id"], read(bob, other)]
        wait_until(lambda: [import_of(bob, number)["state"] for number in own] == ["done", "done"])
        assert len(slow) == 1, "the first still waits"
        for number in begun:
            alice.delete(f"/api/imports/{number}")
