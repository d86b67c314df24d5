"""Targets of links: valid URLs, and targets by device, country, language and app."""

from contextlib import suppress
from typing import Any

import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError

from linkmgr.fields.urls import normalize_target, split_ascii
from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, refused, stored

OTHER = "https://example.org/"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (None, "is required"),
        ("", "is required"),
        (5, "must be a string"),
        ("example.com", "must be a URL that begins with http:// or https://"),
        ("javascript:alert(1)", "must be a URL that begins with http:// or https://"),
        ("https://user@example.com", "must not contain a user name or password"),
        ("https://example.com/a b", "must not contain spaces, control characters or backslashes"),
        ("https://example.com/" + "x" * 2048, "must be at most 2048 characters"),
        (f"{BASE_URL}/abc", "must not point to this service"),
    ],
)
def test_an_invalid_target_url_is_rejected(alice: Client, url: Any, problem: str) -> None:
    assert refused(alice, url=url) == f"url {problem}."
    if isinstance(url, str) and url:
        assert (
            refused(alice, geotarget=[{"location": "Canada", "link": url}])
            == f"geotarget contains an invalid link: it {problem}."
        )
        assert refused(alice, deeplink={"apple": url}) == f"deeplink contains an invalid link: it {problem}."


BRANDED = "https://go.example.net:444/abc"


@pytest.mark.parametrize(
    "members",
    [
        {"url": BRANDED},
        {"url": "http://GO.example.net"},
        {"url": BRANDED, "description": "more"},
        {"geotarget": [{"location": "x", "link": BRANDED}]},
        {"devicetarget": [{"device": "x", "link": BRANDED}]},
        {"languagetarget": [{"language": "x", "link": BRANDED}]},
        {"deeplink": {"apple": BRANDED}},
        {"deeplink": {"google": BRANDED}},
    ],
)
def test_no_target_is_on_a_branded_domain(alice: Client, bob: Client, members: dict[str, Any]) -> None:
    bob.add("/api/domain/add", {"domain": "https://go.example.net"})
    sentence = "A link cannot redirect to a branded domain, because this can cause a redirect loop."
    assert refused(alice, **members) == sentence
    link_id = alice.add("/api/url/add", {"url": PAGE})
    answer = alice.put(f"/api/url/{link_id}/update", members)
    assert (answer.status_code, answer.get_json()["message"]) == (400, sentence)
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


@pytest.mark.parametrize(
    ("member", "named", "column"),
    [
        ("geotarget", "location", "locations"),
        ("devicetarget", "device", "devices"),
        ("languagetarget", "language", "languages"),
    ],
)
def test_malformed_elements_are_ignored(alice: Client, sql: Sql, member: str, named: str, column: str) -> None:
    sent = [
        {named: "  CAnada ", "link": OTHER},
        {named: "x"},
        {"link": OTHER},
        {named: "", "link": OTHER},
        {named: "y", "link": ""},
        {named: 5, "link": OTHER},
        {named: "z" * 101, "link": OTHER},
        {named: "z", "link": {"link": OTHER}},
        {"other": "z", "link": OTHER},
        "text", 5, None, [], {}, True,
        {named: "twice", "link": PAGE},
        {named: "Twice", "link": OTHER},
    ]  # fmt: skip
    assert stored(sql, alice, **{member: sent})[column] == {"canada": OTHER, "twice": OTHER}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ([{"name": "aff", "value": "3"}, {"name": "n", "value": 4}, {"name": "e", "value": ""}],
         [["aff", "3"], ["n", "4"], ["e", ""]]),
        ([{"name": "a", "value": "1"}, {"name": "a", "value": "2"}], [["a", "1"], ["a", "2"]]),
        ([{"device": "gtm_source", "link": "api"}, {"name": "a"}, {"value": "b"}, {"name": "", "value": "b"},
          {"name": "a", "value": True}, {"name": "a", "value": None}, {"name": "x" * 101, "value": ""},
          "a=b", 1, None], []),
    ],
)  # fmt: skip
def test_parameters_are_stored_in_their_order(alice: Client, sql: Sql, sent: Any, kept: Any) -> None:
    assert stored(sql, alice, parameters=sent)["parameters"] == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({}, {}),
        ([], {}),
        ({"auto": False, "apple": "", "google": None}, {}),
        ({"auto": None, "apple": None, "other": 1}, {}),
        ({"auto": True, "apple": OTHER, "google": None}, {"auto": True, "apple": OTHER}),
    ],
)
def test_app_links_are_stored(alice: Client, sql: Sql, sent: Any, kept: Any) -> None:
    assert stored(sql, alice, deeplink=sent)["deeplink"] == kept


