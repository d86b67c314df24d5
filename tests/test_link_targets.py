"""Targets of links: valid URLs, and targets by device, country, language and app."""

from contextlib import suppress
from typing import Any

import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError

from linkmgr.core.fields.urls import normalize_target, split_ascii
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, refused, stored

OTHER = "https://example.org/"


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
        {"rules": [{"when": {"ip": ["192.0.2.1"]}, "url": BRANDED}]},
        {"expiredurl": BRANDED},
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
    ("member", "named"), [("geotarget", "location"), ("devicetarget", "device"), ("languagetarget", "language")]
)
def test_malformed_elements_are_ignored(alice: Client, sql: Sql, member: str, named: str) -> None:
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
    assert stored(sql, alice, **{member: sent})[member] == {"canada": OTHER, "twice": OTHER}


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


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (r"https://example.org/a?path=C:\dir\&b=1", "https://example.org/a?path=C:%5Cdir%5C&b=1"),
        (r"https://example.org?\@x.example", "https://example.org?%5C@x.example"),
        (r"https://example.org/#\a", "https://example.org/#%5Ca"),
    ],
)
def test_a_backslash_in_a_query_is_encoded(alice: Client, sql: Sql, sent: str, kept: str) -> None:
    assert stored(sql, alice, url=sent)["url"] == kept


@pytest.mark.parametrize("url", [r"https://example.org\@x.example/?a", r"https://example.org/a\b?c", r"https:\\x.org"])
def test_a_backslash_that_browsers_read_as_a_slash_is_refused(alice: Client, url: str) -> None:
    assert refused(alice, url=url) == "url must not contain spaces, control characters or backslashes."


@settings(max_examples=300)
@given(
    st.sampled_from(["example.com", "a-.b", "xn--bcher-kva.example", "xn--a.b", "1.2", "A.b", "a..b"]),
    st.sampled_from(["", "/", "?", "/a?b", "/a?"]),
    st.text("aB9-._~%!$&'()*+,/:;=@?#[]\\ \"<>^`{|}é", max_size=6),
)
def test_a_canonical_url_is_recognized_as_such(app: Flask, host: str, path: str, end: str) -> None:
    with app.app_context(), suppress(ValidationError):
        url = f"https://{host}{path}{end}"
        assert normalize_target(url) == split_ascii(url).geturl()
