"""Links under plan limits and under concurrency."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.own_plan import FEATURES

PAGE = "https://example.com/page"
OTHER = "https://example.org/other"


def test_an_existing_link_is_returned_at_the_limit(on_plan: Callable[..., Client]) -> None:
    carol = on_plan(links=1)
    first = carol.add("/api/url/add", {"url": PAGE})
    assert carol.add("/api/url/add", {"url": PAGE}) == first
    answer = carol.post("/api/url/add", {"url": f"{PAGE}/2"})
    assert answer.status_code == 400
    assert answer.get_json()["message"] == (
        "You have reached your plan's limit of 1 links. Delete one, or ask an administrator for another plan."
    )


@pytest.mark.parametrize("feature", FEATURES)
def test_members_that_the_plan_lacks_are_rejected_but_may_stay_and_be_removed(
    on_plan: Callable[..., Client], sql: Sql, feature: str
) -> None:
    said, members = FEATURES[feature]
    sentence = f"Your plan does not include {said}. Ask an administrator for another plan."
    carol = on_plan(**{feature: {"enabled": "0"}})
    link_id = carol.add("/api/url/add", {"url": PAGE})
    for answer in (
        carol.post("/api/url/add", {"url": PAGE} | members),
        carol.put(f"/api/url/{link_id}/update", members),
    ):
        assert (answer.status_code, answer.get_json()["message"]) == (403, sentence)
    assert carol.get("/api/urls").get_json()["data"]["result"] == 1
    sql("UPDATE plans SET limits = (limits::jsonb - %(name)s::text)::json WHERE name = 'Own' RETURNING 1", name=feature)
    link_id = carol.add("/api/url/add", {"url": PAGE} | members)
    sql("UPDATE plans SET limits = jsonb_insert(limits::jsonb, ARRAY[%(name)s::text], '{\"enabled\": \"0\"}')::json"
        " WHERE name = 'Own' RETURNING 1", name=feature)  # fmt: skip
    emptied: dict[str, Any] = {name: [] for name in members if name != "custom"}
    for sent in (members, {"description": "x"}, emptied):
        assert carol.put(f"/api/url/{link_id}/update", sent).status_code == 200


@pytest.mark.parametrize(
    ("feature", "members"),
    [
        ("geo", {"geotarget": [{"location": "Canada", "link": PAGE}, {"location": "France", "link": PAGE}]}),
        ("device", {"devicetarget": [{"device": "iPhone", "link": PAGE}, {"device": "Android", "link": PAGE}]}),
        ("geo", {"rules": [{"when": {name: ["Peru"]}, "url": PAGE} for name in ("country", "city")]}),
        ("device", {"rules": [{"when": {name: ["iOS"]}, "url": PAGE} for name in ("browser", "os")]}),
        ("parameters", {"parameters": [{"name": "a", "value": "b"}, {"name": "c", "value": "d"}]}),
    ],
)
@pytest.mark.parametrize("in_bulk", [False, True])
def test_after_a_downgrade_elements_can_be_removed_but_not_changed(
    *, on_plan: Callable[..., Client], sql: Sql, feature: str, members: dict[str, list[dict[str, str]]], in_bulk: bool
) -> None:
    carol = on_plan()
    link_id = carol.add("/api/url/add", {"url": PAGE} | members)
    sql("UPDATE plans SET limits = jsonb_set(limits::jsonb, ARRAY[%(name)s::text], '{\"enabled\": \"0\"}')::json"
        " WHERE name = 'Own' RETURNING 1", name=feature)  # fmt: skip

    def is_stored(**sent: list[dict[str, str]]) -> bool:
        if in_bulk:
            answer = carol.put("/api/urls/bulk", {"ids": [link_id], "data": sent})
            return bool(answer.get_json()["updated"])
        return carol.put(f"/api/url/{link_id}/update", sent).status_code == 200

    [name], [(first, second)] = members, members.values()
    key = {"parameters": "value", "rules": "url"}.get(name, "link")
    assert not is_stored(**{name: [first | {key: OTHER}]})
    assert not is_stored(
        **{name: [first, second, (first if key == "url" else dict.fromkeys(first, "Peru")) | {key: OTHER}]}
    )
    if name == "parameters":
        assert not is_stored(parameters=[{"name": first["value"], "value": first["name"]}])
    assert is_stored(**{name: [second]})
    assert not is_stored(**{name: [first, second]})
    assert len(carol.get(f"/api/url/{link_id}").get_json()["details"][name]) == 1
