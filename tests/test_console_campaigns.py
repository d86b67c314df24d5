"""Campaigns in the console: the list, the form, and the page with the links of one."""

import re
from html import unescape
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.resources.campaigns import Campaign
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import fields, get, message, names, signed_in, visit, words
from tests.support.visited import Store

NEW = "/console/campaigns/new"


@pytest.fixture
def browser(app: Flask, alice: Client) -> FlaskClient:
    """A browser of alice, signed in by password."""
    return signed_in(app)


def members(page: str) -> list[int]:
    return [int(link_id) for link_id in re.findall(r'class="short" href="/console/links/(\d+)"', page)]


def read(client: Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/campaign/{path.rsplit('/', 1)[1]}").get_json()["data"]
    return found


def test_the_list_shows_names_rotators_and_numbers_of_links(browser: FlaskClient, alice: Client, bob: Client) -> None:
    assert "Create your first campaign" in get(browser, "/console/campaigns")
    campaign = alice.add("/api/campaign/add", {"name": "Summer <b>", "slug": "summer", "public": True})
    alice.add("/api/url/add", {"url": "https://example.com/", "campaign": campaign})
    bob.add("/api/campaign/add", {"name": "Other"})
    page = get(browser, "/console/campaigns")
    assert "Summer &lt;b&gt;" in page
    assert "<strong>1</strong> <small>link</small>" in page
    assert f"{BASE_URL}/r/summer" in re.sub("<[^>]*>", "", page)
    assert "Other" not in page


def test_a_campaign_shows_its_addresses_and_the_clicks_of_its_links(
    browser: FlaskClient, alice: Client, bob: Client, sql: Sql, store: Store
) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Summer", "slug": "summer", "public": True})
    links = [factories.link(sql, alice.id) for _ in range(3)]
    for link in links[:2]:
        alice.post(f"/api/campaign/{campaign}/assign/{link}")
    sql("UPDATE links SET campaign_id = %(id)s WHERE user_id = %(bob)s", id=campaign, bob=bob.id)
    store([visit(links[0], days) for days in range(15)] + [visit(links[1]) for _ in range(6)] + [visit(links[2])])
    sql("DELETE FROM totals")
    sql("INSERT INTO totals (tracked_id, clicks, visitors) VALUES (%(id)s, 7, 1)", id=links[0])
    page = get(browser, f"/console/campaigns/{campaign}")
    assert f"{BASE_URL}/r/summer" in page
    assert f"{BASE_URL}/u/alice/summer-{campaign}" in page
    assert "21 clicks in the last 28 days" in page
    assert members(page) == [links[0], links[1]]
    assert "15 clicks in the last 28 days" in page
    assert "6 clicks in the last 28 days" in page
    assert "20 clicks in the last 12 months" not in get(browser, f"/console/campaigns/{campaign}?period=12mo")


def test_a_private_campaign_offers_no_url_that_visitors_cannot_open(browser: FlaskClient, alice: Client) -> None:
    assert "Everyone may open the rotator and the list of its links" in get(browser, NEW)
    path = browser.post(NEW, data={"name": "Sale", "slug": "sale"}).headers["Location"]
    page = get(browser, path)
    assert words(page).count("private <small>Edit the campaign to let everyone open") == 2
    for text in (page, get(browser, "/console/campaigns")):
        assert "data-copy" not in text
        assert '">private</span>' in text or "<dd>private" in text
    alice.put(f"/api/campaign/{path.rsplit('/', 1)[1]}/update", {"name": "Sale", "public": True})
    assert get(browser, path).count("data-copy") == 2
    assert get(browser, "/console/campaigns").count("data-copy") == 1


@pytest.mark.parametrize("typed", ["{shorturl}", " {alias} ", "{shorturl}/"])
def test_a_link_is_added_by_its_short_url_and_removed_again(
    browser: FlaskClient, alice: Client, sql: Sql, typed: str
) -> None:
    campaign, link = factories.campaign(sql, alice.id), factories.link(sql, alice.id)
    [row] = alice.get("/api/urls").get_json()["data"]["urls"]
    path = f"/console/campaigns/{campaign}"
    answer = browser.post(f"{path}/assign", data={"link": typed.format(**row)})
    assert (answer.status_code, answer.headers["Location"]) == (303, path)
    page = get(browser, path)
    assert "Link added." in page
    assert members(page) == [link]
    assert browser.post(f"{path}/remove/{link}").headers["Location"] == path
    assert members(get(browser, path)) == []
    assert alice.get(f"/api/url/{link}").status_code == 200


@pytest.mark.parametrize("typed", ["", "nothing", "https://example.com/x", "\0", "a" * 5000, "http://[", "bob"])
def test_a_text_that_is_no_short_url_of_the_user_is_refused_beside_its_field(
    *, browser: FlaskClient, alice: Client, bob: Client, sql: Sql, typed: str
) -> None:
    link = bob.add("/api/url/add", {"url": "https://example.com/b", "custom": "bob"})
    campaign = factories.campaign(sql, alice.id)
    answer = browser.post(f"/console/campaigns/{campaign}/assign", data={"link": typed})
    assert answer.status_code == 400
    assert "You have no link with this short URL." in message(answer.text, "link")
    assert sql("SELECT campaign_id FROM links WHERE id = %(id)s", id=link) == [{"campaign_id": None}]


def test_the_link_of_another_user_is_not_removed(browser: FlaskClient, alice: Client, bob: Client, sql: Sql) -> None:
    mine, link = factories.campaign(sql, alice.id), factories.link(sql, bob.id)
    theirs = factories.campaign(sql, bob.id)
    bob.post(f"/api/campaign/{theirs}/assign/{link}")
    assert browser.post(f"/console/campaigns/{mine}/remove/{link}").status_code == 404
    assert sql("SELECT campaign_id FROM links") == [{"campaign_id": theirs}]


def test_a_link_of_another_campaign_is_not_removed_from_it(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    first, second, link = *(factories.campaign(sql, alice.id) for _ in range(2)), factories.link(sql, alice.id)
    alice.post(f"/api/campaign/{second}/assign/{link}")
    assert browser.post(f"/console/campaigns/{first}/remove/{link}").status_code == 404
    assert sql("SELECT campaign_id FROM links") == [{"campaign_id": second}]


# --- the form


def test_the_form_has_the_members_of_the_bodies_of_the_api(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    assert names(get(browser, NEW)) == set(Campaign.creates()().fields) == set(Campaign.updates()().fields)
    campaign = factories.campaign(sql, alice.id)
    assert names(get(browser, f"/console/campaigns/{campaign}/edit")) == {*Campaign.updates()().fields, "version"}


def test_the_form_creates_and_changes_a_campaign(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    answer = browser.post(NEW, data={"name": "Summer", "slug": "summer", "public": "1"})
    assert answer.status_code == 303, answer.text
    path = answer.headers["Location"]
    campaign = read(alice, path)
    assert (campaign["name"], campaign["slug"], campaign["public"]) == ("Summer", "summer", True)
    before = sql("SELECT xmin::text, * FROM campaigns")
    form = fields(get(browser, f"{path}/edit"))
    assert browser.post(f"{path}/edit", data=form).status_code == 303
    assert sql("SELECT xmin::text, * FROM campaigns") == before
    assert browser.post(f"{path}/edit", data=form | {"slug": "", "public": []}).status_code == 303
    campaign = read(alice, path)
    assert (campaign["name"], campaign["rotator"], campaign["public"]) == ("Summer", False, False)


@pytest.mark.parametrize(
    ("typed", "field", "text"),
    [
        ({"name": "taken"}, "name", "You already have a campaign with that name."),
        ({"slug": "taken"}, "slug", "This slug is already in use."),
        ({"slug": "a b"}, "slug", "Rotator must be 1 to 50 letters"),
        ({"name": "x" * 256}, "name", "Name must be at most 255 characters."),
        ({"name": "\n\t"}, "name", "Name must not be empty."),
    ],
)
def test_a_message_is_beside_its_field_and_what_was_typed_is_kept(
    *, browser: FlaskClient, alice: Client, typed: dict[str, str], field: str, text: str
) -> None:
    alice.add("/api/campaign/add", {"name": "taken", "slug": "taken"})
    sent = {"name": "Kept <b>", "slug": "kept", "public": "1"} | typed
    answer = browser.post(NEW, data=sent)
    assert answer.status_code == 400
    assert text in unescape(message(answer.text, field))
    assert fields(answer.text)["public"] == ["1"]
    assert fields(answer.text)["slug"] == [sent["slug"]]


def test_a_change_by_others_in_the_meantime_shows_both(browser: FlaskClient, alice: Client) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Summer"})
    path = f"/console/campaigns/{campaign}/edit"
    form = fields(get(browser, path)) | {"name": "Mine"}
    alice.put(f"/api/campaign/{campaign}/update", {"name": "Theirs", "public": True})
    answer = browser.post(path, data=form)
    assert answer.status_code == 412
    assert "Stored now: <bdi>Theirs</bdi>" in answer.text
    assert "Stored now: <bdi>yes" in answer.text


def test_a_campaign_is_deleted_after_a_question_and_its_links_remain(
    browser: FlaskClient, alice: Client, sql: Sql
) -> None:
    campaign, link = factories.campaign(sql, alice.id), factories.link(sql, alice.id)
    alice.post(f"/api/campaign/{campaign}/assign/{link}")
    assert "Delete this campaign?" in get(browser, f"/console/campaigns/{campaign}/delete")
    assert browser.post(f"/console/campaigns/{campaign}/delete").headers["Location"] == "/console/campaigns"
    assert alice.get(f"/api/campaign/{campaign}").status_code == 404
    assert alice.get(f"/api/url/{link}").status_code == 200