WRONG_AUTO: list[Any] = ["yes", "", 1, 0, 0.5, [], {}]
WRONG_STORE: list[Any] = [5, 0, True, False, [], {}, [OTHER], {"url": OTHER}]


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        *(({"auto": auto, "other": 1}, "must be an object whose auto is true or false") for auto in WRONG_AUTO),
        *(({"apple": store}, "must be an object whose apple is a URL") for store in WRONG_STORE),
        *(
            ({"auto": True, "apple": OTHER, "google": store}, "must be an object whose google is a URL")
            for store in WRONG_STORE
        ),
    ],
)
def test_app_links_of_a_wrong_type_are_rejected(alice: Client, sent: Any, problem: str) -> None:
    assert refused(alice, deeplink=sent) == f"deeplink {problem}."
    link_id = alice.add("/api/url/add", {"url": PAGE, "deeplink": {"apple": OTHER}})
    changed = alice.put(f"/api/url/{link_id}/update", {"deeplink": sent})
    assert (changed.status_code, changed.get_json()["message"]) == (400, f"deeplink {problem}.")


PORT = "must have a port from 1 to 65535"


@pytest.mark.parametrize("url", ["http://example.com:0", "https://example.com:00000/x", "http://[2001:db8::1]:0/"])
def test_port_0_is_rejected_in_every_url(alice: Client, url: str) -> None:
    def problem(path: str, **members: Any) -> str:
        answer = alice.post(path, members)
        assert answer.status_code == 400
        return str(answer.get_json()["message"])

    link = {"url": PAGE}
    assert problem("/api/url/add", url=url) == f"url {PORT}."
    assert problem("/api/url/add", **link, metaimage=url) == f"metaimage {PORT}."
    assert problem("/api/url/add", **link, deeplink={"google": url}) == f"deeplink contains an invalid link: it {PORT}."
    assert problem("/api/url/add", **link, domain=url) == f"domain {PORT}."
    for member in ("redirectroot", "redirect404"):
        assert problem("/api/domain/add", domain="https://go.example.net", **{member: url}) == f"{member} {PORT}."
    assert problem("/api/domain/add", domain=url) == f"domain {PORT}."
    assert problem("/api/splash/add", name="Splash", banner=url) == f"banner {PORT}."
    assert problem("/api/overlay/add", type="message", name="Overlay", link=url) == f"link {PORT}."
    assert "URL of an image" in problem("/api/overlay/add", type="image", name="Overlay", message=url)
    assert PORT in problem("/api/bio/add", name="Bio", links=[{"title": "x", "url": url}])
    assert PORT in problem("/api/qr/add", type="link", data=url)
    assert PORT in problem("/api/qr/add", type="vcard", data={"fname": "x", "site": url})
    assert PORT in problem("/api/qr/add", type="text", data="x", logo=url)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(
    st.sampled_from(["example.com", "a-.b", "xn--bcher-kva.example", "xn--a.b", "1.2", "A.b", "a..b"]),
    st.sampled_from(["", "/", "?", "/a?b", "/a?"]),
    st.text("aB9-._~%!$&'()*+,/:;=@?#[]\\ \"<>^`{|}é", max_size=6),
)
def test_a_canonical_url_is_recognized_as_such(app: Flask, host: str, path: str, end: str) -> None:
    with app.app_context(), suppress(ValidationError):
        url = f"https://{host}{path}{end}"
        assert normalize_target(url) == split_ascii(url).geturl()
