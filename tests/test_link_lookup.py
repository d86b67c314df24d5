"""GET /api/urls?short=: one link, found by its short URL."""

from typing import Any

import pytest

from tests.conftest import BASE_URL, Client
from tests.support.shortlinks import PAGE, add

HOST = BASE_URL.partition("://")[2]
BRANDED = "go.example.net"


@pytest.fixture
def link_ids(alice: Client, bob: Client) -> dict[str, int]:
    """The ids of a link on our own host and of one on a branded domain, with the same alias."""
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    add(bob, custom="theirs")
    return {"own": add(alice, custom="Sale")["id"], "branded": add(alice, custom="Sale", domain=BRANDED)["id"]}


def find(client: Client, short: str, **query: Any) -> dict[str, Any]:
    answer = client.get("/api/urls", query_string={"short": short} | query)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.get_json()
    return found


def test_the_answer_is_the_one_of_a_single_read_with_the_members_of_a_list(
    alice: Client, link_ids: dict[str, int]
) -> None:
    found, read = find(alice, f"{BASE_URL}/Sale"), alice.get(f"/api/url/{link_ids['own']}").get_json()
    data = found.pop("data")
    assert found == {name: value for name, value in read.items() if name != "data"}
    assert {name: data.pop(name) for name in read["data"]} == read["data"]
    [listed] = [link for link in alice.get("/api/urls").get_json()["data"]["urls"] if link["id"] == link_ids["own"]]
    assert data == {"result": 1, "perpage": 15, "currentpage": 1, "nextpage": 0, "maxpage": 1, "urls": [listed]}


@pytest.mark.parametrize(
    ("short", "name"),
    [
        (f"{BASE_URL}/Sale", "own"),
        (f"{HOST}/Sale", "own"),
        ("Sale", "own"),
        ("Sale/", "own"),
        (f"{BASE_URL}/Sale/", "own"),
        (f"{BASE_URL.upper()}/Sale", "own"),
        (f"https://{BRANDED}/Sale", "branded"),
        (f"{BRANDED}/Sale", "branded"),
        (f"HTTPS://{BRANDED.upper()}/Sale/", "branded"),
        (f"https://{BRANDED}:443/Sale", "branded"),
        (f"https://{HOST}/Sale", "own"),
        (f"http://{BRANDED}/Sale", "branded"),
        (f"http://{BRANDED}:80/Sale", "branded"),
    ],
)
def test_a_link_is_found_by_each_spelling_of_its_short_url(
    alice: Client, link_ids: dict[str, int], short: str, name: str
) -> None:
    found = find(alice, short)
    assert (found["id"], found["details"]["id"]) == (link_ids[name], link_ids[name])
    assert found["data"]["urls"][0]["shorturl"] == found["details"]["shorturl"]


def test_an_unknown_short_url_is_an_error_with_the_status_200_and_no_data(
    alice: Client, link_ids: dict[str, int]
) -> None:
    assert link_ids
    for short in (
        f"{BASE_URL}/sale",
        f"{BASE_URL}/Sale//",
        f"{BASE_URL}/Sale?x=1",
        f"{BASE_URL}/api/Sale",
        "http://127.0.0.1/Sale",
        f"https://{BRANDED}:8443/Sale",
        "https://other.example.net/Sale",
        f"{BASE_URL}/theirs",
        "theirs",
        "nothing",
        "/Sale",
        "//Sale",
        "/",
        "ftp://x/Sale",
        "http://[/Sale",
        "Säle",
        "http://exa mple/Sale",
        "'",
    ):
        assert (
            find(alice, short).items()
            >= {
                "error": 1,
                "message": "You have no link with this short URL. Create one with POST /api/url/add.",
                "code": "short_url_unknown",
            }.items()
        ), short


def test_a_page_past_the_end_is_empty(alice: Client, link_ids: dict[str, int]) -> None:
    found = find(alice, "Sale", page=2)
    assert (found["error"], found["id"], found["data"]["urls"], found["data"]["result"]) == (0, link_ids["own"], [], 1)


def test_an_empty_short_url_lists_all_links(alice: Client, link_ids: dict[str, int]) -> None:
    assert [link["id"] for link in find(alice, "")["data"]["urls"]] == [link_ids["branded"], link_ids["own"]]


def test_a_link_of_the_same_alias_elsewhere_is_not_returned(alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    add(alice, custom="Sale", domain=BRANDED, url=f"{PAGE}/2")
    assert find(alice, "Sale")["error"] == 1
