"""The page of a channel in the console: its items, and the field that adds one."""

import pytest
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, message, words


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


def test_the_field_proposes_the_users_own_rows(console: FlaskClient, alice: Client, bob: Client, sql: Sql) -> None:
    channel = factories.channel(sql, alice.id)
    for client, title in ((alice, "Mine <b>"), (bob, "Theirs")):
        for kind in factories.ITEMS.values():
            kind(sql, client.id)
        factories.link(sql, client.id, title=title)
    options = get(console, f"/console/channels/{channel}").split("<datalist")[1].split("</datalist>")[0]
    assert options.count("<option") == 4
    assert "Mine &lt;b&gt;" in options
    assert "Theirs" not in options
