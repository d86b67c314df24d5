"""`warnings` in the responses to writes: values that are accepted but cannot have the effect that was meant."""

from difflib import get_close_matches
from typing import Any
from unittest.mock import Mock

import pytest
from flask import Flask

from linkmgr.request.request import MAX_WARNINGS
from linkmgr.visits import audience
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE

PIXEL = {"type": "bing", "name": "n", "tag": "t"}


def warnings(client: Client, members: dict[str, Any], path: str = "/api/url/add", method: str = "POST") -> list[str]:
    answer = client.call(method, path, members)
    assert answer.status_code == 200, answer.text
    listed = answer.get_json().get("warnings")
    assert listed != []
    return list(listed or [])


def unknown(name: str, meant: str = "") -> str:
    hint = f" Did you mean '{meant}'?" if meant else ""
    return f"The member '{name}' is unknown and was ignored.{hint}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("alias", "custom"),
        ("expires", "expiry"),
        ("name", "metatitle"),
        ("utm_source", "parameters"),
        ("MetaTitle", "metatitle"),
        ("pasword", "password"),
        ("webhook", ""),
        ("x" * 50, ""),
    ],
)
def test_an_unknown_member_of_a_link_is_named_with_the_one_that_was_meant(alice: Client, name: str, meant: str) -> None:
    assert warnings(alice, {"url": PAGE, name: "x"}) == [unknown(name, meant)]


@pytest.mark.parametrize(
    ("path", "members", "name", "meant"),
    [
        ("/api/pixel/add", PIXEL, "title", "name"),
        ("/api/bio/add", {"name": "Dana"}, "custom", "alias"),
        ("/api/campaign/add", {}, "domain", "name"),
        ("/api/bio/add", {"name": "Dana"}, "domain", ""),
        ("/api/key/add", {"name": "Dana", "scopes": ["links:read"]}, "domain", "domains"),
        ("/api/overlay/add", {"type": "poll", "name": "Dana"}, "text", "message"),
        ("/api/splash/add", {"name": "Dana"}, "url", "link"),
        ("/api/qr/add", {"type": "text", "data": "x"}, "color", "foreground"),
        ("/api/splash/add", {"name": "Dana"}, "image", "banner"),
    ],
)
def test_members_of_other_resources_too(
    alice: Client, path: str, members: dict[str, Any], name: str, meant: str
) -> None:
    assert warnings(alice, members | {name: "x"}, path) == [unknown(name, meant)]


def test_a_member_of_the_data_of_a_qr_code_is_named_with_its_path(alice: Client) -> None:
    code = {"type": "vcard", "data": {"fname": "Ada", "surname": "L", "phone": "112"}}
    assert warnings(alice, code, "/api/qr/add") == [unknown("data.surname", "data.lname")]


def test_members_that_were_not_sent_or_are_defined_cause_no_warning(alice: Client) -> None:
    link = alice.post("/api/url/add", {"url": PAGE, "alias": None, "slug": "", "description": "x"}).get_json()
    assert "warnings" not in link


def test_a_name_that_a_read_shows_causes_a_warning_only_without_the_member_that_it_stands_for(alice: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "custom": "sale"})
    path = f"/api/url/{link_id}/update"
    assert warnings(alice, {"alias": "shop", "id": 5, "date": "x", "clicks": 3}, path, "PUT") == [
        unknown("alias", "custom")
    ]
    both = {"alias": "shop", "custom": "shop", "longurl": PAGE, "url": PAGE, "title": "T", "metatitle": "T"}
    assert warnings(alice, both, path, "PUT") == []


