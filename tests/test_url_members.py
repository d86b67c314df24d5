"""The members of a link's body: accepted, ignored and rejected values."""

import json
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
    pixels = [factories.pixel(sql, alice.id) for _ in range(4)]
    link = stored(
        sql,
        alice,
        url="https://google.com",
        status="private",
        custom="google",
        password="mypass",
        expiry="2020-11-11 12:00:00",
        type=f"overlay-{overlay}",
        metatitle="Not Google",
        metadescription="Not Google description",
        metaimage="https://www.mozilla.org/media/protocol/img/logos/mozilla/og.4e0d1d5d9d2c.png",
        description="For facebook",
        pixels=pixels,
        channel=channel,
        campaign=campaign,
        deeplink={"auto": True, "apple": "https://apps.apple.com/us/app/google/id284815942",
                  "google": "https://play.google.com/store/apps/details?id=com.google"},
        geotarget=[{"location": "Canada", "link": "https://google.ca"},
                   {"location": "United States", "link": "https://google.us"}],
        devicetarget=[{"device": "iPhone", "link": "https://google.com"},
                      {"device": "Android", "link": {"link": "https://google.com"}}],
        languagetarget=[{"language": "en", "link": "https://google.com"}, {"language": "fr", "link": "https://google.ca"}],
        parameters=[{"name": "aff", "value": "3"}, {"device": "gtm_source", "link": "api"}],
    )  # fmt: skip
    assert passwords.matches("mypass", link.pop("password_hash"))
    assert link | {"id": 0, "created": "", "version": 0} == {
        "id": 0,
        "version": 0,
        "user_id": alice.id,
        "campaign_id": campaign,
        "domain_id": None,
        "alias": "google",
        "custom": True,
        "plain": False,
        "url": "https://google.com",
        "title": "Not Google",
        "description": "For facebook",
        "type": "overlay",
        "splash_id": None,
        "overlay_id": overlay,
        "expires": "2020-11-11 12:00:00",
        "locations": {"canada": "https://google.ca", "united states": "https://google.us"},
        "devices": {"iphone": "https://google.com"},
        "languages": {"en": "https://google.com", "fr": "https://google.ca"},
        "parameters": [["aff", "3"]],
        "metadescription": "Not Google description",
        "metaimage": "https://www.mozilla.org/media/protocol/img/logos/mozilla/og.4e0d1d5d9d2c.png",
        "deeplink": {"auto": True, "apple": "https://apps.apple.com/us/app/google/id284815942",
                     "google": "https://play.google.com/store/apps/details?id=com.google"},
        "public": False,
        "imported_clicks": None,
        "key_id": None,
        "created": "",
    }  # fmt: skip
    assert [row["pixel_id"] for row in sql("SELECT pixel_id FROM link_pixels ORDER BY 1")] == pixels
    assert [row["channel_id"] for row in sql("SELECT channel_id FROM channel_items")] == [channel]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2030-12-31 23:59:59", "2030-12-31 23:59:59"),
        ("2030-12-31", "2030-12-31 23:59:59"),
        ("2030-12-31T12:00", "2030-12-31 12:00:00"),
        ("2030-12-31T12:00:00Z", "2030-12-31 12:00:00"),
        ("2030-12-31t12:00:00z", "2030-12-31 12:00:00"),
        ("2030-12-31T23:30:00.123-01:00", "2031-01-01 00:30:00"),
        ("2030-12-31 12:00:00+0530", "2030-12-31 06:30:00"),
        ("2001-01-01 00:00:00", "2001-01-01 00:00:00"),
        # RFC 3339 with any fraction, and with the zone as PostgreSQL prints it
        ("2030-12-31T12:00:00.5Z", "2030-12-31 12:00:00"),
        ("2030-12-31T12:00:00.123456789012345+01:00", "2030-12-31 11:00:00"),
        ("2030-12-31 12:00:00.123456+02", "2030-12-31 10:00:00"),
        # Go and Java, with the region or the monotonic clock
        ("2026-11-21 21:02:20.015843052 +0000 UTC", "2026-11-21 21:02:20"),
        ("2026-11-21 21:02:20.015843052 +0100 CET m=+0.000012345", "2026-11-21 20:02:20"),
        ("2026-11-21 21:02:20 -0300 -03", "2026-11-22 00:02:20"),
        ("2026-11-21T21:02:20.015843052+01:00[Europe/Berlin]", "2026-11-21 20:02:20"),
        ("2026-11-21T21:02Z[UTC]", "2026-11-21 21:02:00"),
        # Ruby, Rust and Python's log
        ("2030-12-31 12:00:00 UTC", "2030-12-31 12:00:00"),
        ("2030-12-31 12:00:00 -0500", "2030-12-31 17:00:00"),
        ("2030-12-31 12:00:00,123", "2030-12-31 12:00:00"),
        # RFC 2822, HTTP and RFC 850 with four digits of the year
        ("Sat, 21 Nov 2026 21:02:20 +0000", "2026-11-21 21:02:20"),
        ("sat, 21 nov 2026 21:02:20 gmt", "2026-11-21 21:02:20"),
        ("1 Nov 2026 21:02 -0130", "2026-11-01 22:32:00"),
        ("Sat, 21 Nov 2026 22:02:20 +0100 (CET)", "2026-11-21 21:02:20"),
        ("Saturday, 21-Nov-2026 21:02:20 UTC", "2026-11-21 21:02:20"),
        # JavaScript, C, Java and Unix
        ("Sat Nov 21 2026 22:02:20 GMT+0100 (Central European Standard Time)", "2026-11-21 21:02:20"),
        ("Sun Nov  1 21:02:20 2026", "2026-11-01 21:02:20"),
        ("Sat Nov 21 21:02:20 UTC 2026", "2026-11-21 21:02:20"),
        ("Sat Nov 21 21:02:20 +0200 2026", "2026-11-21 19:02:20"),
    ],
)
def test_an_expiry_is_stored_in_utc(alice: Client, sent: str, kept: str) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "expiry": sent})
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["expiry"] == kept


