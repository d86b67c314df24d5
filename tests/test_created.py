"""The response to a create has the record as its read shows it, and the ETag of that read."""

import pytest

from tests.conftest import BASE_URL, Client
from tests.support.bodies import LEAST, everything
from tests.support.factories import Sql
from tests.support.keyring import Make
from tests.support.targets import FIREFOX

# The members that the specification names
NAMED = {
    "url": {"id", "shorturl", "short", "is_new"},
    "bio": {"id", "alias", "shorturl"},
    "campaign": {"id", "domain", "campaign", "public", "rotator", "list"},
    "key": {"id", "key"},
    "member": {"id", "url"},
    "qr": {"id", "link"},
    "user": {"message"},
    "webhook": {"id", "secret"},
}
RESOURCES = sorted(LEAST.keys() - {"account", "plan", "channel"})


@pytest.mark.parametrize("word", RESOURCES)
def test_a_create_returns_the_record_and_its_etag(alice: Client, admin: Client, sql: Sql, word: str) -> None:
    client, path = (admin if word == "user" else alice), "webhooks" if word == "webhook" else f"{word}/add"
    answer = client.post(f"/api/{path}", everything(alice, sql) if word == "url" else LEAST[word])
    members = answer.get_json()
    read = client.get(f"/api/{word}/{members.get('id') or members['data']['id']}")
    shown = read.get_json()
    assert members.keys() == NAMED.get(word, {"id"}) | shown.keys()
    assert {name: members[name] for name in shown} == shown
    assert answer.headers["ETag"] == read.headers["ETag"]


def test_an_existing_link_is_returned_with_its_statistics(alice: Client) -> None:
    added = alice.post("/api/url/add", LEAST["url"]).get_json()
    alice.http.get(added["shorturl"].removeprefix(BASE_URL), headers={"User-Agent": FIREFOX})
    again = alice.post("/api/url/add", LEAST["url"]).get_json()
    assert (again["id"], added["data"]["clicks"], again["data"]["clicks"]) == (added["id"], 0, 1)


def test_a_new_channel_can_be_changed_with_its_etag(alice: Client) -> None:
    """The read of a channel has its items too, so it has another ETag of the same version."""
    added = alice.post("/api/channel/add", LEAST["channel"])
    path, condition = f"/api/channel/{added.get_json()['id']}/update", {"If-Match": added.headers["ETag"]}
    assert alice.put(path, {"starred": True}, headers=condition).status_code == 200
    assert alice.put(path, {"starred": False}, headers=condition).status_code == 412


def test_a_key_that_only_creates_links_does_not_read_them(alice: Client, make_key: Make) -> None:
    url = LEAST["url"] | {"metatitle": "Secret"}
    alice.post("/api/url/add", url)
    answer = make_key(alice, "links:create").post("/api/url/add", LEAST["url"])
    assert answer.get_json().keys() == {"error", "id", "shorturl", "short", "is_new"}