@pytest.mark.parametrize(
    ("kind", "member", "value"),
    [("pixel", "type", "fbpixel"), ("domain", "domain", "https://x.example"), ("qr", "type", "sms")],
)
def test_a_member_that_cannot_be_changed_causes_a_warning_if_it_differs(
    alice: Client, sql: Sql, kind: str, member: str, value: str
) -> None:
    path = f"/api/{kind}/{factories.ALL[kind](sql, alice.id)}"
    read = alice.get(path).get_json()
    record = read.get("details", read["data"])
    assert warnings(alice, record | {member: value}, f"{path}/update", "PUT") == [
        f"The member '{member}' cannot be changed and was ignored."
    ]
    assert warnings(alice, record, f"{path}/update", "PUT") == []


def test_another_domain_of_a_campaign_causes_a_warning(alice: Client) -> None:
    campaign = alice.post("/api/campaign/add", {"name": "Spring"}).get_json()
    path = f"/api/campaign/{campaign['id']}/update"
    assert warnings(alice, {"name": "Spring", "domain": "Other"}, path, "PUT") == [
        "The member 'domain' cannot be changed and was ignored."
    ]
    assert warnings(alice, {"name": "Spring", "domain": "Spring"}, path, "PUT") == []


@pytest.mark.parametrize(("member", "value"), [("username", "alicia"), ("status", "admin")])
def test_a_changed_username_or_status_causes_a_warning(alice: Client, member: str, value: str) -> None:
    account = alice.get("/api/account").get_json()["data"]
    assert warnings(alice, account | {member: value}, "/api/account/update", "PUT") == [
        f"The member '{member}' cannot be changed and was ignored."
    ]


def test_the_number_and_the_length_of_warnings_are_limited(alice: Client) -> None:
    many = {f"unknown {number} {'x' * 100}": number for number in range(500)}
    sent = warnings(alice, {"url": PAGE} | many)
    assert len(sent) == 10
    assert max(map(len, sent)) < 120


def test_a_bulk_request_looks_for_no_hints_that_its_response_has_no_room_for(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = Mock(wraps=get_close_matches)  # takes half a millisecond
    monkeypatch.setattr("linkmgr.fields.unknown.get_close_matches", find)
    links = [
        {"url": PAGE, "geotarget": [{"location": f"{name}land{n}", "link": PAGE} for name in "bcdghjklmn"]}
        for n in range(5)
    ]
    assert len(warnings(alice, {"urls": links}, "/api/urls/bulk")) == MAX_WARNINGS
    assert find.call_count == MAX_WARNINGS


def test_an_error_has_no_warnings(alice: Client) -> None:
    assert "warnings" not in alice.post("/api/url/add", {"alias": "x"}).get_json()


# --- targets


def with_target(member: str, selector: str, label: str) -> dict[str, Any]:
    return {"url": PAGE, member: [{selector: label, "link": PAGE}]}


COUNTRY = "geotarget: '{}' is neither an English name nor an ISO code of a country, so it matches no visitor.{}".format
DEVICE = "devicetarget: '{}' is not a model, maker, system or kind of device, so it matches no visitor.{}".format
LANGUAGE = (
    "languagetarget: '{}' is not a language that browsers send. Use a code such as fr or pt-BR, or an English name.{}"
).format


@pytest.mark.parametrize(
    ("label", "meant"),
    [("Germny", "germany"), ("USA", "US"), ("England", "GB"), ("Deutschland", "DE"), ("xx", ""), ("Europe", "")],
)
def test_a_country_that_does_not_exist_causes_a_warning(alice: Client, label: str, meant: str) -> None:
    hint = f" Did you mean '{meant}'?" if meant else ""
    assert warnings(alice, with_target("geotarget", "location", label)) == [COUNTRY(label.lower(), hint)]


@pytest.mark.parametrize(("label", "meant"), [("iphnoe", "iphone"), ("toaster", ""), ("andriod", "android")])
def test_a_device_that_does_not_exist_causes_a_warning(alice: Client, label: str, meant: str) -> None:
    hint = f" Did you mean '{meant}'?" if meant else ""
    assert warnings(alice, with_target("devicetarget", "device", label)) == [DEVICE(label, hint)]


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("jp", "ja"),
        ("frnch", "french"),
        ("dothraki", ""),
        ("en-uk", ""),
        ("xx", ""),
        ("eng", "en"),
        ("Deutsch", "de"),
        ("français", "fr"),
    ],
)
def test_a_language_that_does_not_exist_causes_a_warning(alice: Client, label: str, meant: str) -> None:
    hint = f" Did you mean '{meant}'?" if meant else ""
    assert warnings(alice, with_target("languagetarget", "language", label)) == [LANGUAGE(label.lower(), hint)]


