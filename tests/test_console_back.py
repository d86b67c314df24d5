"""The way back from a row to its list, the rows of a page, and the period that links carry."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, ids_of, seen, signed_in, visit
from tests.support.reports import report
from tests.support.visited import Store

QUERY = "q=example&order=click&status=public&page=2"


def href(page: str, pattern: str) -> str:
    """Return the URL of the first link whose text matches."""
    match = re.search(rf'href="([^"]*)"[^>]*>(?:<bdi>)?{pattern}', page)
    assert match, pattern
    return unescape(match[1])


def test_the_page_of_a_link_leads_back_to_the_same_list(console: FlaskClient, alice: Client, sql: Sql) -> None:
    for _ in range(30):
        factories.link(sql, alice.id)
    listed = get(console, f"/console/links?{QUERY}")
    url = href(listed, r"example\.com/page")
    page = get(console, url)
    back = href(page, "Links</a></p>")
    assert (urlsplit(back).path, parse_qs(urlsplit(back).query)) == ("/console/links", parse_qs(QUERY))
    assert ids_of(get(console, back)) == ids_of(listed) != []
    for text in ("7d</a>", "by hour</a>", "Edit</a>"):
        page = get(console, href(page if text != "by hour</a>" else get(console, href(page, "7d</a>")), text))
        assert back in unescape(page) or href(page, ".*</bdi></a></p>").endswith(urlsplit(url).query), text
    edit = href(get(console, url), "Edit</a>")
    version = re.search('name="version" value="([0-9]+)"', get(console, edit))
    assert version
    saved = console.post(edit, data={"version": version[1], "url": "https://example.com/other", "status": "public"})
    assert saved.headers["Location"] == url
    assert href(get(console, urlsplit(url).path), "Links</a></p>") == "/console/links"
    deleted = console.post(href(get(console, url), "Delete</a>"))
    assert deleted.headers["Location"] == back


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "\\evil", "page=1#x", "a=1\r\nb", "q=" + 3000 * "x"]
)
def test_the_way_back_is_always_the_list(console: FlaskClient, alice: Client, sql: Sql, back: str) -> None:
    link = factories.link(sql, alice.id)
    answer = console.get(f"/console/links/{link}", query_string={"back": back})
    assert answer.status_code == 200
    parts = urlsplit(href(answer.text, "Links</a></p>"))
    assert (parts.scheme, parts.netloc, parts.path) == ("", "", "/console/links")
    answer = console.post(f"/console/links/{link}/delete", query_string={"back": back})
    assert re.match(r"/console/links(\?|$)", answer.headers["Location"])


def test_the_rows_of_a_page_are_remembered(app: Flask, console: FlaskClient, alice: Client, sql: Sql) -> None:
    for _ in range(60):
        factories.link(sql, alice.id)
    usual = len(ids_of(get(console, "/console/links")))
    answer = console.get("/console/links?per=50")
    cookie = answer.headers["Set-Cookie"]
    assert ("HttpOnly" in cookie, "SameSite=Lax" in cookie, "Path=/console" in cookie) == (True, True, True)
    assert len(ids_of(get(console, "/console/links"))) == 50
    assert len(ids_of(get(console, "/console/links?page=2"))) == 10
    other = signed_in(app)
    for kept in ("7", "-1", "50; x", "a"):
        other.set_cookie("linkmgr_rows", kept, path="/console")
        assert len(ids_of(get(other, "/console/links"))) == usual < 50


def test_a_row_of_a_list_of_a_period_has_the_figures_of_the_period(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    link, campaign = factories.link(sql, alice.id), factories.campaign(sql, alice.id)
    factories.assign(sql, campaign, [link])
    store([visit(link, days=50), visit(link)])
    listed = get(console, "/console/campaigns?period=90d&order=-clicks")
    page = get(console, href(listed, "Campaign [0-9]+"))
    assert "2 clicks in the last 90 days" in seen(page)
    assert "2 clicks in the last 90 days" in seen(get(console, href(page, r"example\.com/page")))
    back = href(page, "Campaigns</a></p>")
    assert parse_qs(urlsplit(back).query) == {"period": ["90d"], "order": ["-clicks"]}
    assert href(get(console, f"/console/campaigns/{campaign}"), "Campaigns</a></p>") == "/console/campaigns"
    page = get(console, f"/console/statistics?campaign={campaign}&period=90d")
    assert "in the last 90 days" in seen(get(console, href(page, "Campaign [0-9]+</bdi></a></p>")))


PERIODS = {"24h": "last 24 hours", "7d": "last 7 days", "28d": "last 28 days", "30d": "last 30 days",
           "90d": "last 90 days", "12mo": "last 12 months", "ytd": "current year", "week": "current week",
           "last_week": "previous week", "mtd": "current month", "last_month": "previous month"}  # fmt: skip


def test_periods_have_the_same_names_in_the_console_and_in_the_api(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    link = factories.link(sql, alice.id)
    store([visit(link, days=days) for days in (0, 3, 8, 20, 40, 100) for _ in range(2)])
    for period, name in PERIODS.items():
        counted = report(alice, f"ids={link}&period={period}")["data"]["totals"]["clicks"]
        page = seen(get(console, f"/console/links/{link}?period={period}"))
        assert f"{counted or 'No'} click{'s' if counted != 1 else ''} in the {name}" in page, period
    for old, name in {"month": "mtd", "last-month": "last_month", "last-week": "last_week"}.items():
        page = get(console, f"/console/links/{link}?period={old}")
        assert f"in the {PERIODS[name]}" in seen(page), old
        assert re.search(rf'period={name}[^"]*" aria-current="true"', page), old