@pytest.mark.parametrize(
    "expiry",
    ["tomorrow", "2030-13-01", "2030-02-30", "2030-1-1", "2030-12-31 24:00:00", "20301231",
     "2030-12-31T12:00:00+99:00", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "2030-12-31\n",
     "٢٠٣٠-١٢-٣١",
     # Ambiguous or contradictory: the order of day and month, the century, the time zone, the day of the week
     "02/03/2030", "02-03-2030", "02.03.2030 12:00", "12:00", "1767225600", "Sat, 21 Nov 26 21:02:20 GMT",
     "2030-12-31 12:00:00 CST", "Sat Nov 21 21:02:20 CST 2026", "Mon, 21 Nov 2026 21:02:20 GMT",
     "31 Feb 2030 12:00 GMT",
     "2030-12-31T12:00:00Z+01:00", "2030-12-31T12:00:00+01:60", "2030-12-31 9:02 PM", "Sat Nov 21 UTC 21:02:20 2026",
     "Sat Nov 21 2026 21:02:20 2027", "Nov 2026", "2030-12-31T12:00:00.Z", "2030-12-31 12:00 m=+0.1", "now", " "],
)  # fmt: skip
def test_an_invalid_expiry_is_rejected(alice: Client, expiry: str) -> None:
    assert refused(alice, expiry=expiry) == "expiry must be a time such as 2030-12-31 23:59:59."


