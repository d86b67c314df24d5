from collections import Counter
from typing import Any

import pytest
from flask import Flask

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import at_once
from tests.support.receivers import Deliver, events, subscribe

CHANNEL = {"name": "Shop", "description": "What we\nsell", "color": "#Ff5500", "starred": True}


def items(client: Client, channel_id: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/channel/{channel_id}").get_json()["data"]["items"]
    return found


def test_items_of_the_three_types_are_listed_the_last_assigned_first(alice: Client, sql: Sql) -> None:
    channel_id = alice.add("/api/channel/add", CHANNEL)
    assigned = {
        "links": factories.link(sql, alice.id, url="https://example.com/a", title="A page"),
        "bio": factories.bio(sql, alice.id, title="About alice"),
        "qr": factories.qr(sql, alice.id, name="Poster"),
    }
    for type_ in ("qr", "links", "bio"):
        answer = alice.post(f"/api/channel/{channel_id}/assign/{type_}/{assigned[type_]}")
        assert answer.get_json() == {"error": 0, "message": "Item successfully added to the channel."}
    link = sql("SELECT alias, left(created::text, 10) AS date FROM links")[0]
    bio = f"{BASE_URL}/{sql('SELECT alias FROM bios')[0]['alias']}"
    qr = f"{BASE_URL}/qr/{sql('SELECT code FROM qrs')[0]['code']}"
    expected = [
        {"type": "bio", "id": assigned["bio"], "title": "About alice", "preview": bio, "link": bio},
        {
            "type": "links",
            "id": assigned["links"],
            "title": "A page",
            "preview": "https://example.com/a",
            "link": f"{BASE_URL}/{link['alias']}",
        },
        {"type": "qr", "id": assigned["qr"], "title": "Poster", "preview": qr, "link": qr},
    ]
    assert items(alice, channel_id) == [item | {"date": link["date"]} for item in expected]


@pytest.mark.parametrize("type_", factories.ITEMS)
def test_repeated_and_concurrent_assignments_count_as_one(app: Flask, alice: Client, sql: Sql, type_: str) -> None:
    channel_id, item_id = alice.add("/api/channel/add", CHANNEL), factories.ITEMS[type_](sql, alice.id)

    def assign(_: int) -> int:
        client = Client(app.test_client(), alice.key)
        return client.post(f"/api/channel/{channel_id}/assign/{type_}/{item_id}").status_code

    assert Counter(at_once(16, assign)) == {200: 16}
    assert len(items(alice, channel_id)) == 1


def test_an_item_leaves_a_channel_and_remains(alice: Client, bob: Client, sql: Sql) -> None:
    channel_id, other = (alice.add("/api/channel/add", {"name": name}) for name in ("A", "B"))
    ids = {type_: make(sql, alice.id) for type_, make in factories.ITEMS.items()}
    for type_, item_id in ids.items():
        for channel in (channel_id, other):
            alice.post(f"/api/channel/{channel}/assign/{type_}/{item_id}")
    for type_, item_id in ids.items():
        path = f"/api/channel/{channel_id}/assign/{type_}/{item_id}"
        assert bob.delete(path).status_code == 404
        for _ in range(2):
            answer = alice.delete(path)
            assert (answer.status_code, answer.get_json()["message"]) == (
                200,
                "Item successfully removed from the channel.",
            )
        assert alice.delete(f"/api/channel/{other}/assign/{type_}/{2**62}").status_code == 404
    assert alice.delete(f"/api/channel/{2**62}/assign/links/{ids['links']}").status_code == 404
    assert alice.delete(f"/api/channel/{other}/assign/link/{ids['links']}").status_code == 400
    assert (items(alice, channel_id), len(items(alice, other))) == ([], 3)
    assert alice.get(f"/api/url/{ids['links']}").get_json()["details"]["channel"] == [other]


def test_an_empty_list_removes_a_link_from_all_channels(alice: Client, deliver: Deliver, sql: Sql) -> None:
    channels = [alice.add("/api/channel/add", {"name": name}) for name in ("A", "B")]
    links = [alice.add("/api/url/add", {"url": f"https://example.com/{n}", "channel": channels}) for n in range(3)]
    for unchanged in (0, "", ["x"], [0], None):
        answer = alice.put(f"/api/url/{links[0]}/update", {"channel": unchanged})
        assert answer.get_json()["details"]["channel"] == channels
    subscribe(alice)
    assert alice.put(f"/api/url/{links[0]}/update", {"channel": []}).get_json()["details"]["channel"] == []
    alice.put("/api/urls/bulk", {"ids": links[:2], "data": {"channel": []}})
    deliver()
    assert [event["data"]["id"] for event in events(alice) if event["type"] == "link.updated"] == links[:2]
    assert {item["id"] for item in items(alice, channels[0])} == {links[2]}
    assert sql("SELECT DISTINCT link_id FROM channel_items") == [{"link_id": links[2]}]


def test_an_unknown_type_of_item_is_rejected_and_an_id_of_another_type_is_not_found(alice: Client, sql: Sql) -> None:
    channel_id, link_id = alice.add("/api/channel/add", CHANNEL), factories.link(sql, alice.id)
    for type_ in ("link", "LINKS", "bios", "splash", "%00", "*"):
        answer = alice.post(f"/api/channel/{channel_id}/assign/{type_}/{link_id}")
        assert (answer.status_code, answer.get_json()["message"]) == (400, "type must be one of links, bio, qr."), type_
    assert alice.post(f"/api/channel/{channel_id}/assign/qr/{link_id}").status_code == 404
    assert items(alice, channel_id) == []


def test_a_link_on_a_branded_domain_is_listed_with_its_url_there_and_that_of_its_target_as_title(alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": "https://brand.example.net"})
    new = {"url": "https://example.org/", "custom": "sale", "domain": "brand.example.net"}
    channel_id, link_id = alice.add("/api/channel/add", {"name": "News"}), alice.add("/api/url/add", new)
    assert alice.post(f"/api/channel/{channel_id}/assign/links/{link_id}").status_code == 200
    [item] = alice.get(f"/api/channel/{channel_id}").get_json()["data"]["items"]
    assert (item["link"], item["title"]) == ("https://brand.example.net/sale", "https://example.org/")
