"""Links: create, list, read, update and delete."""

import re
from typing import Any

import psycopg2
import pytest

from linkmgr.repository import links as urls
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import details
from tests.support.races import during
from tests.support.shortlinks import PAGE, add


def listed(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/urls{query}").get_json()["data"]["urls"]
    return found


def test_a_link_gets_an_alias_that_spells_no_word(alice: Client) -> None:
    added = add(alice)
    assert re.fullmatch(
        rf"{re.escape(BASE_URL)}/[^\W\d_aeiouAEIOU]{{2}}(\d[^\W\d_aeiouAEIOU]{{2}}){{2}}", added["short"]
    )
    assert added.items() >= {"error": 0, "id": added["id"], "shorturl": added["short"], "short": added["short"]}.items()


def test_links_get_consecutive_ids(alice: Client) -> None:
    first = add(alice, title="One")["id"]
    assert [add(alice, title="Two")["id"], add(alice, title="Three")["id"]] == [first + 1, first + 2]


def test_a_link_is_listed_as_it_was_created(alice: Client, sql: Sql) -> None:
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    added = add(alice, custom="Spring", metatitle="Title", description="About", campaign=campaign, channel=channel)
    [link] = listed(alice)
    assert link.pop("updated") == link["date"]
    assert len(link.pop("date")) == len("2026-11-20 12:00:00")
    assert link == {
        "id": added["id"],
        "alias": "Spring",
        "shorturl": f"{BASE_URL}/Spring",
        "longurl": PAGE,
        "title": "Title",
        "description": "About",
        "clicks": 0,
        "uniqueclicks": 0,
        "domain": BASE_URL,
        "campaign": campaign,
        "channel": [channel],
        "imported_clicks": None,
        "health": {"state": "unchecked", "reason": "", "url": "", "title": "", "checked": None},
    }


def test_a_link_is_returned_with_its_targets_by_name_and_its_statistics(alice: Client, sql: Sql) -> None:
    geo = [{"location": "Canada", "link": "https://example.ca"}]
    link_id = add(alice, geotarget=geo, devicetarget=[{"device": "iPhone", "link": PAGE}])["id"]
    top = '{"country": {"Canada": 3}}'
    sql("INSERT INTO totals VALUES (%(id)s, 3, 0, %(top)s) RETURNING 1", id=link_id, top=top)
    answer = alice.get(f"/api/url/{link_id}").get_json()
    assert (answer["error"], answer["id"], answer["details"]["imported_clicks"]) == (0, link_id, None)
    assert answer["details"]["location"] == {"canada": "https://example.ca"}
    assert answer["details"]["device"] == {"iphone": PAGE}
    assert (answer["data"]["clicks"], answer["data"]["topCountries"]) == (3, {"Canada": "3"})


def test_a_link_on_a_domain_has_a_short_url_there(alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": "https://go.example.net"})
    for number, domain in enumerate(["go.example.net", "https://GO.example.net/", "http://go.example.net"]):
        added = add(alice, domain=domain, custom=f"abc{number}")
        assert added["shorturl"] == f"https://go.example.net/abc{number}"
        assert details(alice, added["id"])["shorturl"] == added["shorturl"]
        assert listed(alice)[0]["domain"] == "https://go.example.net"
    assert add(alice, domain=BASE_URL, custom="abc0")["shorturl"] == f"{BASE_URL}/abc0"
    assert add(alice, domain="127.0.0.1:5000", custom="abc1")["shorturl"] == f"{BASE_URL}/abc1"


def test_the_same_url_with_no_other_members_returns_the_same_link(alice: Client, bob: Client) -> None:
    first = add(alice)
    assert (first["is_new"], first.get("warnings")) == (True, None)
    nothing = {"custom": "", "domain": "", "pixels": [], "geotarget": [], "deeplink": [], "campaign": 0,
               "type": "direct", "status": "public", "password": None}  # fmt: skip
    for members in ({}, nothing, {"url": "https://EXAMPLE.com/page"}):
        again = add(alice, **members)
        assert again.pop("warnings")[0].startswith("You already have a link of this URL alone")
        assert again == first | {"is_new": False}
    assert add(alice, description="more")["id"] != first["id"]
    assert add(bob)["id"] != first["id"]
    assert alice.get("/api/urls").get_json()["data"]["result"] == 2


def test_the_url_of_a_link_that_is_being_deleted_becomes_a_new_link(
    alice: Client, raw: psycopg2.extensions.connection
) -> None:
    first = add(alice)
    assert during(raw, f"DELETE FROM links WHERE id = {first['id']}", lambda: add(alice))["id"] != first["id"]
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


def test_a_generated_alias_that_is_taken_is_generated_again(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["same", "same", "other", "same", "same", "third"])
    monkeypatch.setattr(urls, "new_alias", lambda: next(made))
    shorts = [add(alice, url=f"{PAGE}/{n}")["short"] for n in range(2)] + [add(alice, description="x")["short"]]
    assert shorts == [f"{BASE_URL}/{alias}" for alias in ("same", "other", "third")]


def test_an_update_ignores_and_clears_members(alice: Client, sql: Sql) -> None:
    campaign, overlay = factories.campaign(sql, alice.id), factories.overlay(sql, alice.id)
    made = {"type": factories.splash(sql, alice.id), "pixels": [factories.pixel(sql, alice.id)], "campaign": campaign,
            "status": "private", "deeplink": {"auto": True}, "parameters": [{"name": "a", "value": "1"}],
            "expiry": "2030-01-01", "metatitle": "T", "metaimage": f"{PAGE}.png"}  # fmt: skip
    link_id = add(alice, custom="Spring", **made)["id"]
    empty: dict[str, Any] = {"pixels": [], "deeplink": {}, "parameters": [], "metatitle": "", "metaimage": ""}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"url": None, "custom": ""}, {}),
        (empty, empty | {"title": ""}),
        ({"type": f"overlay-{overlay}"}, {"type": f"overlay-{overlay}"}),
        ({"campaign": 0}, {"campaign": None}),
        ({"campaign": str(campaign)}, {"campaign": campaign}),
        ({"campaign": ""}, {"campaign": None}),
        ({"expiry": ""}, {"expiry": None}),
    ]
    before = details(alice, link_id)
    for sent, changed in cases:
        answer = alice.put(f"/api/url/{link_id}/update", sent).get_json()
        before |= changed | {"updated": answer["record"]["updated"]}
        assert details(alice, link_id) == before, sent
        warnings = ["The member 'url' is null, which means not sent, so it was not changed."]
        assert answer.pop("warnings", []) == (warnings if "url" in sent else [])
        assert answer == alice.get(f"/api/url/{link_id}").get_json() | {
            "error": 0,
            "message": "Link has been updated successfully.",
            "id": link_id,
            "short": f"{BASE_URL}/Spring",
            "shorturl": f"{BASE_URL}/Spring",
        }


