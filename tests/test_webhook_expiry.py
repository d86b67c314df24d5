"""Events of links that expire."""

import contextvars
import threading
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from psycopg2.extensions import connection as Connection

from linkmgr.core.database import background, transaction
from linkmgr.features.webhooks import outbox, worker
from linkmgr.repository import links
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.receivers import Deliver, Receiver, events, subscribe
from tests.support.shortlinks import Make

URL = "https://example.com/page"


def turn_back(sql: Sql) -> None:
    """Let the links that have expired in the last two minutes be announced next."""
    sql("UPDATE service SET announced = now() - interval '2 minutes', announced_id = 0 RETURNING 1")


def announced(client: Client) -> list[int]:
    found = events(client, "limit=1000")
    assert {event["type"] for event in found} <= {"link.expired"}
    return [event["data"]["id"] for event in found]


def test_an_expired_link_is_announced_once(alice: Client, sql: Sql, deliver: Deliver, app: Flask) -> None:
    subscribe(alice, "", "link.expired")
    turn_back(sql)
    link_id = alice.add("/api/url/add", {"url": URL, "expiry": "2030-01-01 00:00:00"})
    sql("UPDATE links SET expiry = now() - interval '1 minute' RETURNING 1")
    for _ in range(2):
        with app.app_context():
            outbox.announce_expired(100)
        deliver()
    assert announced(alice) == [link_id]


def test_the_last_click_of_a_link_is_announced(alice: Client, short: Make, deliver: Deliver) -> None:
    subscribe(alice, "", "link.expired")
    link = short(maxclicks=2, imported_clicks=1)
    short(maxclicks=2).ask()
    assert [link.ask().status_code for _ in range(3)] == [302, 410, 410]
    deliver()
    assert announced(alice) == [link.id]


def test_links_that_expire_at_the_same_time_are_announced_in_batches(
    alice: Client, bob: Client, sql: Sql, deliver: Deliver, app: Flask
) -> None:
    """The links of bob, who has no webhook, fill batches too."""
    subscribe(alice, "", "link.expired")
    turn_back(sql)
    for client in (alice, bob, alice):
        sql(
            """
            INSERT INTO links (user_id, alias, url, expiry)
            SELECT %(id)s, gen_random_uuid(), %(url)s, date_trunc('minute', now() - interval '1 minute')
              FROM generate_series(1, 5)
            RETURNING 1
            """,
            id=client.id,
            url=URL,
        )
    ids = [row["id"] for row in sql("SELECT id FROM links WHERE user_id = %(id)s ORDER BY id", id=alice.id)]
    with app.app_context():
        batches = [outbox.announce_expired(4) for _ in range(5)]
        assert len(sql("SELECT FROM outbox WHERE type = 'link.expired'")) == 10
    deliver()
    assert batches == [True, True, True, False, False]
    assert announced(alice) == ids


def test_a_link_is_announced_some_seconds_late(alice: Client, sql: Sql, deliver: Deliver, app: Flask) -> None:
    """Transactions that store links may commit late, after their links have expired."""
    subscribe(alice, "", "link.expired")
    turn_back(sql)
    link_id = alice.add("/api/url/add", {"url": URL, "expiry": "2030-01-01 00:00:00"})
    sql("UPDATE links SET expiry = now() - interval '1 second' RETURNING 1")
    with app.app_context():
        outbox.announce_expired(100)
    deliver()
    assert announced(alice) == []
    sql("UPDATE service SET announced = announced - interval '1 minute' RETURNING 1")
    sql("UPDATE links SET expiry = expiry - interval '1 minute' RETURNING 1")
    with app.app_context():
        outbox.announce_expired(100)
    deliver()
    assert announced(alice) == [link_id]


def test_a_link_that_gets_a_past_expiry_is_announced_once(
    alice: Client, sql: Sql, deliver: Deliver, app: Flask
) -> None:
    subscribe(alice, "", "link.expired")
    sql("UPDATE service SET announced = now(), announced_id = 0 RETURNING 1")
    link_id = alice.add("/api/url/add", {"url": URL, "expiry": "2030-01-01 00:00:00"})
    past = ["2020-01-01 00:00:00", "2021-01-01 00:00:00"]
    for expiry in past:
        assert alice.put(f"/api/url/{link_id}/update", {"expiry": expiry}).status_code == 200
    old_id = alice.add("/api/url/add", {"url": URL, "expiry": "2020-01-01 00:00:00"})
    with app.app_context():
        assert not outbox.announce_expired(100)
    deliver()
    assert announced(alice) == [link_id, old_id]


def test_a_past_expiry_is_announced_after_the_write_that_sets_it(alice: Client, deliver: Deliver) -> None:
    subscribe(alice, "", "link.*")
    past = {"expiry": "2020-01-01 00:00:00"}
    link_id = alice.add("/api/url/add", {"url": URL, **past})
    alice.delete(f"/api/url/{link_id}/delete?bin=1")
    assert alice.post(f"/api/url/{link_id}/restore").status_code == 200
    for change in ({"expiry": "2030-01-01 00:00:00"}, past):
        assert alice.put(f"/api/url/{link_id}/update", change).status_code == 200
    deliver()
    assert [event["type"].removeprefix("link.") for event in events(alice)] == [
        *("created", "expired"),
        "deleted",
        *("created", "expired"),
        *("updated", "updated", "expired"),
    ]


def test_a_link_that_is_stored_while_others_are_announced_is_announced_once(
    alice: Client, sql: Sql, deliver: Deliver, app: Flask
) -> None:
    subscribe(alice, "", "link.expired")
    turn_back(sql)
    expiry = f"{datetime.now(UTC) - timedelta(minutes=1)}"

    def announce() -> None:
        with app.app_context():
            outbox.announce_expired(100)

    with app.app_context(), transaction.lazily(lambda: None) as storing:
        links.add(alice.id, {"url": URL, "expiry": expiry})
        contextvars.Context().run(announce)  # on a connection of its own
        storing.commit()
    announce()
    deliver()
    assert len(announced(alice)) == 1


def test_events_are_delivered_while_expired_links_cannot_be_announced(
    alice: Client, receiver: Receiver, app: Flask, raw: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "POLL_SECONDS", 0.01)
    subscribe(alice, receiver.url)
    delivered = threading.Event()
    receiver.before = lambda _: delivered.set()
    alice.add("/api/url/add", {"url": URL})
    raw.cursor().execute("ALTER TABLE service RENAME announced TO missing")
    working = worker.Worker(app)
    working.start()
    try:
        assert delivered.wait(60)
    finally:
        working.stop()
        raw.cursor().execute("ALTER TABLE service RENAME missing TO announced")
