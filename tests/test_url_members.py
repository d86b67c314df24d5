"""The members of a link's body: accepted, ignored and rejected values."""

from typing import Any

import pytest

from linkmgr.web import passwords
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, refused, stored


def test_the_example_of_the_specification_is_accepted(alice: Client, sql: Sql) -> None:
    overlay, campaign, channel = (
        make(sql, alice.id) for make in (factories.overlay, factories.campaign, factories.channel)
    )
    image = "https://www.mozilla.org/media/protocol/img/logos/mozilla/og.4e0d1d5d9d2c.png"
    kept: dict[str, Any] = {
        "url": "https://google.com", "status": "private", "custom": "google", "expiry": "2020-11-11 12:00:00",
        "type": f"overlay-{overlay}", "metatitle": "Not Google", "metadescription": "Not Google description",
        "metaimage": image, "description": "For facebook", "campaign": campaign,
        "pixels": [factories.pixel(sql, alice.id) for _ in range(4)],
        "deeplink": {"auto": True, "apple": "https://apps.apple.com/us/app/google/id284815942",
                     "google": "https://play.google.com/store/apps/details?id=com.google"},
        "languagetarget": [{"language": "en", "link": "https://google.com"},
                           {"language": "fr", "link": "https://google.ca"}],
    }  # fmt: skip
    normalized = {
        "geotarget": [{"location": "Canada", "link": "https://google.ca"},
                      {"location": "United States", "link": "https://google.us"}],
        "devicetarget": [{"device": "iPhone", "link": "https://google.com"},
                         {"device": "Android", "link": {"link": "https://google.com"}}],
        "parameters": [{"name": "aff", "value": "3"}, {"device": "gtm_source", "link": "api"}],
    }  # fmt: skip
    link = stored(sql, alice, **kept, **normalized, channel=channel, password="mypass")
    assert passwords.matches("mypass", link["password_hash"])
    details = alice.get(f"/api/url/{link['id']}").get_json()["details"]
    assert details == details | kept | {"channel": [channel], "parameters": [{"name": "aff", "value": "3"}]}
    assert details["location"] == {"canada": "https://google.ca", "united states": "https://google.us"}
    assert details["device"] == {"iphone": "https://google.com"}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"type": 0}, "type must refer to one of your splash pages."),
        ({"type": 10**30}, "type must refer to one of your splash pages."),
        ({"type": "overlay-9" + "0" * 19}, "type must refer to one of your overlays."),
        ({"domain": "https://x.example.net/path"}, "domain must be one of your branded domains."),
        ({"domain": "unknown.example.net"}, "domain must be one of your branded domains."),
        ({"pixels": [2**62]}, "pixels must contain only ids of your pixels."),
        ({"campaign": -1}, "campaign must be the id of one of your campaigns."),
        ({"campaign": 2**62}, "campaign must be the id of one of your campaigns."),
        ({"channel": [2**62]}, "channel must be the id of one of your channels."),
    ],
)
def test_a_reference_to_a_missing_row_is_rejected_and_nothing_is_stored(
    alice: Client, members: dict[str, Any], message: str
) -> None:
    assert refused(alice, **members) == message
    assert alice.get("/api/urls").get_json()["data"]["result"] == 0


class Other:
    """Another user with rows of each kind."""

    def __init__(self, client: Client, sql: Sql) -> None:
        self.client, self.sql = client, sql

    def make(self, what: str) -> int:
        made = factories.ALL[what](self.sql, self.client.id)
        self.sql("UPDATE domains SET host = 'go' || id || '.example.net' RETURNING 1")
        return made


@pytest.fixture
def other(bob: Client, sql: Sql) -> Other:
    return Other(bob, sql)


@pytest.mark.parametrize(
    ("member", "made", "sent"),
    [
        ("campaign", "campaign", int),
        ("channel", "channel", int),
        ("pixels", "pixel", lambda pixel_id: [pixel_id]),
        ("type", "splash", int),
        ("type", "overlay", "overlay-{}".format),
        ("domain", "domain", "go{}.example.net".format),
    ],
)
def test_another_users_row_is_the_same_error_as_a_missing_row(
    alice: Client, other: Other, member: str, made: str, sent: Any
) -> None:
    foreign, ghost = sent(other.make(made)), sent(2**62)
    link_id = alice.add("/api/url/add", {"url": PAGE})
    before = other.sql("SELECT * FROM links")
    assert refused(alice, **{member: foreign}) == refused(alice, **{member: ghost})
    responses = [
        alice.put(f"/api/url/{link_id}/update", {member: each, "description": "x"}) for each in (foreign, ghost)
    ]
    assert [answer.status_code for answer in responses] == [400, 400]
    assert responses[0].data == responses[1].data
    assert other.sql("SELECT * FROM links") == before
    assert other.sql("SELECT 1 FROM channel_items") == []
