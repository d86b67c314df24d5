"""Links, QR codes and overlays are sent back as they are read, after what they refer to has changed."""

from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.bodies import Members
from tests.support.factories import Sql
from tests.support.pages import details

PAGE = "https://example.com/page"


def write_back(client: Client, link_id: int) -> Members:
    """Send back the link as it is read, and return it as it is read then."""
    answer = client.put(f"/api/url/{link_id}/update", details(client, link_id))
    assert answer.status_code == 200, answer.text
    return details(client, link_id)


def test_a_link_created_from_its_url_alone_is_still_returned_for_it(alice: Client, sql: Sql) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE})
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    for path in ("", f"/api/campaign/{campaign}/assign/{link_id}", f"/api/channel/{channel}/assign/links/{link_id}"):
        assert not path or alice.post(path).status_code == 200
        write_back(alice, link_id)
        assert alice.add("/api/url/add", {"url": PAGE}) == link_id


@pytest.mark.parametrize("member", ["url", "campaign", "channel", "password"])
def test_a_link_that_differs_is_no_longer_returned_for_its_url(alice: Client, sql: Sql, member: str) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE})
    values = {"url": PAGE + "/2", "campaign": factories.campaign(sql, alice.id), "password": "secret"}
    value = values.get(member) or [factories.channel(sql, alice.id)]
    assert alice.put(f"/api/url/{link_id}/update", {member: value}).status_code == 200
    assert alice.put(f"/api/url/{link_id}/update", {"url": PAGE}).status_code == 200
    assert alice.add("/api/url/add", {"url": PAGE}) != link_id


def test_a_link_is_added_to_each_channel_of_an_array(alice: Client, sql: Sql) -> None:
    first, second, third = (factories.channel(sql, alice.id) for _ in range(3))
    link_id = alice.add("/api/url/add", {"url": PAGE, "channel": [second, str(first), second, 0, "x"]})
    assert details(alice, link_id)["channel"] == [first, second]
    assert alice.put(f"/api/url/{link_id}/update", {"channel": [third, first]}).status_code == 200
    assert details(alice, link_id)["channel"] == [first, second, third]
    nothings: list[Any] = [0, "", None]
    for nothing in nothings:
        assert alice.put(f"/api/url/{link_id}/update", {"channel": nothing}).status_code == 200
    assert details(alice, link_id)["channel"] == [first, second, third]
    assert alice.put(f"/api/url/{link_id}/update", {"channel": []}).status_code == 200
    assert details(alice, link_id)["channel"] == []


def test_a_password_is_never_shown(alice: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "password": "correct horse"})
    shown = details(alice, link_id)
    assert shown["haspassword"] is True
    assert "password" not in shown
    assert write_back(alice, link_id) == shown
    cleared = alice.put(f"/api/url/{link_id}/update", {"password": ""}).get_json()["details"]
    assert cleared == shown | {"haspassword": False, "updated": ANY}


def test_deleted_rows_are_not_shown_and_the_link_can_be_sent_back(
    alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    ids = {name: factories.ALL[name](sql, alice.id) for name in ("campaign", "channel", "pixel", "splash", "overlay")}
    members = {"url": PAGE, "campaign": ids["campaign"], "channel": ids["channel"], "pixels": [ids["pixel"]]}
    types = {"splash": ids["splash"], "overlay": f"overlay-{ids['overlay']}"}
    added = {name: alice.add("/api/url/add", members | {"type": value}) for name, value in types.items()}
    for name, row_id in ids.items():
        assert alice.delete(f"/api/{name}/{row_id}/delete").status_code == 200
    gone: Members = {"campaign": None, "channel": [], "pixels": [], "type": "direct"}
    for link_id in added.values():
        shown = details(alice, link_id)
        assert shown == shown | gone
        assert write_back(alice, link_id) == shown | {"updated": ANY}  # the references end
    run_jobs()
    for link_id in added.values():
        shown = details(alice, link_id)
        assert shown == shown | gone


def test_an_alias_that_has_become_reserved_can_be_kept_but_not_chosen(alice: Client, sql: Sql) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "custom": "pricing"})
    sql("UPDATE links SET alias = 'login' WHERE id = %(id)s RETURNING 1", id=link_id)
    shown = details(alice, link_id)
    assert shown["custom"] == "login"
    assert write_back(alice, link_id) == shown
    refused = alice.put(f"/api/url/{link_id}/update", shown | {"custom": "account"})
    assert refused.get_json()["message"] == "custom 'account' is reserved: choose another alias."
    refused = alice.put(f"/api/url/{link_id}/update", shown | {"status": "hidden"})
    assert "status must be one of private, public" in refused.get_json()["message"]
    assert details(alice, link_id) == shown


def test_targets_on_a_host_that_has_become_a_branded_domain_can_be_kept_but_not_added(
    alice: Client, bob: Client
) -> None:
    target, other = "https://shop.example.net/a", "https://shop.example.net/b"
    members = {"url": target, "geotarget": [{"location": "fr", "link": target}], "deeplink": {"apple": target}}
    link_id = alice.add("/api/url/add", members)
    bob.add("/api/domain/add", {"domain": "https://shop.example.net"})
    shown = details(alice, link_id)
    assert write_back(alice, link_id) == shown
    for changed in ({"url": other}, {"geotarget": [{"location": "fr", "link": other}]}, {"deeplink": {"apple": other}}):
        assert alice.put(f"/api/url/{link_id}/update", changed).get_json()["code"] == "link_branded"
    assert details(alice, link_id) == shown


@pytest.mark.parametrize(("word", "member"), [("campaign", "public"), ("channel", "starred")])
def test_a_value_of_another_type_is_not_the_stored_one(alice: Client, word: str, member: str) -> None:
    row_id = alice.add(f"/api/{word}/add", {"name": "Summer", member: True})
    refused = alice.put(f"/api/{word}/{row_id}/update", {"name": "Summer", member: 1})
    assert refused.get_json()["message"] == f"{member} must be true or false."


# --- QR codes and overlays


def test_a_qr_code_to_a_host_that_has_become_a_branded_domain_can_be_kept(alice: Client, bob: Client) -> None:
    path = f"/api/qr/{alice.add('/api/qr/add', {'type': 'link', 'data': 'https://shop.example.net/a'})}"
    bob.add("/api/domain/add", {"domain": "https://shop.example.net"})
    shown = alice.get(path).get_json()["details"]
    assert alice.put(f"{path}/update", shown).get_json()["details"] == shown
    refused = alice.put(f"{path}/update", shown | {"data": "https://shop.example.net/b"})
    assert refused.get_json()["code"] == "link_branded"