@pytest.mark.parametrize(
    "label", ["Germany", "de", "DE", "UK", "South Korea", "Republic of Korea", "Türkiye", "Turkey", "Czechia", "kosovo",
              "The Netherlands", "Côte d'Ivoire", "St Kitts and Nevis", "Bolivia (Plurinational State of)"]
)  # fmt: skip
def test_no_country_that_a_database_can_name_causes_a_warning(label: str) -> None:
    assert audience.country_problem(label.lower()) is None


def test_only_labels_that_are_stored_cause_a_warning(alice: Client) -> None:
    several = [{"location": "Atlantis", "link": PAGE}, {"location": "Peru", "link": PAGE}, {"location": "Nowhere"}]
    assert warnings(alice, {"url": PAGE, "geotarget": several}) == [
        "geotarget: an element without location and link was ignored.",
        COUNTRY("atlantis", ""),
    ]


@pytest.mark.parametrize(
    ("member", "element", "lacks"),
    [
        ("geotarget", {"country": "Peru", "link": PAGE}, "without location and link"),
        ("devicetarget", {"device": "iphone"}, "without device and link"),
        ("languagetarget", "fr", "without language and link"),
        ("parameters", {"key": "a", "value": "b"}, "without name and value"),
        ("pixels", "x", "that is not an id"),
    ],
)
def test_an_element_that_is_ignored_causes_one_warning(alice: Client, member: str, element: Any, lacks: str) -> None:
    assert warnings(alice, {"url": PAGE, member: [element, element]}) == [f"{member}: an element {lacks} was ignored."]


def test_an_unknown_member_of_a_deep_link_causes_a_warning(alice: Client) -> None:
    link = {"url": PAGE, "deeplink": {"auto": True, "ios": PAGE, "google": PAGE}}
    assert warnings(alice, link) == [unknown("deeplink.ios", "deeplink.apple")]


def test_an_unknown_member_of_a_link_on_a_bio_page_causes_a_warning(alice: Client) -> None:
    page = {"name": "Dana", "links": [{"title": "Shop", "url": PAGE, "icon": "x"}]}
    assert warnings(alice, page, "/api/bio/add") == [unknown("links.icon")]


# --- Wi-Fi passwords


@pytest.mark.parametrize(
    ("data", "warned"),
    [
        ({"password": "1234567"}, True),
        ({"password": "12345678"}, False),
        ({"password": "x" * 63}, False),
        ({"password": "x" * 64}, True),
        ({"password": "aB" * 32}, False),
        ({"password": "pässword"}, True),
        ({"password": "12345", "encryption": "WEP"}, False),
        ({"password": "x", "encryption": "nopass"}, False),
    ],
)
def test_a_wpa_password_of_the_wrong_length_causes_a_warning(
    app: Flask, alice: Client, data: dict[str, str], warned: bool
) -> None:
    code = {"type": "wifi", "data": {"ssid": "Guests"} | data}
    expected = [
        "data.password is not a WPA password, so devices will not connect. A WPA password has 8 to 63 ASCII characters,"
        " or 64 hexadecimal digits."
    ]
    qr_id = alice.add("/api/qr/add", {"type": "wifi", "data": {"ssid": "Guests"}})
    for sent, path, method in ((code, "add", "POST"), ({"data": code["data"]}, f"{qr_id}/update", "PUT")):
        assert warnings(alice, sent, f"/api/qr/{path}", method) == (expected if warned else [])
