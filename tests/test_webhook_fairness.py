"""Webhooks: many events of one user, and many deliveries to one receiver."""

import threading

from flask import Flask

from linkmgr.events import records
from linkmgr.events.worker import MAX_PER_WEBHOOK
from tests.conftest import Client
from tests.factories import Sql
from tests.receivers import Deliver, Receiver, events, subscribe
from tests.test_webhook_events import URL


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