@pytest.fixture
def shelf(alice: Client, bob: Client, sql: Sql) -> list[int]:
    """Three links of alice, the second with the most visits, and one of bob."""
    alice.add("/api/domain/add", {"domain": "https://go.example.net"})
    made = [
        add(alice, url="https://example.com/100%_real", custom="first")["id"],
        add(alice, custom="Second", metatitle="Straße in ROME")["id"],
        add(alice, custom="first", domain="go.example.net")["id"],
    ]
    add(bob, custom="rome1")
    for link_id, clicks in zip(made, (2, 9, 2), strict=True):
        sql("INSERT INTO totals VALUES (%(id)s, %(n)s, 1) RETURNING 1", id=link_id, n=clicks)
    return made


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("", [2, 1, 0]),
        ("?order=date", [2, 1, 0]),
        ("?order=click", [1, 2, 0]),
        ("?order=click&limit=1&page=2", [2]),
        ("?q=example.com&order=click", [1, 2, 0]),
        ("?q=nothing", []),
    ],
)
def test_a_list_matches_the_query(alice: Client, shelf: list[int], query: str, places: list[int]) -> None:
    data = alice.get(f"/api/urls{query}").get_json()["data"]
    assert [link["id"] for link in data["urls"]] == [shelf[place] for place in places]
    if "page" not in query:
        assert data["result"] == len(places)


def test_the_visits_are_listed(alice: Client, shelf: list[int]) -> None:
    assert [(link["clicks"], link["uniqueclicks"]) for link in listed(alice)] == [(2, 1), (9, 1), (2, 1)]


@pytest.mark.parametrize(
    "query", ["?order=%00", "?order=", "?order=hits", "?q=" + "x" * 2049, "?short=" + "x" * 2049, "?q=%00"]
)
def test_an_invalid_query_is_rejected(alice: Client, query: str) -> None:
    assert alice.get(f"/api/urls{query}").status_code == (200 if query == "?order=" else 400)
