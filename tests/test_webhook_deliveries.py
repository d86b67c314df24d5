"""Deliveries of webhooks: signatures, repetitions, and receivers that fail or are slow."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from flask import Flask
from standardwebhooks import WebhookVerificationError

from linkmgr.features.webhooks import worker
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.receivers import URL, Deliver, Receiver, deliveries, events, fail, make_due, subscribe


def test_the_public_library_verifies_a_delivery_and_refuses_a_changed_one(
    alice: Client, receiver: Receiver, deliver: Deliver
) -> None:
    _, secret = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": URL})
    deliver()
    [delivery] = receiver.received
    assert delivery.verify(secret) == delivery.json
    tampered = [
        delivery._replace(body=delivery.body.replace(b"example.com", b"example.org")),
        delivery._replace(headers=delivery.headers | {"webhook-id": "msg_0"}),
        delivery._replace(headers=delivery.headers | {"webhook-timestamp": "1"}),
        delivery._replace(headers=delivery.headers | {"webhook-signature": "v1,AAAA"}),
        delivery._replace(headers={k: v for k, v in delivery.headers.items() if k != "webhook-signature"}),
    ]
    for changed in tampered:
        with pytest.raises(WebhookVerificationError):
            changed.verify(secret)


def test_after_a_rotation_both_secrets_verify_until_the_overlap_ends(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    webhook_id, old = subscribe(alice, receiver.url)
    rotated = alice.post(f"/api/webhook/{webhook_id}/rotate", {"overlap": 3600})
    new, read = rotated.get_json()["secret"], alice.get(f"/api/webhook/{webhook_id}")
    assert (rotated.get_json()["record"], rotated.headers["ETag"]) == (read.get_json()["record"], read.headers["ETag"])
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert receiver.received[0].verify(old) == receiver.received[0].verify(new)
    sql("UPDATE webhooks SET previous_until = now() RETURNING 1")
    alice.add("/api/url/add", {"url": f"{URL}?2"})
    deliver()
    assert receiver.received[1].verify(new)
    with pytest.raises(WebhookVerificationError):
        receiver.received[1].verify(old)


def test_a_delivery_shows_its_event_and_its_response(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    receiver.status, receiver.answer = 201, b"thank you"
    link_id = alice.add("/api/url/add", {"url": URL})
    deliver()
    [delivery] = deliveries(alice, webhook_id)
    assert (delivery["state"], delivery["status"], delivery["response"]) == ("delivered", 201, "thank you")
    assert (delivery["type"], delivery["data"]["id"], delivery["attempts"]) == ("link.created", link_id, 1)
    assert delivery["message"] == receiver.received[0].headers["webhook-id"]


def test_a_failed_delivery_is_repeated_with_the_same_id_on_schedule(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    webhook_id = fail(alice, receiver, deliver)
    for attempt, delay in enumerate(worker.SCHEDULE, 1):
        [delivery] = deliveries(alice, webhook_id)
        assert (delivery["state"], delivery["attempts"], delivery["status"]) == ("waiting", attempt, 500)
        [due] = sql("SELECT extract(epoch FROM due - attempted)::float8 AS seconds FROM deliveries")
        assert 0.9 * delay - 1 <= due["seconds"] <= 1.1 * delay + 60
        deliver()  # it is not due
        assert len(receiver.received) == attempt
        make_due(sql)
        deliver()
    assert deliveries(alice, webhook_id)[0]["state"] == "failed"
    assert len({delivery.headers["webhook-id"] for delivery in receiver.received}) == 1

    receiver.status = 200
    assert alice.post(f"/api/delivery/{deliveries(alice, webhook_id)[0]['id']}/retry").status_code == 200
    sql("UPDATE webhooks SET paused_until = NULL RETURNING 1")
    deliver()
    assert deliveries(alice, webhook_id)[0]["state"] == "delivered"


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, "120", 120),
        (503, "{date}", 300),
        (500, "999999999999", 3600),
        (429, "Fri, 01 Jan 1999 00:00:00 GMT", 5),
        (429, "soon", 5),
    ],
)
def test_a_receiver_is_left_alone_for_as_long_as_it_asks(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql, *, status: int, header: str, seconds: int
) -> None:
    in_five_minutes = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    receiver.headers = {"Retry-After": header.format(date=in_five_minutes)}
    webhook_id, _ = subscribe(alice, receiver.url)
    receiver.status = status
    alice.add("/api/url/add", {"url": URL})
    deliver()
    [due] = sql("SELECT extract(epoch FROM due - now())::integer AS seconds FROM deliveries")
    assert 0.9 * seconds - 2 <= due["seconds"] <= 1.1 * seconds
    make_due(sql)
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert len(receiver.received) == 1 or seconds == 5
    receiver.status = 200
    alice.post(f"/api/delivery/{deliveries(alice, webhook_id)[-1]['id']}/retry")
    deliver()
    assert deliveries(alice, webhook_id)[-1]["state"] == "delivered"


@pytest.mark.parametrize("status", [301, 400, 404, 503])
def test_only_2xx_is_a_success_and_redirects_are_not_followed(
    alice: Client, receiver: Receiver, deliver: Deliver, status: int
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    receiver.status, receiver.headers = status, {"Location": receiver.url + "/other"}
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert [delivery.path for delivery in receiver.received] == ["/hooks"]
    assert deliveries(alice, webhook_id)[0]["state"] == "waiting"


def test_410_turns_a_webhook_off_and_tells_why(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    receiver.status = 410
    alice.add("/api/url/add", {"url": URL})
    deliver()
    webhook = alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]
    assert (webhook["active"], webhook["reason"]) == (False, "The receiver answered 410 Gone.")
    alice.put(f"/api/webhook/{webhook_id}/update", {"active": True})
    webhook = alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]
    assert (webhook["active"], webhook["reason"]) == (True, "")


def test_deliveries_of_a_webhook_that_is_off_wait_until_it_is_on_again(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    webhook_id = fail(alice, receiver, deliver)
    receiver.status = 410
    alice.add("/api/url/add", {"url": f"{URL}?2"})
    make_due(sql)
    deliver()
    off = deliveries(alice, webhook_id)
    assert {(delivery["state"], delivery["due"]) for delivery in off} == {("off", None)}
    retry = alice.post(f"/api/delivery/{off[0]['id']}/retry")
    assert (retry.status_code, retry.get_json()["code"]) == (400, "webhook_off")

    receiver.status = 200
    alice.put(f"/api/webhook/{webhook_id}/update", {"active": True})
    assert {delivery["state"] for delivery in deliveries(alice, webhook_id)} == {"waiting"}
    assert alice.post(f"/api/delivery/{off[0]['id']}/retry").status_code == 200
    make_due(sql)
    deliver()
    assert {delivery["state"] for delivery in deliveries(alice, webhook_id)} == {"delivered"}


def test_a_delivery_of_a_webhook_without_a_url_is_not_sent_again(
    alice: Client, receiver: Receiver, deliver: Deliver
) -> None:
    webhook_id = fail(alice, receiver, deliver)
    alice.put(f"/api/webhook/{webhook_id}/update", {"url": ""})
    [delivery] = deliveries(alice, webhook_id)
    assert (delivery["state"], delivery["due"]) == ("off", None)
    retry = alice.post(f"/api/delivery/{delivery['id']}/retry")
    assert (retry.status_code, retry.get_json()["code"]) == (400, "webhook_without_url")
    assert retry.get_json()["message"] == "This webhook has no URL, so nothing is sent. Add a URL, then try again."
    assert deliveries(alice, webhook_id) == [delivery]
    test = alice.post(f"/api/webhook/{webhook_id}/test")
    assert test.get_json()["message"] == "A test event will be recorded within seconds. This webhook has no URL."


def test_a_week_without_success_turns_a_webhook_off(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    webhook_id = fail(alice, receiver, deliver)
    sql("UPDATE webhooks SET failing_since = now() - interval '8 days' RETURNING 1")
    make_due(sql)
    deliver()
    webhook = alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]
    assert (webhook["active"], webhook["reason"]) == (False, "No delivery succeeded for a week.")


@pytest.mark.parametrize("action", ["none", "test", "retry"])
def test_a_failure_after_days_without_attempts_does_not_turn_a_webhook_off(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql, action: str
) -> None:
    webhook_id = fail(alice, receiver, deliver)
    sql(
        "UPDATE webhooks SET failing_since = failing_since - interval '20 days',"
        " paused_until = paused_until - interval '16 days' RETURNING 1"
    )
    if action == "none":
        alice.add("/api/url/add", {"url": f"{URL}?2"})
    else:
        [delivery] = deliveries(alice, webhook_id)
        path = f"/api/delivery/{delivery['id']}/retry" if action == "retry" else f"/api/webhook/{webhook_id}/test"
        assert alice.post(path).status_code == 200
    deliver()
    assert len(receiver.received) == 2
    assert alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]["active"] is True


def test_a_failing_receiver_gets_one_delivery_at_a_time(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    fail(alice, receiver, deliver)
    for number in range(20):
        alice.add("/api/url/add", {"url": f"{URL}?{number}"})
    deliver()
    assert len(receiver.received) == 1
    sql("UPDATE webhooks SET paused_until = NULL RETURNING 1")
    deliver()
    assert len(receiver.received) == 2
    receiver.status = 200
    make_due(sql)
    deliver()
    assert len(receiver.received) == 23


def test_a_slow_receiver_does_not_delay_others(
    alice: Client, bob: Client, receiver: Receiver, deliver: Deliver
) -> None:
    """The slow receiver waits until the other one has got all of its events."""
    subscribe(alice, receiver.url)
    subscribe(bob, receiver.url.replace("/hooks", "/fast"))
    for number in range(50):
        alice.add("/api/url/add", {"url": f"{URL}?{number}"})
    for number in range(20):
        bob.add("/api/url/add", {"url": f"{URL}?{number}"})
    complete = threading.Event()

    def wait(path: str) -> None:
        if path == "/hooks":
            assert complete.wait(60)
        elif sum(delivery.path == "/fast" for delivery in receiver.received) == 19:
            complete.set()

    receiver.before = wait
    deliver()
    assert len(receiver.received) == 70


def test_a_loopback_address_is_refused_unless_a_setting_allows_it(
    alice: Client, receiver: Receiver, make_app: Callable[..., Flask]
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": URL})
    with make_app(private_networks="").app_context():
        worker.Dispatcher().run(threading.Event())
    assert not receiver.received
    [delivery] = deliveries(alice, webhook_id)
    assert (delivery["status"], delivery["state"]) == (None, "waiting")
    assert "public IP address" in delivery["response"]


def test_several_processes_deliver_each_event_once_and_number_them_in_order(
    alice: Client, receiver: Receiver, make_app: Callable[..., Flask]
) -> None:
    subscribe(alice, receiver.url, "link.*")
    links = [alice.add("/api/url/add", {"url": f"{URL}?{number}"}) for number in range(60)]
    apps = [make_app() for _ in range(3)]

    def run(app: Flask) -> None:
        with app.app_context():
            worker.Dispatcher().run(threading.Event())

    threads = [threading.Thread(target=run, args=(app,)) for app in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(delivery.json["data"]["id"] for delivery in receiver.received) == links
    assert [event["data"]["id"] for event in events(alice, "limit=100")] == links
