"""The members of a link's body: accepted, ignored and rejected values."""

from typing import Any

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, refused
from tests.support.worlds import without_request_id


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
    assert without_request_id(responses[0]) == without_request_id(responses[1])
    assert other.sql("SELECT * FROM links") == before
    assert other.sql("SELECT 1 FROM channel_items") == []


def test_the_id_of_a_splash_page_is_sent_as_text_or_a_number_and_shown_as_text(alice: Client, sql: Sql) -> None:
    splash = factories.splash(sql, alice.id)
    for sent in (splash, str(splash)):
        link_id = alice.add("/api/url/add", {"url": PAGE, "type": sent})
        details = alice.get(f"/api/url/{link_id}").get_json()["details"]
        assert details["type"] == str(splash)
        assert alice.put(f"/api/url/{link_id}/update", details).get_json()["details"]["type"] == str(splash)
