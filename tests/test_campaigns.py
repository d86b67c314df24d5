import re
from typing import Any
from unittest.mock import ANY

import pytest

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql


def test_a_campaign_is_returned_and_listed_with_its_urls(alice: Client) -> None:
    answer = alice.post("/api/campaign/add", {"name": "Spring", "slug": "spring-1", "public": True}).get_json()
    campaign_id = answer["id"]
    addresses = {"rotator": f"{BASE_URL}/r/spring-1", "list": f"{BASE_URL}/u/alice/spring-1-{campaign_id}"}
    named = {"error": 0, "id": campaign_id, "domain": "Spring", "campaign": "Spring", "public": True} | addresses
    assert {name: answer[name] for name in named} == named
    assert list(answer)[:6] == ["error", "id", "domain", "public", "rotator", "list"]
    listed = alice.get("/api/campaigns").get_json()["data"]["campaigns"]
    assert listed == [{"id": campaign_id, "name": "Spring", "public": True, "updated": ANY} | addresses]


@pytest.mark.parametrize("sent", [None, {}, {"name": None, "slug": None, "public": None}, {"name": "", "slug": ""}])
def test_a_campaign_needs_no_members_and_is_then_private_without_a_rotator(alice: Client, sent: Any) -> None:
    answer = alice.post("/api/campaign/add", sent).get_json()
    assert re.fullmatch("Campaign [0-9a-f]{12}", answer["domain"])
    assert (answer["public"], answer["rotator"]) == (False, False)
    assert answer["list"] == f"{BASE_URL}/u/alice/list-{answer['id']}"


def test_an_update_changes_only_what_was_sent_and_responds_like_a_create(alice: Client) -> None:
    campaign_id = alice.add("/api/campaign/add", {"name": "Spring", "slug": "spring", "public": True})
    answer = alice.put(f"/api/campaign/{campaign_id}/update", {"name": "Summer"}).get_json()
    record = {
        "id": campaign_id,
        "name": "Summer",
        "slug": "spring",
        "public": True,
        "listorder": "newest",
        "listsize": 25,
        "rotator": f"{BASE_URL}/r/spring",
        "list": f"{BASE_URL}/u/alice/spring-{campaign_id}",
        "updated": ANY,
    }
    message = "Campaign has been updated successfully."
    as_created = {"domain": "Summer", "campaign": "Summer"} | record
    assert answer == {"error": 0, "message": message} | as_created | {"data": record, "record": record}
    assert list(answer)[:7] == ["error", "message", "id", "domain", "public", "rotator", "list"]


def test_where_name_and_slug_are_taken_the_name_is_reported(alice: Client, bob: Client) -> None:
    spring = alice.add("/api/campaign/add", {"name": "Spring", "slug": "spring"})
    other = alice.add("/api/campaign/add", {"name": "Summer"})
    both, own_name = {"name": "Spring", "slug": "spring"}, {"name": "Summer", "slug": "spring"}
    taken = [alice.post("/api/campaign/add", both), alice.put(f"/api/campaign/{other}/update", both)]
    assert {answer.get_json()["message"] for answer in taken} == {"You already have a campaign with that name."}
    answer = alice.put(f"/api/campaign/{other}/update", own_name)
    assert answer.get_json()["code"] == "campaign_slug_taken"
    assert bob.post("/api/campaign/add", both).get_json()["code"] == "campaign_slug_taken"
    assert alice.put(f"/api/campaign/{spring}/update", both).status_code == 200


def test_a_link_leaves_its_campaign_and_a_channel(alice: Client, bob: Client, sql: Sql) -> None:
    campaign, other = (factories.campaign(sql, alice.id) for _ in range(2))
    channels = [factories.channel(sql, alice.id) for _ in range(2)]
    first, second = (alice.add("/api/url/add", {"url": f"https://example.com/{n}"}) for n in range(2))
    path = f"/api/campaign/{campaign}/assign/{first}"

    def state(link: int) -> tuple[Any, Any]:
        details = alice.get(f"/api/url/{link}").get_json()["details"]
        return details["campaign"], details["channel"]

    for link in (first, second):
        alice.put(f"/api/url/{link}/update", {"campaign": campaign, "channel": channels})
    assert alice.delete(f"/api/campaign/{other}/assign/{first}").status_code == 200
    for url in (f"/api/campaign/{2**40}/assign/{first}", f"/api/campaign/{campaign}/assign/{2**40}"):
        assert alice.delete(url).get_json()["code"] == "missing"
    assert bob.delete(path).get_json()["code"] == "missing"
    assert state(first) == (campaign, channels)
    for _ in range(2):
        assert alice.delete(path).get_json()["message"] == "Link successfully removed from the campaign."
        assert state(first) == (None, channels)
    body = {"ids": [first, second], "data": {"campaign": ""}, "unassign_channel": channels[0]}
    refused = alice.put("/api/urls/bulk", body | {"data": {"channel": channels}}).get_json()
    assert refused["errors"][0]["message"] == "unassign_channel must be a channel that is not in data.channel."
    assert alice.put("/api/urls/bulk", body).get_json()["updated"] == 2
    assert state(first) == state(second) == (None, channels[1:])
    alice.put(f"/api/url/{second}/update", {"channel": []})
    assert (state(first), state(second)) == ((None, channels[1:]), (None, []))
