"""Actions on selected links in the console."""

import csv
import re
from io import StringIO

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.console import link_changes
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import details, get, ids_of, seen


def select(console: FlaskClient, action: str, ids: list[int], query: str = "", **fields: object) -> TestResponse:
    return console.post(f"/console/links/selected{query}", data={"action": action, "id": ids} | fields)


def test_selected_links_are_deleted_after_a_question_with_their_number(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    ids = [factories.link(sql, alice.id) for _ in range(4)]
    other = factories.link(sql, bob.id)
    answer = select(console, "ask", [*ids[:3], other], "?status=public&evil=%0d%0a")
    assert "Delete 3 links?" in answer.text
    assert len(sql("SELECT 1 FROM links")) == 5
    sent = [int(sent) for sent in re.findall('name="id" value="([^"]+)"', answer.text)]
    answer = select(console, "delete", sent, "?status=public&evil=%0d%0a")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console/links?status=public")
    assert "3 links deleted." in get(console, "/console/links")
    assert {row["id"] for row in sql("SELECT id FROM links")} == {ids[3], other}


def test_selected_links_get_a_campaign_and_a_channel(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    first = alice.add("/api/url/add", {"url": "https://example.com/plain"})
    ids = [first, factories.link(sql, alice.id), other := factories.link(sql, bob.id)]
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    select(console, "campaign", ids, campaign=campaign)
    select(console, "channel", ids, channel=channel)
    select(console, "channel", ids[:1], channel=channel)
    page = get(console, f"/console/links?campaign={campaign}&channel={channel}")
    assert ids_of(page) == sorted(ids[:2], reverse=True)
    assert "2 links moved." in page
    assert "2 links added to the channel." in page
    assert sql("SELECT campaign FROM links WHERE id = %(id)s", id=other) == [{"campaign": None}]
    assert alice.add("/api/url/add", {"url": "https://example.com/plain"}) != first
    select(console, "campaign", ids, campaign=0)
    assert ids_of(get(console, f"/console/links?campaign={campaign}")) == []
    select(console, "unassign", ids[1:], channel=channel)
    page = get(console, f"/console/links?channel={channel}")
    assert ids_of(page) == [first]
    assert "1 link removed from the channel." in page
    question = select(console, "unassign", [], f"?channel={channel}", channel=channel, all="1").text
    assert "Remove 1 link<bdi> from the channel" in question


def test_selected_links_get_a_status_and_an_expiry(console: FlaskClient, alice: Client, bob: Client, sql: Sql) -> None:
    ids = [factories.link(sql, alice.id) for _ in range(2)]
    other = factories.link(sql, bob.id)
    console.post("/account/timezone", data={"timezone": "Asia/Tokyo"})
    select(console, "status", [*ids, other], status="private")
    assert "Expire 2 links at Jan 1, 2031, 09:00 JST ?" in seen(
        select(console, "expiry", [], all="1", expiry="2031-01-01T09:00").text
    )
    select(console, "expiry", ids, expiry="2031-01-01T09:00")
    page = get(console, "/console/links?status=private")
    assert (ids_of(page), page.count("2 links changed.")) == (ids[::-1], 1)
    assert [details(alice, link_id)["expiry"] for link_id in ids] == ["2031-01-01 00:00:00"] * 2
    assert sql("SELECT expiry, status FROM links WHERE id = %(id)s", id=other) == [{"expiry": None, "status": "public"}]


def test_campaigns_and_channels_of_others_are_refused(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    link_id = factories.link(sql, alice.id)
    for action, row_id in {
        "campaign": factories.campaign(sql, bob.id),
        "channel": factories.channel(sql, bob.id),
    }.items():
        for sent in (row_id, 2**62):
            answer = select(console, action, [link_id], "", **{action: sent})
            assert answer.status_code == (303 if sent == 2**62 else 400)
    assert sql("SELECT 1 FROM channel_items") == []
    assert sql("SELECT campaign FROM links") == [{"campaign": None}]


def test_selected_links_are_exported_as_csv(console: FlaskClient, alice: Client, bob: Client, sql: Sql) -> None:
    ids = [factories.link(sql, alice.id, title=title) for title in ("=1+1", "Ünïcode, 🎉")]
    sql("UPDATE links SET campaign = %(id)s WHERE id = %(link)s", id=factories.campaign(sql, alice.id), link=ids[0])
    answer = select(console, "export", [*ids, factories.link(sql, bob.id)])
    assert (answer.mimetype, answer.headers["Content-Disposition"]) == ("text/csv", 'attachment; filename="links.csv"')
    lines = list(csv.DictReader(StringIO(answer.text)))
    assert [line["title"] for line in lines] == ["Ünïcode, 🎉", "'=1+1"]
    assert lines[1]["campaign"]
    assert lines[0]["shorturl"].startswith(BASE_URL)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_changes, "BATCH", 3)
    monkeypatch.setattr(link_changes, "MAX_BATCHES", 2)


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of the question."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


@pytest.mark.usefixtures("small_batches")
def test_all_links_that_match_are_deleted_in_batches_after_a_question_with_their_number(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    query = "?status=private&q=plan"
    kept = [factories.link(sql, alice.id, title="Other"), factories.link(sql, bob.id, title="Plan")]
    for _ in range(17):
        factories.link(sql, alice.id, title="Plan")
    sql("UPDATE links SET status = 'private' RETURNING 1")
    kept.append(factories.link(sql, alice.id, title="Plan"))
    assert "Select all 17" in seen(get(console, f"/console/links{query}"))
    page = select(console, "ask", [], query, all=1).text
    assert "Delete 17 links?" in seen(page)
    assert "All links that match: Private plan" in seen(page)
    assert len(sql("SELECT 1 FROM links")) == 20
    kept.append(factories.link(sql, alice.id, title="Plan"))
    sql("UPDATE links SET status = 'private' WHERE id = %(id)s RETURNING 1", id=kept[-1])  # after the question
    for done in ("6 of 17", "12 of 17"):
        answer = select(console, "delete", [], query, **hidden(page))
        page = answer.text
        assert (answer.status_code, f"{done} deleted." in seen(page), "data-continue" in page) == (200, True, True)
    answer = select(console, "delete", [], query, **hidden(page))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console/links?q=plan&status=private")
    assert "17 links deleted." in get(console, "/console/links")
    assert {row["id"] for row in sql("SELECT id FROM links")} == set(kept)


@pytest.mark.usefixtures("small_batches")
def test_all_links_that_match_get_a_campaign_and_a_channel(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    for owner in (alice, alice, alice, alice, bob):
        factories.link(sql, owner.id)
    rows = {name: getattr(factories, name)(sql, alice.id) for name in ("campaign", "channel")}
    [names] = sql("SELECT c.name AS campaign, h.name AS channel FROM campaigns c, channels h")
    questions = {"campaign": "Move 4 links to the campaign", "channel": "Add 4 links to the channel"}
    for action, question in questions.items():
        page = select(console, action, [], "", all=1, **{action: rows[action]}).text
        assert f"{question} {names[action]} ?" in seen(page)
        assert "all links of your account" in seen(page)
        assert select(console, action, [], "", **hidden(page)).status_code == 303
    assert len(ids_of(get(console, "/console/links?campaign={campaign}&channel={channel}".format(**rows)))) == 4
    page = select(console, "campaign", [], "?channel={channel}".format(**rows), all=1, campaign=0).text
    assert "Move 4 links out of their campaigns ?" in seen(page)
    other = factories.campaign(sql, bob.id)
    refused = select(console, "campaign", [], all=1, campaign=other, below=2**40)
    assert (refused.status_code, refused.headers["Location"]) == (303, "/console/links")


@pytest.mark.usefixtures("small_batches")
def test_all_links_that_match_are_exported(console: FlaskClient, alice: Client, sql: Sql) -> None:
    for number in range(7):
        factories.link(sql, alice.id, title=f"Plan {number}")
    sql("UPDATE links SET status = CASE title WHEN 'Plan 0' THEN 'private' ELSE 'public' END RETURNING 1")
    answer = select(console, "export", [], "?status=public", all=1)
    lines = list(csv.DictReader(StringIO(answer.text)))
    assert [line["title"] for line in lines] == [f"Plan {number}" for number in range(6, 0, -1)]


def test_without_exports_in_the_plan_the_console_has_none_either(console: FlaskClient, alice: Client, sql: Sql) -> None:
    link_id, overlay_id = factories.link(sql, alice.id), factories.overlay(sql, alice.id)
    sql("UPDATE users SET plan_id = NULL RETURNING 1")  # the free plan
    refused = (
        select(console, "export", [link_id]),
        console.get(f"/console/overlays/{overlay_id}/answers.csv"),
        console.get(f"/console/links/{link_id}/visits.csv"),
        console.get("/console/export/links.csv"),
        console.get("/console/export/account.zip"),
    )
    assert [answer.status_code for answer in refused] == [403] * 5
    assert "Exports are not in your plan." in get(console, "/console/imports")
    assert "Export as CSV" not in get(console, "/console/links")
    assert re.search(r'<li class="excluded">Exports\b', get(console, "/account"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": "ask"}, "Select links first."),
        ({"action": "delete", "id": ["x", "9" * 40, "-1"]}, "Select links first."),
        ({"action": "campaign", "id": "1", "campaign": ""}, "Choose a campaign first."),
        ({"action": "channel", "id": "1", "channel": "\0"}, "Choose a channel first."),
        ({"action": "channel", "all": "1", "channel": ""}, "Choose a channel first."),
        ({"action": "channel", "id": "1", "channel": "0"}, "Choose a channel first."),
        ({"action": "unassign", "id": "1", "channel": "0"}, "Choose a channel first."),
        ({"action": "status", "id": "1", "status": "hidden"}, "Choose a status first."),
        ({"action": "expiry", "id": "1", "expiry": "soon"}, "Choose an expiry first."),
        ({"action": "ask", "all": "1"}, "No link matches the filters."),
    ],
)
def test_a_form_without_a_selection_says_what_to_do(
    console: FlaskClient, fields: dict[str, object], message: str
) -> None:
    assert console.post("/console/links/selected", data=fields).status_code == 303
    assert message in get(console, "/console/links")
    assert console.post("/console/links/selected", data={"action": "burn", "id": "1"}).status_code == 400


def test_the_url_of_the_question_leads_to_the_list_and_its_numbers_are_checked(console: FlaskClient) -> None:
    url = "/console/links/selected?q=example"
    assert console.get(url).headers["Location"] == "/console/links?q=example"
    for name in ("below", "number", "done"):
        refused = console.post(url, data={"all": "1", "action": "delete", name: "x"})
        assert (refused.status_code, f"{name} must be an integer" in refused.text) == (400, True)
