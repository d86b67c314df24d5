"""GET /api/events: the feed of events."""

import pytest
from flask import Flask

from linkmgr.features.webhooks import outbox
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.receivers import URL, Deliver, Receiver, deliveries, events, subscribe


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


def test_events_of_a_type_are_read_past_many_of_other_types(
    alice: Client, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(alice)
    alice.add("/api/channel/add", {"name": "First"})
    for number in range(7):
        alice.add("/api/url/add", {"url": f"{URL}?{number}"})
    alice.add("/api/channel/add", {"name": "Last"})
    deliver()
    first, *_, last = [event["id"] for event in events(alice)]
    monkeypatch.setattr(outbox, "MAX_EXAMINED", 3)
    after, pages = first - 1, []
    while after < last:
        query = f"type=channel.*&limit=2&after={after}" if after else "type=channel.*&limit=2"
        data = alice.get(f"/api/events?{query}").get_json()["data"]
        assert int(data["next"]) > after
        after = int(data["next"])
        pages.append([event["data"]["name"] for event in data["events"]])
    assert [name for page in pages for name in page] == ["First", "Last"]
    assert [] in pages
    for kind in ("channel.*", "link.*"):
        data = alice.get(f"/api/events?type={kind}&after={last}").get_json()["data"]
        assert (data["events"], data["next"]) == ([], str(last))


def test_an_empty_feed_can_be_polled(alice: Client, deliver: Deliver) -> None:
    first = alice.get("/api/events").get_json()["data"]
    assert first["events"] == []
    again = alice.get(f"/api/events?after={first['next']}")
    assert (again.status_code, again.get_json()["data"]) == (200, first)
    subscribe(alice)
    link_id = alice.add("/api/url/add", {"url": URL})
    deliver()
    assert [event["data"]["id"] for event in events(alice, f"after={first['next']}")] == [link_id]


def test_old_events_are_purged_with_their_deliveries(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql, app: Flask
) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": URL})
    deliver()
    sql("UPDATE events SET created = now() - interval '31 days' RETURNING 1")
    assert app.test_cli_runner().invoke(args=["visits", "purge"]).exit_code == 0
    assert events(alice) == deliveries(alice, webhook_id) == []


def test_a_restore_repeats_no_id_of_an_event_and_skips_none_behind_a_cursor(
    alice: Client, receiver: Receiver, deliver: Deliver, sql: Sql
) -> None:
    subscribe(alice, receiver.url)
    sequence = "pg_get_serial_sequence('events', 'number')"
    [dumped] = sql(f"SELECT nextval({sequence}) AS number")
    cursor = "0"
    for custom in ("lost", "new"):
        alice.add("/api/url/add", {"url": URL, "custom": custom})
        deliver()
        data = alice.get(f"/api/events?after={cursor}").get_json()["data"]
        [event] = data["events"]
        assert event["data"]["alias"] == custom
        cursor = data["next"]
        # As after the restore of a dump that is older than the event
        sql("DELETE FROM events RETURNING 1")
        sql(f"SELECT setval({sequence}, %(number)s)", **dumped)
    assert len({delivery.headers["webhook-id"] for delivery in receiver.received}) == len(receiver.received) == 2
