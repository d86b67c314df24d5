"""/api/webhooks: the webhooks themselves, and the commands."""

import re
import threading
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.features.webhooks.schema import TYPES
from linkmgr.features.webhooks.worker import Dispatcher
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.keyring import Make
from tests.support.pages import signed_in
from tests.support.races import during
from tests.support.receivers import Deliver, Receiver, deliveries, fail, make_due, subscribe

FOREIGN = "https://go.example.org"


def test_a_test_event_goes_to_the_tested_webhook_only(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    tested, _ = subscribe(alice, receiver.url, "channel.*")
    other, _ = subscribe(alice, receiver.url, "*")
    assert alice.post(f"/api/webhook/{tested}/test").status_code == 200
    deliver()
    assert receiver.types == ["webhook.test"]
    assert len(deliveries(alice, tested)) == 1
    assert deliveries(alice, other) == []


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"events": ["link.moved"]}, "events must not contain 'link.moved'. Possible values: *, answer.*, "),
        ({"campaign": 999}, "campaign must be the id of one of your campaigns"),
    ],
)
def test_an_invalid_webhook_is_refused(alice: Client, members: dict[str, Any], problem: str) -> None:
    answer = alice.post("/api/webhooks", {"name": "Hook", "events": ["*"]} | members)
    assert answer.status_code == 400
    assert answer.get_json()["message"].startswith(problem)
    assert alice.get("/api/webhooks").get_json()["data"]["result"] == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://0.0.0.0/",
        "http://10.0.0.1:22/",
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[fd00::1]/",
        "http://localhost/",
        "https://app.localhost./",
        "http://8.8.8.8:22/",
    ],
)
def test_a_url_that_is_never_called_is_refused(app_with: Callable[..., Flask], alice: Client, url: str) -> None:
    client = Client(app_with(private_networks="192.168.0.0/16").test_client(), alice.key)
    webhook_id, _ = subscribe(client, "http://192.168.0.1:22/")
    for answer in (
        client.post("/api/webhooks", {"name": "Hook", "url": url, "events": ["*"]}),
        client.put(f"/api/webhook/{webhook_id}/update", {"url": url}),
    ):
        assert (answer.status_code, answer.get_json()["message"]) == (
            400,
            "url must not contain an IP address or port that webhooks do not call. Use a public IP address and port 80"
            " or 443, or ask an administrator to add the network to LINKMGR_PRIVATE_NETWORKS.",
        )
    assert client.get("/api/webhooks").get_json()["data"]["webhooks"][0]["url"] == "http://192.168.0.1:22/"


@pytest.mark.parametrize(
    ("networks", "url"),
    [
        ("", "http://8.8.8.8/"),
        ("", "https://[2606:4700::1111]/"),
        ("", "https://internal.example.com/"),  # which may resolve to a public IP address when an event is sent
        ("127.0.0.0/8", "http://localhost:8080/"),
        ("::1", "http://localhost:8080/"),
        ("10.0.0.0/8,fd00::/8", "http://[fd00::1]:22/"),
    ],
)
def test_a_url_that_may_be_called_is_accepted(
    app_with: Callable[..., Flask], alice: Client, networks: str, url: str
) -> None:
    subscribe(Client(app_with(private_networks=networks).test_client(), alice.key), url)


@pytest.mark.parametrize(("for_all", "received"), [("0", ["admin"]), ("1", ["admin", "alice"])])
def test_private_networks_are_for_administrators_unless_a_setting_opens_them_to_all(
    *,
    app_with: Callable[..., Flask],
    alice: Client,
    admin: Client,
    receiver: Receiver,
    for_all: str,
    received: list[str],
) -> None:
    subscribe(alice, f"{receiver.url}/alice")
    subscribe(admin, f"{receiver.url}/admin")
    for client in (alice, admin):
        client.add("/api/url/add", {"url": "https://example.com"})
    service = app_with(private_networks="127.0.0.0/8", private_networks_for_all=for_all)
    with service.app_context():
        Dispatcher().run(threading.Event())
    assert sorted({each.path.rpartition("/")[2] for each in receiver.received}) == received
    body = {"name": "Hook", "url": f"{receiver.url}/new", "events": ["*"]}
    for client in (alice, admin):
        answer = Client(service.test_client(), client.key).post("/api/webhooks", body)
        assert answer.status_code == (200 if client is admin or for_all == "1" else 400)
    source = {"source": "shlink", "address": f"{receiver.url}", "token": "token"}
    foreign = app_with(private_networks="127.0.0.0/8", private_networks_for_all=for_all, base_url=FOREIGN)
    for client in (alice, admin):
        answer = Client(foreign.test_client(), client.key).post(
            "/api/imports/service?dry_run=1", source, base_url=FOREIGN
        )
        assert ("is not allowed" in answer.text) == (client is alice and for_all == "0")


