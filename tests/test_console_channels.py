"""The page of a channel in the console: its items, and the field that adds one."""

from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, message, words
from tests.support.visited import Store, Visited


def items(client: Client, channel: int) -> list[tuple[str, int]]:
    found = client.get(f"/api/channel/{channel}").get_json()["data"]["items"]
    return [(item["type"], item["id"]) for item in found]


def test_links_bio_pages_and_codes_are_added_by_their_urls(console: FlaskClient, alice: Client, sql: Sql) -> None:
    channel, domain = factories.channel(sql, alice.id), "https://go.example.org"
    alice.add("/api/domain/add", {"domain": domain})
    link = alice.add("/api/url/add", {"url": "https://example.com/", "custom": "sale"})
    branded = alice.add("/api/url/add", {"url": "https://example.com/", "custom": "sale", "domain": domain})
    bio = alice.add("/api/bio/add", {"name": "About", "alias": "robin"})
    code = alice.post("/api/qr/add", {"type": "text", "data": "Hello"}).get_json()
    assert "Nothing is in this channel yet." in get(console, f"/console/channels/{channel}")
    for url in (f"{BASE_URL}/sale", f" {domain}/sale ", "robin", code["link"], code["link"]):
        answer = console.post(f"/console/channels/{channel}", data={"item": url})
        assert answer.status_code == 303, answer.text
    assert items(alice, channel) == [("qr", code["id"]), ("bio", bio), ("links", branded), ("links", link)]
    page = get(console, f"/console/channels/{channel}")
    for path in (f"qrs/{code['id']}", f"bios/{bio}", f"links/{branded}", f"links/{link}"):
        assert f'href="/console/{path}"' in page
    for text in ("Added to the channel.", "bio page", "QR code", f"{BASE_URL}/robin"):
        assert text in words(page)


def test_an_item_is_removed_with_its_button(console: FlaskClient, alice: Client, sql: Sql) -> None:
    channel = factories.channel(sql, alice.id)
    for type_, make in factories.ITEMS.items():
        alice.post(f"/api/channel/{channel}/assign/{type_}/{make(sql, alice.id)}")
    for type_, item_id in items(alice, channel):
        path = f"/console/channels/{channel}/remove/{type_}/{item_id}"
        assert f'action="{path}"' in get(console, f"/console/channels/{channel}")
        assert console.post(path).status_code == 303
    assert "Nothing is in this channel yet." in get(console, f"/console/channels/{channel}")
    assert console.post(f"/console/channels/{channel}/remove/link/1").status_code == 404


@pytest.mark.parametrize("text", ["", "nothing", "https://example.com/", f"{BASE_URL}/theirs", "theirs", "\0", "/qr/x"])
def test_a_url_that_is_no_item_of_the_user_stays_in_the_field(
    *, console: FlaskClient, alice: Client, bob: Client, sql: Sql, text: str
) -> None:
    channel = factories.channel(sql, alice.id)
    bob.add("/api/url/add", {"url": "https://example.com/", "custom": "theirs"})
    answer = console.post(f"/console/channels/{channel}", data={"item": text})
    assert answer.status_code == 400
    assert "You have no link, bio page or QR code with this URL." in message(answer.text, "item")
    assert f'name="item" value="{text.strip(chr(0))}"' in answer.text
    assert items(alice, channel) == []


@pytest.mark.parametrize(("type_", "number"), [("channel", 4), ("campaign", 2)])
def test_the_field_proposes_the_users_own_rows(
    *, console: FlaskClient, alice: Client, bob: Client, sql: Sql, type_: str, number: int
) -> None:
    group = {"channel": factories.channel, "campaign": factories.campaign}[type_](sql, alice.id)
    for client, title in ((alice, "Mine <b>"), (bob, "Theirs")):
        for make in factories.ITEMS.values():
            make(sql, client.id)
        factories.link(sql, client.id, title=title)
    options = get(console, f"/console/{type_}s/{group}").split("<datalist")[1].split("</datalist>")[0]
    assert options.count("<option") == number
    assert "Mine &lt;b&gt;" in options
    assert "Theirs" not in options


def test_a_channel_shows_the_clicks_and_visitors_of_its_links_and_codes(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql, store: Store
) -> None:
    channel, theirs = factories.channel(sql, alice.id), factories.channel(sql, bob.id)
    link, code = factories.link(sql, alice.id), factories.qr(sql, alice.id)
    alice.post(f"/api/channel/{channel}/assign/links/{link}")
    alice.post(f"/api/channel/{channel}/assign/qr/{code}")
    store([Visited(row_id, datetime.now(UTC)) for row_id in (link, code, code, factories.link(sql, alice.id))])
    page = get(console, f"/console/channels/{channel}")
    assert "3 visits in the last 28 days" in page
    assert "<div><dt>visits</dt><dd>3</dd></div><div><dt>unique visitors</dt><dd>2</dd></div>" in page
    assert f"/console/statistics?dimension=country&amp;channel={channel}" in page
    assert console.get(f"/console/channels/{theirs}").status_code == 404
