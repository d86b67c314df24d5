"""Where a link may lead, and by what."""

from typing import Any

import pytest

from tests.conftest import BASE_URL, Client
from tests.factories import Sql
from tests.test_url_members import PAGE, refused, stored

OTHER = "https://example.org/"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (None, "is required"),
        ("", "is required"),
        (5, "must be a string"),
        ("example.com", "must be a URL that begins with http:// or https://"),
        ("javascript:alert(1)", "must be a URL that begins with http:// or https://"),
        ("https://user@example.com", "must not hold a user name or a password"),
        ("https://example.com/a b", "must not hold spaces, control characters or backslashes"),
        ("https://example.com/" + "x" * 2048, "must be at most 2048 characters"),
        (f"{BASE_URL}/abc", "must not lead back to this service"),
    ],
)
def test_a_url_that_nobody_can_be_sent_to_is_refused(alice: Client, url: Any, problem: str) -> None:
    assert refused(alice, url=url) == f"url {problem}."
    if isinstance(url, str) and url:
        assert (
            refused(alice, geotarget=[{"location": "Canada", "link": url}]) == f"geotarget holds a link that {problem}."
        )
        assert refused(alice, deeplink={"apple": url}) == f"deeplink holds a link that {problem}."


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
    sentence = "No target of a link may be on a branded domain, which could send the visitor in a circle."
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
def test_elements_of_another_form_are_ignored(alice: Client, sql: Sql, member: str, named: str, column: str) -> None:
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
def test_parameters_are_kept_in_their_order(alice: Client, sql: Sql, sent: Any, kept: Any) -> None:
    assert stored(sql, alice, parameters=sent)["parameters"] == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({}, {}),
        ([], {}),
        ({"auto": False, "apple": "", "google": None}, {}),
        ({"auto": "yes", "other": 1}, {}),
        ({"auto": True, "apple": OTHER, "google": 5}, {"auto": True, "apple": OTHER}),
    ],
)
def test_app_links_are_kept(alice: Client, sql: Sql, sent: Any, kept: Any) -> None:
    assert stored(sql, alice, deeplink=sent)["deeplink"] == kept