def test_a_stored_url_can_be_sent_back_when_its_network_is_no_longer_allowed(
    app_with: Callable[..., Flask], alice: Client
) -> None:
    webhook_id, _ = subscribe(alice, "http://127.0.0.1/")
    client = Client(app_with(private_networks="").test_client(), alice.key)
    record = client.get(f"/api/webhook/{webhook_id}").get_json()["data"] | {"name": "Renamed"}
    names = ("name", "url", "events", "active")
    answer = client.put(f"/api/webhook/{webhook_id}/update", {name: record[name] for name in names})
    assert (answer.status_code, answer.get_json()["data"]["name"]) == (200, "Renamed")


def test_a_user_has_at_most_20_webhooks(alice: Client) -> None:
    for _ in range(20):
        subscribe(alice)
    answer = alice.post("/api/webhooks", {"name": "Hook", "events": ["*"]})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "webhooks_full")


def test_a_webhook_can_be_created_turned_off(alice: Client) -> None:
    for active in (False, True):
        webhook_id, _ = subscribe(alice, active=active)
        record = alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]
        assert record["active"] is active
        copy = alice.post("/api/webhooks", record).get_json()
        assert "warnings" not in copy
        assert alice.get(f"/api/webhook/{copy['id']}").get_json()["data"]["active"] is active
    webhook_id, _ = subscribe(alice, active=None)
    assert alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]["active"] is True


def test_the_secret_is_not_readable_later(alice: Client, sql: Sql) -> None:
    webhook_id, secret = subscribe(alice)
    assert secret not in alice.get(f"/api/webhook/{webhook_id}").text
    [stored] = sql("SELECT webhooks::text AS text FROM webhooks")
    assert secret not in stored["text"]


def test_every_type_can_be_subscribed_to(admin: Client) -> None:
    subscribe(admin, "", *TYPES)


@pytest.mark.parametrize("refused", ["user.created", "user.deleted", "user.*"])
def test_events_of_users_are_for_administrators_only(
    alice: Client, admin: Client, make_key: Make, refused: str
) -> None:
    for client in (alice, make_key(alice)):
        webhook_id, _ = subscribe(client, "", "*")
        for answer in (
            client.post("/api/webhooks", {"name": "Hook", "events": ["link.*", refused]}),
            client.put(f"/api/webhook/{webhook_id}/update", {"events": ["link.*", refused]}),
        ):
            message = f"events must not contain '{refused}', which only administrators receive. Remove it."
            assert (answer.status_code, answer.get_json()["message"]) == (400, message)
        assert client.get(f"/api/webhook/{webhook_id}").get_json()["data"]["events"] == ["*"]
    subscribe(make_key(admin, "webhooks:write", "admin"), "", refused)


def test_the_console_offers_events_of_users_to_administrators_only(app: Flask, alice: Client, admin: Client) -> None:
    form = {"name": "Hook", "events": "user.created"}
    for username, status in (("alice", 400), ("admin", 200)):
        browser = signed_in(app, f"{username}@example.com")
        assert ('value="user.created"' in browser.get("/console/webhooks/new").text) is (status == 200)
        answer = browser.post("/console/webhooks/new", data=form)
        assert answer.status_code == status
        assert ("Events must not contain &#39;user.created&#39;" in answer.text) is (status == 400)
    assert admin.get("/api/webhooks").get_json()["data"]["webhooks"][0]["active"] is True


