"""Webhooks: their events, deliveries, signatures, repetitions and limits."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from standardwebhooks import WebhookVerificationError

from linkmgr.events import worker
from linkmgr.events.records import MAX_DATA
from linkmgr.fields.webhooks import KINDS, TYPES
from linkmgr.repository import outbox
from tests import factories
from tests.conftest import Client
from tests.factories import Sql
from tests.receivers import Receiver
from tests.visited import Store, Visited

URL = "https://example.com/page"
Deliver = Callable[[], None]


def subscribe(client: Client, url: str = "", *events: str, **members: Any) -> tuple[int, str]:
    """Add a webhook. Return its id and its secret."""
    answer = client.post("/api/webhooks", {"name": "Hook", "url": url, "events": list(events or ["*"])} | members)
    assert answer.status_code == 200, answer.text
    added = answer.get_json()
    return added["id"], added["secret"]


def deliveries(client: Client, webhook_id: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/webhook/{webhook_id}/deliveries").get_json()["data"]["deliveries"]
    return found


def events(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/events?{query}").get_json()["data"]["events"]
    return found


def make_due(sql: Sql) -> None:
    """Let the time until the next attempt pass."""
    sql("UPDATE deliveries SET due = now() WHERE state = 'waiting' RETURNING 1")
    sql("UPDATE webhooks SET paused_until = NULL RETURNING 1")


def test_a_created_link_is_delivered_with_its_record(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    subscribe(alice, receiver.url)
    link_id = alice.add("/api/url/add", {"url": URL, "custom": "summer"})
    deliver()
    [delivery] = receiver.received
    assert delivery.json["type"] == "link.created"
    assert delivery.json["data"] == alice.get(f"/api/url/{link_id}").get_json()["details"]
    assert datetime.fromisoformat(delivery.json["timestamp"]) > datetime.now(UTC) - timedelta(minutes=1)


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
    new = alice.post(f"/api/webhook/{webhook_id}/rotate", {"overlap": 3600}).get_json()["secret"]
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert receiver.received[0].verify(old) == receiver.received[0].verify(new)
    sql("UPDATE webhooks SET previous_until = now() RETURNING 1")
    alice.add("/api/url/add", {"url": f"{URL}?2"})
    deliver()
    assert receiver.received[1].verify(new)
    with pytest.raises(WebhookVerificationError):
        receiver.received[1].verify(old)


CREATED = {
    "link": ("/api/url/add", {"url": URL}, "/api/url/{}"),
    "qr": ("/api/qr/add", {"type": "text", "data": "Hello"}, "/api/qr/{}"),
    "campaign": ("/api/campaign/add", {"name": "Summer"}, "/api/campaign/{}"),
    "channel": ("/api/channel/add", {"name": "News"}, "/api/channel/{}"),
    "bio": ("/api/bio/add", {"alias": "dana", "name": "Dana"}, "/api/bio/{}"),
    "domain": ("/api/domain/add", {"domain": "https://go.example.com"}, "/api/domain/{}"),
    "splash": ("/api/splash/add", {"name": "Launch"}, "/api/splash/{}"),
    "overlay": ("/api/overlay/add", {"type": "message", "name": "Sale", "message": "Now"}, "/api/overlay/{}"),
    "pixel": ("/api/pixel/add", {"type": "gtmpixel", "name": "Shop", "tag": "GTM-1"}, "/api/pixel/{}"),
}
CHANGES = {
    "link": {"metatitle": "New"}, "qr": {"data": "Hi"}, "campaign": {"name": "Winter"}, "channel": {"name": "Old"},
    "bio": {"name": "Dan"}, "domain": {"redirectroot": URL}, "splash": {"name": "Start"}, "overlay": {"name": "Buy"},
    "pixel": {"tag": "GTM-2"},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_row_has_events_for_its_changes(alice: Client, deliver: Deliver, kind: str) -> None:
    add, members, path = CREATED[kind]
    subscribe(alice, "", f"{kind}.*")
    row_id = alice.add(add, members)
    deliver()
    assert alice.put(f"{path.format(row_id)}/update", CHANGES[kind]).status_code == 200
    answer = alice.get(path.format(row_id)).get_json()
    deliver()
    assert alice.delete(f"{path.format(row_id)}/delete").status_code == 200
    deliver()
    created, changed, deleted = events(alice)
    assert [event["type"] for event in (created, changed, deleted)] == [
        f"{kind}.created", f"{kind}.updated", f"{kind}.deleted"
    ]  # fmt: skip
    assert {event["data"]["id"] for event in (created, changed, deleted)} == {row_id}
    assert changed["data"] == answer.get("details", answer["data"])
    assert not {"user_id", "password_hash"} & deleted["data"].keys()


def test_a_refused_change_has_no_event(alice: Client, deliver: Deliver) -> None:
    subscribe(alice)
    alice.add("/api/url/add", {"url": URL, "custom": "summer"})
    assert alice.post("/api/url/add", {"url": URL, "custom": "summer"}).status_code == 400
    assert alice.put("/api/url/999/update", {"metatitle": "x"}).status_code == 404
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.created"]


def test_adding_the_same_plain_link_again_is_no_change(alice: Client, deliver: Deliver) -> None:
    subscribe(alice)
    for _ in range(3):
        alice.add("/api/url/add", {"url": URL})
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.created"]


def test_an_event_goes_only_to_its_owner(alice: Client, bob: Client, receiver: Receiver, deliver: Deliver) -> None:
    subscribe(alice, receiver.url)
    subscribe(bob)
    bob.add("/api/url/add", {"url": URL})
    deliver()
    assert not receiver.received
    assert events(alice) == []
    assert len(events(bob)) == 1


def test_without_a_subscription_nothing_is_recorded(alice: Client, bob: Client, sql: Sql, deliver: Deliver) -> None:
    subscribe(bob, "", "channel.*")
    subscribe(alice, "", "campaign.*")
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert sql("SELECT FROM events UNION ALL SELECT FROM outbox") == []


def test_a_webhook_that_is_off_gets_nothing(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.put(f"/api/webhook/{webhook_id}/update", {"active": False})
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert not receiver.received
    assert events(alice) == []


def test_filters_select_the_links_and_visits_of_a_row(alice: Client, sql: Sql, store: Store, deliver: Deliver) -> None:
    for name, make in (
        ("campaign", factories.campaign), ("channel", factories.channel), ("domain", factories.domain)
    ):  # fmt: skip
        row_id = make(sql, alice.id)
        webhook_id, _ = subscribe(alice, "", "link.created", "visit", **{name: row_id})
        value: Any = row_id
        if name == "domain":
            value = alice.get(f"/api/domain/{row_id}").get_json()["data"]["domain"]
        inside = alice.add("/api/url/add", {"url": f"{URL}?{name}", name: value})
        outside = alice.add("/api/url/add", {"url": f"{URL}?other{name}"})
        store([Visited(outside, datetime.now(UTC))])
        deliver()
        store([Visited(inside, datetime.now(UTC))])
        deliver()
        after = max((event["id"] for event in events(alice)), default=0)
        created, visited = events(alice)[-2:]
        assert (created["type"], created["data"]["id"]) == ("link.created", inside)
        assert visited["data"]["visits"][0]["id"] == inside
        assert len(events(alice, f"after={after - 2}")) == 2
        alice.delete(f"/api/webhook/{webhook_id}/delete")


def test_visits_are_gathered_and_carry_no_address(
    alice: Client, store: Store, sql: Sql, receiver: Receiver, deliver: Deliver
) -> None:
    subscribe(alice, receiver.url, "visit", "scan")
    link_id, code = factories.link(sql, alice.id), factories.qr(sql, alice.id)
    now = datetime.now(UTC)
    store(
        [Visited(link_id, now, referrer="r" * 250, city="c" * 250) for _ in range(90)]
        + [Visited(code, now), Visited(link_id, now, bot=True), Visited(link_id, now - timedelta(days=2))]
    )
    deliver()
    visits = [delivery.json for delivery in receiver.received if delivery.json["type"] == "visit"]
    assert sorted(len(event["data"]["visits"]) for event in visits) == [10, 40, 40]
    assert all(len(delivery.body) < 20_000 for delivery in receiver.received)
    [scan] = [delivery.json for delivery in receiver.received if delivery.json["type"] == "scan"]
    [visit] = scan["data"]["visits"]
    assert visit.keys() == {
        "id", "shorturl", "time", "country", "city", "referrer", "browser", "os", "device", "language"
    }  # fmt: skip
    assert visit["shorturl"] == alice.get(f"/api/qr/{code}").get_json()["details"]["link"]


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


def test_an_expired_link_is_announced_once(alice: Client, sql: Sql, deliver: Deliver, app: Flask) -> None:
    subscribe(alice, "", "link.expired")
    link_id = alice.add("/api/url/add", {"url": URL, "expiry": "2030-01-01 00:00:00"})
    sql("UPDATE links SET expires = now() - interval '1 minute' RETURNING 1")
    sql("UPDATE expiry_clock SET announced = now() - interval '2 minutes' RETURNING 1")
    for _ in range(2):
        with app.app_context():
            outbox.announce_expired()
        deliver()
    assert [(event["type"], event["data"]["id"]) for event in events(alice)] == [("link.expired", link_id)]


def test_an_answer_to_an_overlay_is_an_event(alice: Client, sql: Sql, deliver: Deliver) -> None:
    subscribe(alice, "", "answer.received")
    overlay_id = factories.overlay(sql, alice.id)
    answer_id = factories.answer(sql, alice.id)
    deliver()
    [event] = events(alice)
    assert (event["data"]["id"], event["data"]["overlay"]) == (answer_id, overlay_id)
    assert event["data"]["answer"] == {"email": "visitor@example.com"}


def test_the_end_of_an_import_is_an_event(alice: Client, sql: Sql, deliver: Deliver) -> None:
    subscribe(alice, "", "import.finished")
    import_id = factories.an_import(sql, alice.id)
    for state in ("running", "done"):
        sql("UPDATE imports SET state = %(state)s RETURNING 1", state=state)
    deliver()
    [event] = events(alice)
    assert event["data"] == alice.get(f"/api/imports/{import_id}").get_json()["data"]


def test_the_last_row_that_a_plan_allows_is_announced(alice: Client, sql: Sql, deliver: Deliver) -> None:
    sql("""UPDATE plans SET limits = jsonb_set(limits::jsonb, '{links}', '2') WHERE name = 'Business' RETURNING 1""")
    try:
        subscribe(alice, "", "plan.limit_reached")
        for number in range(2):
            alice.add("/api/url/add", {"url": f"{URL}?{number}"})
        assert alice.post("/api/url/add", {"url": f"{URL}?3"}).status_code == 400
    finally:
        sql("UPDATE plans SET limits = jsonb_set(limits::jsonb, '{links}', '0') WHERE name = 'Business' RETURNING 1")
    deliver()
    assert [event["data"] for event in events(alice)] == [{"resource": "links", "limit": 2}]


def test_administrators_learn_of_new_and_deleted_users(admin: Client, alice: Client, deliver: Deliver) -> None:
    subscribe(admin, "", "user.*")
    subscribe(alice, "", "*")
    new = {"username": "carol", "email": "carol@example.com", "password": "secret"}
    user_id = admin.post("/api/user/add", new).get_json()["data"]["id"]
    assert admin.delete(f"/api/user/{user_id}/delete").status_code == 200
    deliver()
    assert [event["type"] for event in events(admin)] == ["user.created", "user.deleted"]
    assert events(admin)[1]["data"] == {"id": user_id, "username": "carol", "email": "carol@example.com"}
    assert events(alice) == []


def test_a_test_event_goes_to_the_tested_webhook_only(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    tested, _ = subscribe(alice, receiver.url, "channel.*")
    other, _ = subscribe(alice, receiver.url, "*")
    assert alice.post(f"/api/webhook/{tested}/test").status_code == 200
    deliver()
    assert receiver.types == ["webhook.test"]
    assert len(deliveries(alice, tested)) == 1
    assert deliveries(alice, other) == []


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
    webhook_id, _ = subscribe(alice, receiver.url)
    receiver.status = 500
    alice.add("/api/url/add", {"url": URL})
    deliver()
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


def test_a_week_without_success_turns_a_webhook_off(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    receiver.status = 500
    alice.add("/api/url/add", {"url": URL})
    deliver()
    sql("UPDATE webhooks SET failing_since = now() - interval '8 days' RETURNING 1")
    make_due(sql)
    deliver()
    webhook = alice.get(f"/api/webhook/{webhook_id}").get_json()["data"]
    assert (webhook["active"], webhook["reason"]) == (False, "No delivery succeeded for a week.")


def test_a_failing_receiver_gets_one_delivery_at_a_time(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    subscribe(alice, receiver.url)
    receiver.status = 500
    alice.add("/api/url/add", {"url": URL})
    deliver()
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
            assert complete.wait(10)
        elif sum(delivery.path == "/fast" for delivery in receiver.received) == 19:
            complete.set()

    receiver.before = wait
    deliver()
    assert len(receiver.received) == 70


def test_a_loopback_address_is_refused_unless_a_setting_allows_it(
    alice: Client, receiver: Receiver, app: Flask, deliver: Deliver
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": URL})
    with app.app_context():
        worker.Dispatcher().run(threading.Event())
    assert not receiver.received
    [delivery] = deliveries(alice, webhook_id)
    assert (delivery["status"], delivery["state"]) == (None, "waiting")
    assert "public IP address" in delivery["response"]


def test_events_are_read_in_order_without_gaps(alice: Client, deliver: Deliver) -> None:
    subscribe(alice)
    ids = []
    for number in range(7):
        ids.append(alice.add("/api/url/add", {"url": f"{URL}?{number}"}))
        deliver()
    after, read = 0, []
    while True:
        data = alice.get(f"/api/events?limit=2&after={after}" if after else "/api/events?limit=2").get_json()["data"]
        after = data["next"]
        if not data["events"]:
            break
        read += [event["data"]["id"] for event in data["events"]]
    assert read == ids
    assert [event["type"] for event in events(alice, "type=link.created&limit=1")] == ["link.created"]
    assert alice.get("/api/events?type=nothing").status_code == 400
    assert alice.get("/api/events?page=2").status_code == 400


def test_old_events_are_purged_with_their_deliveries(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql, app: Flask
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": URL})
    deliver()
    sql("UPDATE events SET created = now() - interval '31 days' RETURNING 1")
    assert app.test_cli_runner().invoke(args=["visits", "purge"]).exit_code == 0
    assert events(alice) == deliveries(alice, webhook_id) == []


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"events": []}, "events must be a non-empty array"),
        ({"events": ["link.moved"]}, "events must not contain 'link.moved'"),
        ({"events": "*"}, "events must be a non-empty array"),
        ({"url": "ftp://example.com/"}, "url must"),
        ({"url": "https://user:secret@example.com/"}, "url must not contain a user name"),
        ({"campaign": 999}, "campaign must be the id of one of your campaigns"),
    ],
)
def test_an_invalid_webhook_is_refused(alice: Client, members: dict[str, Any], problem: str) -> None:
    answer = alice.post("/api/webhooks", {"name": "Hook", "events": ["*"]} | members)
    assert answer.status_code == 400
    assert answer.get_json()["message"].startswith(problem)
    assert alice.get("/api/webhooks").get_json()["data"]["result"] == 0


def test_a_user_has_at_most_20_webhooks(alice: Client) -> None:
    for _ in range(20):
        subscribe(alice)
    answer = alice.post("/api/webhooks", {"name": "Hook", "events": ["*"]})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "webhooks_full")


def test_the_secret_is_not_readable_later(alice: Client, sql: Sql) -> None:
    webhook_id, secret = subscribe(alice)
    assert secret not in alice.get(f"/api/webhook/{webhook_id}").text
    [stored] = sql("SELECT webhooks::text AS text FROM webhooks")
    assert secret not in stored["text"]


def test_every_type_can_be_subscribed_to(alice: Client) -> None:
    subscribe(alice, "", *TYPES)


def test_webhooks_are_listed_and_tested(alice: Client, receiver: Receiver, make_app: Callable[..., Flask]) -> None:
    flask = make_app(webhook_networks="127.0.0.0/8").test_cli_runner()
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


def test_several_processes_deliver_each_event_once_and_number_them_in_order(
    alice: Client, receiver: Receiver, make_app: Callable[..., Flask]
) -> None:
    subscribe(alice, receiver.url, "link.*")
    links = [alice.add("/api/url/add", {"url": f"{URL}?{number}"}) for number in range(60)]
    apps = [make_app(webhook_networks="127.0.0.0/8") for _ in range(3)]

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
