"""`forwardquery`: the query of a short URL is added to that of the target."""

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmgr.core.fields.urls import MAX_URL
from tests.conftest import Client
from tests.support.factories import Sql, row
from tests.support.shortlinks import BRANDED, Make, Short, add

_names = st.sampled_from(["utm_source", "ref", "ä b", "q[]"])
_letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_pairs = st.lists(st.tuples(_names, st.text(_letters, max_size=9)), max_size=4)
_raw = st.text(_letters, max_size=20) | st.just("x" * 2000) | st.just("ref&ref=%zz&&=")


def _values(query: str) -> dict[str, list[str]]:
    return parse_qs(query, keep_blank_values=True)


@pytest.fixture
def forwarding(short: Make) -> Short:
    return short(forwardquery=True)


@given(_pairs, _pairs, _pairs.map(urlencode) | _raw, st.sampled_from(["", "#", "#a?b=1"]))
def test_values_of_the_visitor_replace_those_of_equal_names(
    forwarding: Short, own: Any, parameters: Any, sent: str, fragment: str
) -> None:
    forwarding.sql(
        "UPDATE links SET url = %(url)s, parameters = %(parameters)s WHERE id = %(id)s RETURNING 1",
        id=forwarding.id,
        url=f"https://example.com/a?{urlencode(own)}{fragment}",
        parameters=json.dumps(parameters),
    )
    location = forwarding.app.test_client().get(forwarding.path, query_string=sent).headers["Location"]
    kept = [pair for pair in own if pair[0] not in dict(parameters)]
    led_to, all_own = urlsplit(location), urlencode([*kept, *parameters])
    is_short = len(f"https://example.com/a?{all_own}&{quote(sent)}{fragment}") <= MAX_URL
    assert location.isascii()
    assert location.isprintable()
    assert (led_to.netloc, led_to.path, led_to.fragment) == ("example.com", "/a", fragment[1:])
    assert _values(led_to.query) == _values(all_own) | (_values(sent) if is_short else {})


@pytest.mark.parametrize("columns", [{}, {"deeplink": {"auto": True, "apple": "https://apps.apple.com/app/id1"}}])
def test_a_link_without_forwardquery_and_our_own_marks_forward_nothing(short: Make, columns: dict[str, Any]) -> None:
    assert short(**columns).redirect_target(path="?a=1") == "https://example.com/page"
    marked = short(**columns, forwardquery=True)
    assert marked.redirect_target(path="?qr&scanned=abc") == "https://example.com/page"
    assert marked.redirect_target(path="?qr&a=1&qr=2") == "https://example.com/page?a=1&qr=2"


def test_a_domain_has_the_default_of_its_new_links(alice: Client, sql: Sql) -> None:
    row(sql, "domains", user_id=alice.id, scheme="https", host=BRANDED, forwardquery=True)
    bulk = {"urls": [{"url": "https://example.com", "domain": BRANDED}, {"url": "https://example.com"}]}
    made = [
        *(add(alice, domain=BRANDED, **sent)["id"] for sent in ({}, {"forwardquery": False})),
        add(alice)["id"],
        *(result["id"] for result in alice.post("/api/urls/bulk", bulk).get_json()["results"]),
    ]
    forwards = [alice.get(f"/api/url/{link_id}").get_json()["details"]["forwardquery"] for link_id in made]
    assert forwards == [True, False, False, True, False]
