"""Webhooks at their limits: large numbers, deleted rows, and unreadable secrets."""

import re
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from flask import Flask

from linkmgr.features.webhooks.events import MAX_DATA
from linkmgr.repository import domains
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import signed_in
from tests.support.receivers import URL, Deliver, Receiver, deliveries, events, fail, subscribe
from tests.support.visited import Store, Visited


@pytest.mark.parametrize("name", ["campaign", "channel", "domain"])
def test_a_webhook_of_a_deleted_row_can_still_be_changed(alice: Client, sql: Sql, name: str) -> None:
    row_id = getattr(factories, name)(sql, alice.id)
    webhook_id, _ = subscribe(alice, **{name: row_id})
    assert alice.delete(f"/api/{name}/{row_id}/delete").status_code == 200
    assert alice.put(f"/api/webhook/{webhook_id}/update", {"active": False}).status_code == 200
    refused = alice.put(f"/api/webhook/{webhook_id}/update", {name: row_id + 1})
    assert (refused.status_code, refused.get_json()["code"]) == (400, f"{name}_unknown")


def test_a_filter_accepts_no_row_of_another_user(alice: Client, bob: Client, sql: Sql) -> None:
    webhook_id, _ = subscribe(alice)
    for name in ("campaign", "channel", "domain"):
        for row_id in (getattr(factories, name)(sql, bob.id), 2**40):
            for refused in (
                alice.post("/api/webhooks", {"name": "Hook", "events": ["*"], name: row_id}),
                alice.put(f"/api/webhook/{webhook_id}/update", {name: row_id}),
            ):
                assert (refused.status_code, refused.get_json()["code"]) == (400, f"{name}_unknown")


def test_a_filter_selects_visits_and_not_only_events(
    alice: Client, sql: Sql, store: Store, receiver: Receiver, deliver: Deliver
) -> None:
    campaign = factories.campaign(sql, alice.id)
    inside = alice.add("/api/url/add", {"url": URL, "campaign": campaign})
    outside = alice.add("/api/url/add", {"url": f"{URL}?outside"})
    subscribe(alice, receiver.url, "visit", campaign=campaign)
    subscribe(alice, receiver.url.replace("/hooks", "/all"), "visit")
    store([Visited(link_id, datetime.now(UTC)) for link_id in (inside, outside, inside)])
    deliver()
    visits: dict[str, list[int]] = {"/hooks": [], "/all": []}
    for delivery in receiver.received:
        visits[delivery.path] += [visit["id"] for visit in delivery.json["data"]["visits"]]
    assert visits["/hooks"] == [inside, inside]
    assert sorted(visits["/all"]) == sorted([inside, outside, inside])
    received = [delivery.headers["webhook-id"] for delivery in receiver.received if delivery.path == "/all"]
    assert len(set(received)) == len(received)


def test_an_unreadable_secret_delays_no_other_webhook(
    alice: Client, bob: Client, sql: Sql, receiver: Receiver, deliver: Deliver
) -> None:
    broken, _ = subscribe(alice, receiver.url.replace("/hooks", "/broken"))
    subscribe(bob, receiver.url)
    sql("UPDATE webhooks SET secret_ciphertext = 'nonsense' WHERE id = %(id)s RETURNING 1", id=broken)
    for client in (alice, bob):
        client.add("/api/url/add", {"url": URL})
    deliver()
    assert [delivery.path for delivery in receiver.received] == ["/hooks"]
    [delivery] = deliveries(alice, broken)
    assert (delivery["state"], delivery["status"], delivery["attempts"]) == ("waiting", None, 1)
    assert "secret" in delivery["response"]


def test_an_event_that_cannot_be_read_delays_no_other(
    alice: Client, bob: Client, deliver: Deliver, monkeypatch: pytest.MonkeyPatch, sql: Sql
) -> None:
    """A kind that this version does not know stands for any fault in one event."""
    subscribe(alice)
    subscribe(bob)
    sql("INSERT INTO outbox (user_id, type, object_id) VALUES (%(id)s, 'novelty.created', 7) RETURNING 1", id=alice.id)
    bob.add("/api/url/add", {"url": URL})
    deliver()
    assert [event["type"] for event in events(bob)] == ["link.created"]