def test_each_type_is_stored(alice: Client, sql: Sql) -> None:
    splash, overlay = factories.splash(sql, alice.id), factories.overlay(sql, alice.id)
    for sent, kept in [
        ("direct", ("direct", None, None)),
        ("frame", ("frame", None, None)),
        ("splash", ("splash", None, None)),
        (splash, ("splash", splash, None)),
        (str(splash), ("splash", splash, None)),
        (f"overlay-{overlay}", ("overlay", None, overlay)),
    ]:
        link = stored(sql, alice, type=sent)
        assert (link["type"], link["splash_id"], link["overlay_id"]) == kept


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"type": "popup"}, "type must be direct, frame, splash, the id of a splash page, or overlay-<id>."),
        ({"type": "overlay-"}, "type must be direct, frame, splash, the id of a splash page, or overlay-<id>."),
        ({"type": "overlay-x"}, "type must be direct, frame, splash, the id of a splash page, or overlay-<id>."),
        ({"type": True}, "type must be direct, frame, splash, the id of a splash page, or overlay-<id>."),
        ({"type": ["direct"]}, "type must be direct, frame, splash, the id of a splash page, or overlay-<id>."),
        ({"type": {}}, "type must be direct, frame, splash, the id of a splash page, or overlay-<id>."),
        ({"type": 0}, "type must refer to one of your splash pages."),
        ({"type": 10**30}, "type must refer to one of your splash pages."),
        ({"type": "overlay-9" + "0" * 19}, "type must refer to one of your overlays."),
        ({"status": "hidden"}, "status must be one of private, public."),
        ({"password": "x" * 1025}, "password must be 1 to 1024 characters."),
        ({"password": 5}, "password must be a string."),
        ({"expiry": 1767225600}, "expiry must be a string."),
        ({"domain": "https://x.example.net/path"}, "domain must be one of your branded domains."),
        ({"domain": "unknown.example.net"}, "domain must be one of your branded domains."),
        ({"domain": "-.-"}, "domain must contain a valid host name."),
        ({"domain": "ftp://x"}, "domain must be a URL that begins with http:// or https://."),
        ({"geotarget": 5}, "geotarget must be an array of objects with location and link."),
        ({"devicetarget": "x"}, "devicetarget must be an array of objects with device and link."),
        ({"languagetarget": {"en": PAGE}}, "languagetarget must be an array of objects with language and link."),
        ({"parameters": {"a": "b"}}, "parameters must be an array of objects with name and value."),
        ({"deeplink": "x"}, "deeplink must be an object with auto, apple and google."),
        ({"deeplink": [1]}, "deeplink must be an object with auto, apple and google."),
        ({"pixels": 5}, "pixels must be an array of ids such as [17, 18]."),
        ({"pixels": [2**62]}, "pixels must contain only ids of your pixels."),
        ({"pixels": [10**30]}, "pixels must contain only ids of your pixels."),
        ({"campaign": "x"}, "campaign must be an id such as 17."),
        ({"campaign": True}, "campaign must be an id such as 17."),
        ({"campaign": 1.5}, "campaign must be an id such as 17."),
        ({"campaign": "٣"}, "campaign must be an id such as 17."),
        ({"campaign": -1}, "campaign must be the id of one of your campaigns."),
        ({"campaign": 2**62}, "campaign must be the id of one of your campaigns."),
        ({"channel": {}}, "channel must be an id such as 17, or an array of ids such as [17, 18]."),
        ({"channel": 1.5}, "channel must be an id such as 17, or an array of ids such as [17, 18]."),
        ({"channel": [2**62]}, "channel must be the id of one of your channels."),
        ({"channel": 2**62}, "channel must be the id of one of your channels."),
        ({"metatitle": "x" * 256}, "metatitle must be at most 255 characters."),
        ({"metatitle": "a\nb"}, "metatitle must not contain control characters."),
        ({"metaimage": "a.png"}, "metaimage must be a URL that begins with http:// or https://."),
        ({"description": "x" * 1001}, "description must be at most 1000 characters."),
        ({"description": 5}, "description must be a string."),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else "",
)
def test_an_invalid_member_is_rejected_and_nothing_is_stored(
    alice: Client, members: dict[str, Any], message: str
) -> None:
    assert refused(alice, **members) == message
    assert alice.get("/api/urls").get_json()["data"]["result"] == 0
    link_id = alice.add("/api/url/add", {"url": PAGE})
    answer = alice.put(f"/api/url/{link_id}/update", members)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)


def test_ids_may_be_strings_and_malformed_ids_are_ignored(alice: Client, sql: Sql) -> None:
    pixel, campaign = factories.pixel(sql, alice.id), factories.campaign(sql, alice.id)
    link = stored(sql, alice, pixels=[str(pixel), pixel, "x", None, {}, 1.5, True], campaign=str(campaign))
    assert link["campaign_id"] == campaign
    assert [row["pixel_id"] for row in sql("SELECT pixel_id FROM link_pixels")] == [pixel]


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
    assert other.sql("SELECT 1 FROM link_pixels UNION ALL SELECT 1 FROM channel_items") == []
