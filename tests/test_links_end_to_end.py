"""Links from the API call to the visit: behavior that neither API responses nor pages show alone."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.conftest import Client

PAGE = "https://example.com/page"
LATE = "https://late.example.net/circle"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1"

Visit = Callable[..., TestResponse]


@pytest.fixture
def visit(app: Flask, alice: Client) -> Visit:
    """Create a link of alice and visit it."""

    def visit_new_link(agent: str = "Mozilla/5.0 Firefox/140.0", **members: Any) -> TestResponse:
        short = alice.post("/api/url/add", {"url": PAGE} | members).get_json()["shorturl"]
        return app.test_client().get("/" + short.rpartition("/")[2], headers={"User-Agent": agent})

    return visit_new_link


def test_the_default_value_of_one_member_is_an_ordinary_value_in_others(
    app: Flask, alice: Client, visit: Visit
) -> None:
    assert visit(password="public").status_code == 200, "the form"
    added = alice.post("/api/url/add", {"url": PAGE, "custom": "public", "metatitle": "public"}).get_json()
    assert added["shorturl"].endswith("/public")
    assert alice.get(f"/api/url/{added['id']}").get_json()["details"]["title"] == "public"


def test_a_list_of_links_hides_targets_behind_a_password_or_an_expiry(app: Flask, alice: Client) -> None:
    campaign = alice.post("/api/campaign/add", {"name": "Mine", "public": True}).get_json()
    for members in ({"password": "x"}, {"expiry": "2020-01-01"}, {"description": "open"}):
        url = f"https://example.com/{next(iter(members))}"
        alice.add("/api/url/add", {"url": url, "campaign": campaign["id"]} | members)
    page = app.test_client().get(campaign["list"].partition("5000")[2]).text
    assert ("https://example.com/description" in page, "/password" in page, "/expiry" in page) == (True, False, False)
    assert page.count("<li>") == 2


@pytest.mark.parametrize(
    "members",
    [
        {"url": "https://example.com/" + "中" * 2000},
        {"parameters": [{"name": "a", "value": "é" * 9000}]},
        {"parameters": [{"name": f"n{n}", "value": "x" * 90} for n in range(30)]},
    ],
    ids=["address", "long parameter", "many parameters"],
)
def test_no_url_exceeds_the_limits_of_servers_and_browsers(alice: Client, members: dict[str, Any]) -> None:
    answer = alice.post("/api/url/add", {"url": PAGE} | members)
    assert answer.status_code == 400
    assert "at most 2048 characters" in answer.get_json()["message"]


@pytest.mark.parametrize(
    "members",
    [
        {"url": LATE},
        {"url": PAGE, "devicetarget": [{"device": "iphone", "link": LATE}]},
        {"url": PAGE, "deeplink": {"auto": True, "apple": LATE}},
    ],
)
def test_a_link_cannot_be_moved_to_the_domain_of_its_target(alice: Client, members: dict[str, Any]) -> None:
    link = alice.add("/api/url/add", {"custom": "circle"} | members)
    alice.add("/api/domain/add", {"domain": "https://late.example.net"})
    answer = alice.put(f"/api/url/{link}/update", {"domain": "late.example.net"})
    assert (answer.status_code, "branded domain" in answer.get_json()["message"]) == (400, True)


def test_an_app_is_opened_only_when_the_link_says_so(visit: Visit) -> None:
    store = {"apple": "https://apps.apple.com/app/id1"}
    assert visit(IPHONE, deeplink=store).status_code == 200
    assert visit(IPHONE, deeplink=store | {"auto": False}).headers["Location"] == PAGE


def test_a_plan_without_custom_aliases_has_none_for_bio_pages_either(on_plan: Callable[..., Client]) -> None:
    carol = on_plan(alias={"enabled": "0"})
    bio = carol.add("/api/bio/add", {"name": "Me"})
    for answer in (
        carol.post("/api/bio/add", {"name": "Me", "alias": "vanity"}),
        carol.put(f"/api/bio/{bio}/update", {"alias": "vanity"}),
    ):
        assert answer.status_code == 403
        assert "custom aliases" in answer.get_json()["message"]
    assert carol.put(f"/api/bio/{bio}/update", {"name": "Still me"}).status_code == 200
