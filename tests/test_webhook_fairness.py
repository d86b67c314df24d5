"""Webhooks: many events of one user, and many deliveries to one receiver."""

import threading

import pytest
from flask import Flask

from linkmgr.features.webhooks import events as records
from linkmgr.features.webhooks import outbox
from linkmgr.features.webhooks.worker import MAX_PER_WEBHOOK
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.receivers import Deliver, Receiver, events, subscribe

URL = "https://example.com/page"


def test_many_events_of_a_user_do_not_delay_those_of_others(alice: Client, bob: Client, app: Flask, sql: Sql) -> None:
    subscribe(alice)
    subscribe(bob)
    sql(
        "INSERT INTO links (user_id, alias, url) SELECT %(id)s, 'many-' || n, %(url)s FROM generate_series(1, 1000) n"
        " RETURNING 1",
        id=alice.id,
        url=URL,
    )
    mine = [bob.add("/api/url/add", {"url": f"{URL}?{number}"}) for number in range(3)]
    with app.app_context():
        records.move()
    assert [event["data"]["id"] for event in events(bob)] == mine
    first = [event["data"]["id"] for event in events(alice, "limit=1000")]
    assert first == sorted(first)
    assert 50 <= len(first) < 1000


def test_events_are_delivered_while_others_still_wait_to_be_moved(
    alice: Client, bob: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    subscribe(alice)
    subscribe(bob, receiver.url)
    sql(
        "INSERT INTO links (user_id, alias, url) SELECT %(id)s, 'many-' || n, %(url)s FROM generate_series(1, 1000) n"
        " RETURNING 1",
        id=alice.id,
        url=URL,
    )
    bob.add("/api/url/add", {"url": URL})
    waiting = []
    receiver.before = lambda _: waiting.append(len(sql("SELECT FROM outbox")))
    deliver()
    assert waiting[0] > 0
    assert sql("SELECT FROM outbox") == []


def test_a_receiver_gets_at_most_eight_deliveries_at_a_time(
    alice: Client, receiver: Receiver, deliver: Deliver
) -> None:
    """The first one is answered at once, so that the service takes more while seven others run."""
    subscribe(alice, receiver.url)
    for number in range(20):
        alice.add("/api/url/add", {"url": f"{URL}?{number}"})
    lock, is_exceeded = threading.Lock(), threading.Event()
    running: list[str] = []
    numbers = []

    def wait(path: str) -> None:
        with lock:
            running.append(path)
            numbers.append(len(running))
            is_first = len(numbers) == 1
            if len(running) > MAX_PER_WEBHOOK:
                is_exceeded.set()
        if not is_first:
            is_exceeded.wait(0.2)
        with lock:
            running.pop()

    receiver.before = wait
    deliver()
    assert len(receiver.received) == 20
    assert max(numbers) <= MAX_PER_WEBHOOK


def test_slow_receivers_of_a_user_do_not_delay_the_webhook_of_another(
    alice: Client, bob: Client, app: Flask, receiver: Receiver, deliver: Deliver
) -> None:
    """The receivers of alice respond when the event of bob has arrived."""
    for number in range(20):
        subscribe(alice, receiver.url.replace("/hooks", f"/slow/{number}"))
    subscribe(bob, receiver.url)
    for number in range(8):
        alice.add("/api/url/add", {"url": f"{URL}?{number}"})
    with app.app_context():
        records.move()
    arrived, started = threading.Event(), threading.Event()
    order: list[bool] = []
    slow: list[str] = []
    begun: list[int] = []  # the number of slow ones, when the event of bob arrives

    def wait(path: str) -> None:
        if path == "/hooks":
            begun.append(len(slow))
            arrived.set()
            return
        slow.append(path)
        started.set()
        order.append(arrived.wait(60))

    receiver.before = wait
    delivering = threading.Thread(target=deliver)
    delivering.start()
    assert started.wait(60)
    bob.add("/api/url/add", {"url": URL})
    assert arrived.wait(60)
    assert begun[0] <= MAX_PER_WEBHOOK
    delivering.join()
    assert all(order)
    assert sum(delivery.path == "/hooks" for delivery in receiver.received) == 1
    assert len(receiver.received) == 161


def test_events_that_a_process_moves_are_not_read_by_another(alice: Client, app: Flask, sql: Sql) -> None:
    subscribe(alice)
    alice.add("/api/url/add", {"url": URL})
    with app.app_context():
        assert outbox.pending(10) != []
        assert outbox.pending(10) == []
        sql("UPDATE service SET moving_until = now() - interval '1 second' RETURNING 1")  # that process died
        records.move()
        alice.add("/api/url/add", {"url": f"{URL}?next"})
        records.move()
    assert len(events(alice)) == 2


@pytest.mark.parametrize("limit", [("MAX_EVENTS", 5), ("MAX_BYTES", 5000)])
def test_the_oldest_events_of_a_user_are_dropped_beyond_a_limit(
    alice: Client, bob: Client, app: Flask, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(outbox, *limit)
    for client in (bob, alice):
        subscribe(client)
    with app.app_context():
        ids = []
        for number in range(20):
            ids.append(alice.add("/api/url/add", {"url": f"{URL}?{number}"}))
            records.move()
        bob.add("/api/url/add", {"url": URL})
        records.move()
    kept = [event["data"]["id"] for event in events(alice, "limit=100")]
    assert kept == ids[-len(kept) :]
    assert 2 <= len(kept) <= 10
    assert len(events(bob)) == 1


def test_events_that_wait_beyond_a_limit_are_dropped(
    alice: Client, bob: Client, app: Flask, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_WAITING", 3)
    subscribe(alice)
    subscribe(bob)
    mine = [alice.add("/api/url/add", {"url": f"{URL}?{number}"}) for number in range(5)]
    bob.add("/api/url/add", {"url": URL})
    with app.app_context():
        outbox.drop_excess()
        records.move()
    assert [event["data"]["id"] for event in events(alice)] == mine[2:]
    assert len(events(bob)) == 1
