"""`warnings` in the responses to writes: values that are accepted but cannot have the effect that was meant."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any
from unittest.mock import Mock

import pytest
from flask import Flask

from linkmgr.core.web.request import MAX_WARNINGS
from linkmgr.visits import audience
from tests.conftest import Client
from tests.support import factories
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE


def warnings(client: Client, members: dict[str, Any], path: str = "/api/url/add", method: str = "POST") -> list[str]:
    answer = client.call(method, path, members)
    assert answer.status_code == 200, answer.text
    listed = answer.get_json().get("warnings")
    assert listed != []
    return list(listed or [])


def unknown(name: str, meant: str = "") -> str:
    hint = f" Did you mean '{meant}'?" if meant else ""
    return f"The member '{name}' is unknown and was ignored.{hint}"


DEEP_LINK = {"auto": True, "ios": PAGE, "google": PAGE}
VCARD = {"fname": "Ada", "surname": "L", "phone": "112"}


@pytest.mark.parametrize(
    ("word", "members", "name", "meant"),
    [
        ("url", {"alias": "x"}, "alias", "custom"),
        ("url", {"expires": "x"}, "expires", "expiry"),
        ("url", {"name": "x"}, "name", "metatitle"),
        ("url", {"utm_source": "x"}, "utm_source", "parameters"),
        ("url", {"MetaTitle": "x"}, "MetaTitle", "metatitle"),
        ("url", {"pasword": "x"}, "pasword", "password"),
        ("url", {"webhook": "x"}, "webhook", ""),
        ("url", {"x" * 50: "x"}, "x" * 50, ""),
        ("url", {"deeplink": DEEP_LINK}, "deeplink.ios", "deeplink.apple"),
        ("pixel", {"title": "x"}, "title", "name"),
        ("bio", {"custom": "x"}, "custom", "alias"),
        ("bio", {"domain": "x"}, "domain", ""),
        ("bio", {"links": [{"title": "Shop", "url": PAGE, "icon": "x"}]}, "links.icon", ""),
        ("key", {"domain": "x"}, "domain", "domains"),
        ("overlay", {"text": "x"}, "text", "message"),
        ("splash", {"url": "x"}, "url", "link"),
        ("splash", {"image": "x"}, "image", "banner"),
        ("qr", {"color": "x"}, "color", "foreground"),
        ("qr", {"type": "vcard", "data": VCARD}, "data.surname", "data.lname"),
    ],
)
def test_an_unknown_member_is_named_with_the_one_that_was_meant(
    alice: Client, word: str, members: dict[str, Any], name: str, meant: str
) -> None:
    assert warnings(alice, LEAST[word] | members, f"/api/{word}/add") == [unknown(name, meant)]


STRICT = {"Prefer": "respond-async, Handling=strict"}


@pytest.mark.parametrize(
    ("method", "path", "members", "sentence"),
    [
        ("POST", "/api/url/add", {"url": PAGE, "alias": "x"}, "Did you mean 'custom'? 'alias' is not a member"),
        ("POST", "/api/url/add", {"url": PAGE, "webhook": "x"}, "'webhook' is not a member"),
        ("POST", "/api/url/add", {"url": PAGE, "deeplink": {"auto": True, "ios": PAGE}}, "Did you mean 'deeplink."),
        ("POST", "/api/url/add?custom=x", {"url": PAGE}, "'custom' is not a query parameter"),
        ("GET", "/api/urls?search=x", None, "Did you mean 'q'? 'search' is not a query parameter"),
        ("GET", "/api/stats?perod=7d", None, "Did you mean 'period'?"),
    ],
)
def test_a_client_that_prefers_strict_handling_gets_an_error_and_nothing_changes(
    alice: Client, method: str, path: str, members: Any, sentence: str
) -> None:
    refused = alice.call(method, path, members, headers=STRICT)
    assert (refused.status_code, refused.get_json()["code"]) == (400, "invalid")
    assert refused.get_json()["message"].startswith(sentence)
    assert alice.get("/api/urls").get_json()["data"]["result"] == 0


def test_a_record_can_be_sent_back_with_strict_handling(alice: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "custom": "sale"})
    record = alice.get(f"/api/url/{link_id}").get_json()["record"]
    assert alice.call("PUT", f"/api/url/{link_id}/update", record, headers=STRICT).status_code == 200


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
    assert warnings(alice, {"domain": "Spring"}, "/api/campaign/add") == [unknown("domain", "name")]
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
    monkeypatch.setattr("linkmgr.core.fields.unknown.get_close_matches", find)
    links = [
        {"url": PAGE, "geotarget": [{"location": f"{name}land{n}", "link": PAGE} for name in "bcdghjklmn"]}
        for n in range(5)
    ]
    assert len(warnings(alice, {"urls": links}, "/api/urls/bulk")) == MAX_WARNINGS
    assert find.call_count == MAX_WARNINGS


def test_an_error_has_no_warnings(alice: Client) -> None:
    assert "warnings" not in alice.post("/api/url/add", {"alias": "x"}).get_json()


# --- targets


COUNTRY = "geotarget: '{}' is neither an English name nor an ISO code of a country, so it matches no visitor.{}".format
DEVICE = "devicetarget: '{}' is not a model, maker, system or kind of device, so it matches no visitor.{}".format
LANGUAGE = (
    "languagetarget: '{}' is not a language that browsers send. Use a code such as fr or pt-BR, or an English name.{}"
).format


@pytest.mark.parametrize(
    ("selector", "warning", "label", "meant"),
    [
        *(("location", COUNTRY, *pair) for pair in (("Germny", "germany"), ("USA", "US"), ("England", "GB"))),
        *(("location", COUNTRY, *pair) for pair in (("Deutschland", "DE"), ("xx", ""), ("Europe", ""))),
        *(("device", DEVICE, *pair) for pair in (("iphnoe", "iphone"), ("toaster", ""), ("andriod", "android"))),
        *(("language", LANGUAGE, *pair) for pair in (("jp", "ja"), ("frnch", "french"), ("dothraki", ""))),
        *(("language", LANGUAGE, *pair) for pair in (("en-uk", ""), ("xx", ""), ("eng", "en"), ("Deutsch", "de"))),
        ("language", LANGUAGE, "français", "fr"),
    ],
)
def test_a_selector_that_matches_no_visitor_causes_a_warning(
    alice: Client, selector: str, warning: Callable[..., str], label: str, meant: str
) -> None:
    member = {"location": "geotarget"}.get(selector, f"{selector}target")
    hint = f" Did you mean '{meant}'?" if meant else ""
    sent = {"url": PAGE, member: [{selector: label, "link": PAGE}]}
    assert warnings(alice, sent) == [warning(label.lower(), hint)]


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
