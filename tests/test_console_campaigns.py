"""Campaigns in the console: the list, the form, and the page with the links of one."""

import re

import pytest
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, visit, words
from tests.support.visited import Store

NEW = "/console/campaigns/new"


def members(page: str) -> list[int]:
    return [int(link_id) for link_id in re.findall(r'class="row-title"><a href="/console/links/(\d+)"', page)]


def test_a_campaign_shows_its_addresses_and_the_clicks_of_its_links(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql, store: Store
) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Summer", "slug": "summer", "public": True})
    links = [factories.link(sql, alice.id) for _ in range(3)]
    for link in links[:2]:
        alice.post(f"/api/campaign/{campaign}/assign/{link}")
    sql("UPDATE links SET campaign = %(id)s WHERE user_id = %(bob)s", id=campaign, bob=bob.id)
    store([visit(links[0], days) for days in range(15)] + [visit(links[1]) for _ in range(6)] + [visit(links[2])])
    sql("DELETE FROM totals")
    sql("INSERT INTO totals (tracked_id, clicks, visitors) VALUES (%(id)s, 7, 1)", id=links[0])
    page = get(console, f"/console/campaigns/{campaign}")
    assert f"{BASE_URL}/r/summer" in page
    assert f"{BASE_URL}/u/alice/summer-{campaign}" in page
    assert "21 clicks in the last 28 days" in page
    assert "<div><dt>clicks</dt><dd>7</dd></div><div><dt>unique visitor</dt><dd>1</dd></div>" in page
    assert "All-time figures. A visitor of two links counts twice." in page
    assert members(page) == [links[0], links[1]]
    assert "15 clicks in the last 28 days" in page
    assert "6 clicks in the last 28 days" in page
    assert "20 clicks in the last 12 months" not in get(console, f"/console/campaigns/{campaign}?period=12mo")


def test_a_private_campaign_offers_no_url_that_visitors_cannot_open(console: FlaskClient, alice: Client) -> None:
    assert "Everyone may open the rotator and the list of its links" in get(console, NEW)
    path = console.post(NEW, data={"name": "Sale", "slug": "sale"}).headers["Location"]
    page = get(console, path)
    assert words(page).count("private <small>Edit the campaign to let everyone open") == 2
    for text in (page, get(console, "/console/campaigns")):
        assert "data-copy" not in text
        assert '">private</span>' in text or "<dd>private" in text
    alice.put(f"/api/campaign/{path.rsplit('/', 1)[1]}/update", {"name": "Sale", "public": True})
    assert get(console, path).count("data-copy") == 2
    assert get(console, "/console/campaigns").count("data-copy") == 1


@pytest.mark.parametrize("typed", ["{shorturl}", " {alias} ", "{shorturl}/"])
def test_a_link_is_added_by_its_short_url_and_removed_again(
    console: FlaskClient, alice: Client, sql: Sql, typed: str
) -> None:
    campaign, link = factories.campaign(sql, alice.id), factories.link(sql, alice.id)
    [row] = alice.get("/api/urls").get_json()["data"]["urls"]
    path = f"/console/campaigns/{campaign}"
    answer = console.post(path, data={"item": typed.format(**row)})
    assert (answer.status_code, answer.headers["Location"]) == (303, path)
    page = get(console, path)
    assert "Added to the campaign." in page
    assert members(page) == [link]
    assert console.post(f"{path}/remove/{link}").headers["Location"] == path
    assert members(get(console, path)) == []
    assert alice.get(f"/api/url/{link}").status_code == 200


def test_a_link_of_another_campaign_or_user_is_not_removed(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    first, second, link = *(factories.campaign(sql, alice.id) for _ in range(2)), factories.link(sql, alice.id)
    theirs, theirs_link = factories.campaign(sql, bob.id), factories.link(sql, bob.id)
    alice.post(f"/api/campaign/{second}/assign/{link}")
    bob.post(f"/api/campaign/{theirs}/assign/{theirs_link}")
    for link_id in (link, theirs_link):
        assert console.post(f"/console/campaigns/{first}/remove/{link_id}").status_code == 404
    assert sql("SELECT campaign FROM links ORDER BY id") == [{"campaign": second}, {"campaign": theirs}]
