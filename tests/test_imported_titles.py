"""A title that was imported names a link in lists. Visitors and crawlers see only a title that its user set."""

from pathlib import Path

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support.imported import Import, details
from tests.support.pages import signed_in

FILES = Path(__file__).parent / "import_files"
PAGE = "https://example.com/sale"
LABEL = "Launch video internal v3"
CRAWLER = {"User-Agent": "facebookexternalhit/1.1"}


def crawl(client: Client, alias: str) -> tuple[int, str]:
    answer = client.http.get(f"/{alias}", headers=CRAWLER)
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    ("file", "alias", "label"),
    [
        ("title_hides_preview.csv", "ytsh", LABEL),
        ("dub_card_off.json", "dubp", "Auto-fetched title"),
        ("kutt.json", "summer", ""),
        ("yourls.csv", "summer", "Summer sale"),
        ("shortio.csv", "summer", "Summer sale"),
    ],
)
def test_crawlers_of_an_imported_link_are_redirected(
    alice: Client, run_import: Import, file: str, alias: str, label: str
) -> None:
    run_import(alice, (FILES / file).read_bytes())
    assert crawl(alice, alias)[0] == 302
    link = details(alice, alias)
    assert (link["title"], link["metatitle"], link["metadescription"], link["metaimage"]) == (label, "", "", "")
    assert label in [row["title"] for row in alice.get("/api/urls").get_json()["data"]["urls"]]


def test_a_label_is_found_and_a_card_is_what_a_user_sets(app: Flask, alice: Client, run_import: Import) -> None:
    run_import(alice, (FILES / "title_hides_preview.csv").read_bytes())
    assert len(alice.get("/api/urls?q=internal").get_json()["data"]["urls"]) == 1
    page = signed_in(app, "alice").get("/console/links").text
    assert LABEL in page
    link_id = details(alice, "ytsh")["id"]
    alice.put(f"/api/url/{link_id}/update", {"metatitle": "The video"})
    status, text = crawl(alice, "ytsh")
    assert (status, "The video" in text, LABEL in text) == (200, True, False)
    alice.put(f"/api/url/{link_id}/update", {"title": ""})
    assert details(alice, "ytsh")["title"] == "The video"


def test_a_card_that_dub_shows_is_kept(alice: Client, run_import: Import) -> None:
    run_import(alice, (FILES / "dub_card_off.json").read_bytes().replace(b'"proxy":false', b'"proxy":true'))
    status, text = crawl(alice, "dubp")
    assert (status, "Auto-fetched title" in text, "auto-fetched description" in text) == (200, True, True)


def test_the_title_of_a_link_follows_its_card_until_it_has_one_of_its_own(alice: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "custom": "sale", "metatitle": "Card"})
    for change, titles in (
        ({}, ("Card", "Card")),
        ({"metatitle": "New"}, ("New", "New")),
        ({"title": "Label"}, ("Label", "New")),
        ({"metatitle": ""}, ("Label", "")),
        ({"title": "", "metatitle": "Last"}, ("Last", "Last")),
    ):
        assert alice.put(f"/api/url/{link_id}/update", change or {"description": "x"}).status_code == 200
        link = details(alice, "sale")
        assert (link["title"], link["metatitle"]) == titles
    both = {"urls": [{"url": PAGE, "custom": "both", "title": "Label", "metatitle": "Card"}]}
    assert alice.post("/api/urls/bulk", both).get_json()["created"] == 1
    assert details(alice, "both")["title"] == "Label"


def test_the_public_page_of_a_campaign_does_not_show_a_label(alice: Client) -> None:
    campaign = alice.post("/api/campaign/add", {"name": "Spring", "public": True}).get_json()
    link = {"url": PAGE, "custom": "sale", "title": LABEL, "campaign": campaign["id"]}
    alice.add("/api/url/add", link)
    page = alice.http.get(campaign["list"])
    assert ("/sale" in page.text, LABEL in page.text) == (True, False)
