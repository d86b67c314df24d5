"""Random values in the body of a link and random statement settings never cause a 500."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkmgr.resources.urls import Link
from tests.conftest import Client
from tests.support.operations import CALLS

pytestmark = pytest.mark.slow

PAGE = "https://example.com/page"
COMPLETE = {  # all members except those that name other rows
    name: value
    for name, value in next(call for call in CALLS if call.path == "/api/url/add").complete().items()
    if name not in ("url", "domain", "type", "pixels", "campaign", "channel")
}

words = st.sampled_from(["location", "device", "language", "link", "name", "value", "auto", "apple", "google", "x"])
texts = st.sampled_from([PAGE, "", "overlay-1", "2030-01-01", "http://[", "//", "a@b", "9" * 30, "٣"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(list(Link.updates()().fields)), values, max_size=3)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(added=bodies, changed=bodies)
def test_any_values_are_accepted_or_rejected(alice: Client, added: dict[str, Any], changed: dict[str, Any]) -> None:
    assert alice.post("/api/url/add", {"url": PAGE} | added).status_code in (200, 400)
    link_id = alice.add("/api/url/add", {"url": PAGE, "description": "to change"})
    assert alice.put(f"/api/url/{link_id}/update", changed).status_code in (200, 400)
    assert alice.get(f"/api/url/{link_id}").status_code == 200


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=st.dictionaries(st.sampled_from(["q", "short", "order", "limit", "page"]), texts))
def test_any_query_is_answered_or_rejected(alice: Client, query: dict[str, str]) -> None:
    assert alice.get("/api/urls", query_string=query).status_code in (200, 400)


def test_links_work_without_prepared_statements(
    make_app: Callable[..., Flask], register: Callable[..., Client]
) -> None:
    carol = register("carol", via=make_app(prepare="0"))
    assert carol.add("/api/url/add", {"url": PAGE}) == carol.add("/api/url/add", {"url": PAGE})
    link_id = carol.add("/api/url/add", {"url": PAGE} | COMPLETE)
    changes: list[dict[str, Any]] = [{}, COMPLETE, {"pixels": []}]
    for sent in changes:
        assert carol.put(f"/api/url/{link_id}/update", sent).status_code == 200
    for query in ("", "?q=example", "?order=click", f"?short={PAGE}"):
        assert carol.get(f"/api/urls{query}").status_code == 200
    assert carol.delete(f"/api/url/{link_id}/delete").status_code == 200