@pytest.mark.parametrize("action", ["retry", "test"])
def test_a_webhook_that_is_off_is_not_tested(
    alice: Client, receiver: Receiver, deliver: Deliver, action: str, sql: Sql
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": URL})
    deliver()
    [delivery] = deliveries(alice, webhook_id)
    alice.put(f"/api/webhook/{webhook_id}/update", {"active": False})
    path = f"/api/delivery/{delivery['id']}/retry" if action == "retry" else f"/api/webhook/{webhook_id}/test"
    refused = alice.post(path)
    assert (refused.status_code, refused.get_json()["code"]) == (400, "webhook_off")
    assert sql("SELECT FROM outbox UNION ALL SELECT FROM deliveries WHERE state = 'waiting'") == []


@pytest.mark.parametrize("action", ["retry", "test"])
def test_a_test_and_a_repetition_do_not_wait_for_a_failing_receiver(
    alice: Client, receiver: Receiver, deliver: Deliver, action: str
) -> None:
    webhook_id = fail(alice, receiver, deliver)
    [delivery] = deliveries(alice, webhook_id)
    receiver.status = 200
    path = f"/api/delivery/{delivery['id']}/retry" if action == "retry" else f"/api/webhook/{webhook_id}/test"
    assert alice.post(path).status_code == 200
    deliver()
    assert len(receiver.received) == 2


def test_a_webhook_with_many_deliveries_is_deleted_at_once_and_its_deliveries_later(
    alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    webhook_id, _ = subscribe(alice, "https://example.com/hooks")
    sql(
        """
        WITH added AS (
            INSERT INTO events (user_id, type, data, created)
            SELECT %(id)s, 'visit', '{}', now() FROM generate_series(1, 2000) n RETURNING number)
        INSERT INTO deliveries (webhook_id, number) SELECT %(webhook)s, number FROM added RETURNING 1
        """,
        id=alice.id,
        webhook=webhook_id,
    )
    assert alice.delete(f"/api/webhook/{webhook_id}/delete").status_code == 200
    assert alice.get(f"/api/webhook/{webhook_id}/deliveries").status_code == 404
    assert len(sql("SELECT FROM deliveries")) == 2000
    run_jobs()
    assert sql("SELECT FROM deliveries") == []


def test_the_command_shows_the_result_of_a_service_that_delivers_the_test(
    alice: Client, receiver: Receiver, make_app: Callable[..., Flask], deliver: Deliver
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.wait(0.001):
            deliver()

    receiver.before = lambda _: stopping.wait(0.3)
    service = threading.Thread(target=serve)
    service.start()
    try:
        flask = make_app().test_cli_runner()
        for _ in range(3):
            tested = flask.invoke(args=["webhooks", "test", "alice", str(webhook_id)])
            assert (tested.exit_code, tested.output) == (0, "The test event was delivered. Status 200: ok\n")
    finally:
        stopping.set()
        service.join()


@pytest.mark.parametrize("answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"])
def test_an_incomplete_response_is_a_failure(alice: Client, deliver: Deliver, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        webhook_id, _ = subscribe(alice, f"http://127.0.0.1:{listening.getsockname()[1]}/")
        alice.add("/api/url/add", {"url": URL})
        delivering = threading.Thread(target=deliver)
        delivering.start()
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)
        delivering.join()
    [delivery] = deliveries(alice, webhook_id)
    assert (delivery["state"], delivery["status"]) == ("waiting", None)
    assert delivery["response"] == "The receiver did not send a complete HTTP response."


def test_secrets_are_not_cached(alice: Client) -> None:
    added = alice.post("/api/webhooks", {"name": "Hook", "events": ["*"]})
    rotated = alice.post(f"/api/webhook/{added.get_json()['id']}/rotate", {})
    assert [answer.headers.get("Cache-Control") for answer in (added, rotated)] == ["no-store", "no-store"]


def test_fields_with_very_large_numbers_are_refused(alice: Client, app: Flask, sql: Sql) -> None:
    webhook_id, _ = subscribe(alice, "https://example.com/hooks")
    http = signed_in(app)
    number = "9" * 5000
    form = {"name": "Hook", "events": "*", "campaign": number}
    assert http.post("/console/webhooks/new", data=form).status_code in (200, 400)
    assert http.post(f"/console/webhooks/{webhook_id}/retry", data={"delivery": number}).status_code == 404
    assert http.post(f"/console/webhooks/{webhook_id}/retry", data={"delivery": "9" * 19}).status_code == 404


@pytest.mark.parametrize("name", ["campaign", "channel", "domain"])
def test_the_form_keeps_a_filter_that_is_not_among_its_choices(alice: Client, app: Flask, sql: Sql, name: str) -> None:
    row_id = getattr(factories, name)(sql, alice.id)
    webhook_id, _ = subscribe(alice, **{name: row_id})
    assert alice.delete(f"/api/{name}/{row_id}/delete").status_code == 200
    page = signed_in(app).get(f"/console/webhooks/{webhook_id}/edit").text
    assert re.search(f'<option value="{row_id}" selected>', page)


def test_a_check_is_no_change_of_a_domain(alice: Client, deliver: Deliver, sql: Sql, app: Flask) -> None:
    domain_id = factories.domain(sql, alice.id)
    subscribe(alice, "", "domain.*")
    before = alice.get(f"/api/domain/{domain_id}").headers["ETag"]
    for problem in ("The host could not be reached.", ""):
        with app.app_context():
            domains.store_check(alice.id, domain_id, problem=problem)
    deliver()
    assert events(alice) == []
    assert alice.get(f"/api/domain/{domain_id}").headers["ETag"] == before
    changed = alice.put(f"/api/domain/{domain_id}/update", {"redirectroot": URL}, headers={"If-Match": before})
    assert changed.headers["ETag"] != before


def test_a_record_that_is_too_large_lacks_its_largest_members(
    alice: Client, receiver: Receiver, deliver: Deliver
) -> None:
    subscribe(alice, receiver.url)
    devices = ("iphone", "ipad", "android", "windows", "mac", "linux", "phone", "tablet", "desktop", "samsung", "pixel")
    targets = [{"device": name, "link": f"{URL}?{'x' * 1900}"} for name in devices]
    alice.add("/api/url/add", {"url": URL, "metatitle": "Large", "devicetarget": targets})
    deliver()
    [delivery] = receiver.received
    assert len(delivery.body) <= MAX_DATA + 200
    assert delivery.json["data"]["truncated"] is True
    assert delivery.json["data"]["title"] == "Large"