def test_a_form_without_scripts_drops_events_that_a_pattern_covers(app: Flask, alice: Client) -> None:
    sent = {"name": "Hook", "events": ["link.created", "link.*", "qr.created"]}
    signed_in(app).post("/console/webhooks/new", data=sent)
    assert alice.get("/api/webhooks").get_json()["data"]["webhooks"][0]["events"] == ["link.*", "qr.created"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"url": ""}, "This webhook has no URL"), ({"active": False}, "This webhook is turned off")],
)
def test_the_console_says_why_nothing_is_sent_again(
    *, app: Flask, alice: Client, receiver: Receiver, deliver: Deliver, change: dict[str, Any], sentence: str
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": "https://example.com/"})
    deliver()
    [delivery] = deliveries(alice, webhook_id)
    browser, path = signed_in(app), f"/console/webhooks/{webhook_id}"
    alice.put(f"/api/webhook/{webhook_id}/update", change)  # while its page is open
    for action, form in (("retry", {"delivery": str(delivery["id"])}), ("test", {})):
        answer = browser.post(f"{path}/{action}", data=form)
        assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (303, path)
        page = browser.get(path).text
        assert sentence in page
        assert "again within seconds" not in page
        assert "will be delivered" not in page


def test_the_console_says_since_when_deliveries_fail(
    app: Flask, alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    path = f"/console/webhooks/{fail(alice, receiver, deliver)}"
    assert re.search("Deliveries have failed since [A-Z][a-z]{2} [0-9]", signed_in(app).get(path).text)
    assert ">failing</span>" in signed_in(app).get("/console/webhooks").text
    receiver.status = 200
    make_due(sql)
    deliver()
    assert "Deliveries have failed" not in signed_in(app).get(path).text


def test_the_form_that_replaces_the_secret_works_once(
    app: Flask, alice: Client, receiver: Receiver, deliver: Deliver, raw: psycopg2.extensions.connection
) -> None:
    webhook_id, old = subscribe(alice, receiver.url)
    browser, path = signed_in(app), f"/console/webhooks/{webhook_id}"

    def form(page: str) -> dict[str, str]:
        return {"version": re.findall('name="version" value="([^"]*)"', page)[0]}

    opened = form(browser.get(path).text)
    shown = browser.post(f"{path}/secret", data=opened)
    [new] = re.findall('id="secret">([^<]+)<', shown.text)
    again = browser.post(f"{path}/secret", data=opened)
    assert (again.status_code, 'id="secret"' in again.text) == (412, False)
    assert "The secret has been replaced since you opened this page, and was not replaced again." in again.text
    alice.add("/api/url/add", {"url": "https://example.com/"})
    deliver()
    assert receiver.received[0].verify(old) == receiver.received[0].verify(new)
    assert form(again.text) == form(shown.text)
    # at the same time
    other = f"UPDATE webhooks SET secret_ciphertext = 'another' WHERE id = {webhook_id}"
    assert during(raw, other, lambda: browser.post(f"{path}/secret", data=form(again.text))).status_code == 412
    assert browser.post(f"{path}/secret", data=form(browser.get(path).text)).status_code == 200


def test_webhooks_are_listed_and_tested(alice: Client, receiver: Receiver, app_with: Callable[..., Flask]) -> None:
    flask = app_with().test_cli_runner()
    webhook_id, _ = subscribe(alice, receiver.url, "link.*")
    listed = flask.invoke(args=["webhooks", "list", "alice"]).output.splitlines()
    assert listed[1].split() == [str(webhook_id), "Hook", "active", "link.*", receiver.url]

    tested = flask.invoke(args=["webhooks", "test", "alice", str(webhook_id)])
    assert (tested.exit_code, tested.output) == (0, "The test event was delivered. Status 200: ok\n")
    receiver.status = 500
    failed = flask.invoke(args=["webhooks", "test", "alice", str(webhook_id)])
    assert failed.exit_code == 1
    assert "The test event was not delivered. Status 500: ok" in failed.output
    assert "has no webhook with id 99" in flask.invoke(args=["webhooks", "test", "alice", "99"]).output
    silent, _ = subscribe(alice)
    assert "has no URL" in flask.invoke(args=["webhooks", "test", "alice", str(silent)]).output
