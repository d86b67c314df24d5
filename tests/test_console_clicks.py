"""The figures of rows are those of the period that their list names, and are in the order that it names."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.fields.zones import start_of_day
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, ids_of, seen, signed_in, visit
from tests.support.visited import Store, Visited


def members(page: str) -> list[tuple[str, str]]:
    """Return the page of each row of a group, and its clicks."""
    rows = page.split('<ul class="rows')[1].split("</ul>", maxsplit=1)[0].split("<li>")[1:]
    clicks = [re.search('<p class="row-clicks">(.*?)</p>', row, re.DOTALL) for row in rows]
    paths = [re.search('href="/console/([^"?]+)', row) for row in rows]
    return [(path[1], seen(text[1])) for path, text in zip(paths, clicks, strict=True) if path and text]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_the_order_by_clicks_of_28_days_shows_these_clicks(
    *, console: FlaskClient, alice: Client, sql: Sql, store: Store, zone: str
) -> None:
    console.post("/account/timezone", data={"timezone": zone})
    today = datetime.now(UTC).astimezone(ZoneInfo(zone)).date()
    first = start_of_day(today - timedelta(days=27), ZoneInfo(zone))
    before, since, recent = (factories.link(sql, alice.id) for _ in range(3))
    minute = timedelta(minutes=1)
    store([Visited(before, first - minute) for _ in range(9)] + [Visited(since, first + minute) for _ in range(3)])
    store([Visited(since, first - minute), visit(recent), visit(recent)])
    sql("UPDATE links SET imported_clicks = 1000 WHERE id = %(id)s RETURNING 1", id=recent)
    page = get(console, "/console/links?order=recent")
    assert ids_of(page) == [since, recent, before]
    figures = re.findall(r'<p class="row-clicks">\s*<bdi>(.*?)</bdi>', page)
    assert [seen(figure) for figure in figures] == ["3 clicks", "2 clicks", "0 clicks"]
    assert "Clicks of 28 days, lines of 28 days" in seen(page)
    assert "imported" not in seen(page.split('<ul class="rows')[1])
    page = get(console, "/console/links?order=click")
    assert ids_of(page) == [recent, before, since]
    assert "Clicks of all time, lines of 28 days" in seen(page)
    assert "1,002 clicks 1,000 imported" in seen(page)


def test_the_links_of_a_campaign_have_the_clicks_of_its_period_and_their_order(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    campaign, links = factories.campaign(sql, alice.id), [factories.link(sql, alice.id) for _ in range(26)]
    factories.assign(sql, campaign, links)
    old, new = links[:2]
    store([*(visit(old, 60) for _ in range(3)), visit(new)])
    path = f"/console/campaigns/{campaign}"
    page = get(console, path)
    assert members(page)[:2] == [(f"links/{new}", "1 click"), (f"links/{links[-1]}", "0 clicks")]
    assert "Clicks in the last 28 days, most first, lines of 28 days" in seen(page)
    page = get(console, f"{path}?period=90d")
    assert members(page)[:2] == [(f"links/{old}", "3 clicks"), (f"links/{new}", "1 click")]
    assert "4 clicks in the last 90 days" in page
    assert "Clicks in the last 90 days, most first" in seen(page)
    assert f'href="{path}?page=2&amp;period=90d"' in page
    [(_, clicks)] = members(get(console, f"{path}?period=90d&page=2"))
    assert clicks == "0 clicks"


def test_the_items_of_a_channel_have_the_visits_of_its_period(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    channel = factories.channel(sql, alice.id)
    link, code, bio = (make(sql, alice.id) for make in (factories.link, factories.qr, factories.bio))
    for kind, row_id in (("links", link), ("qr", code), ("bio", bio)):
        alice.post(f"/api/channel/{channel}/assign/{kind}/{row_id}")
    store([visit(link), visit(link, 60), visit(code, 60, kind="scan")])
    page = get(console, f"/console/channels/{channel}")
    last = f"bios/{bio}", "bio page"
    assert members(page) == [last, (f"qrs/{code}", "0 scans"), (f"links/{link}", "1 click")]
    assert "Visits in the last 28 days, the last added first, lines of 28 days" in seen(page)
    page = get(console, f"/console/channels/{channel}?period=90d")
    assert members(page) == [last, (f"qrs/{code}", "1 scan"), (f"links/{link}", "2 clicks")]


@pytest.fixture
def converted(alice: Client, sql: Sql, store: Store) -> tuple[int, int]:
    """A campaign, and its link with two conversions, one of them 60 days ago."""
    campaign, link = factories.campaign(sql, alice.id), factories.link(sql, alice.id)
    factories.assign(sql, campaign, [link])
    store([visit(link), visit(link, 60)])
    for days in (0, 60):
        factories.conversion(sql, alice.id, link=link, created=datetime.now(UTC) - timedelta(days=days))
    return campaign, link


def test_conversions_are_beside_the_clicks_of_lists_and_in_their_file(
    console: FlaskClient, alice: Client, sql: Sql, converted: tuple[int, int]
) -> None:
    campaign, link = converted
    assert "2 clicks 2 conversions" in seen(get(console, "/console/links"))
    assert "conversions" not in seen(get(console, "/console/links?order=recent").split('<ul class="rows')[1])
    path = f"/console/campaigns/{campaign}"
    page = get(console, path)
    assert members(page) == [(f"links/{link}", "1 click 1 conversion")]
    assert "unique visitor 1 conversions 2 All-time figures." in seen(page)
    channel = factories.channel(sql, alice.id)
    alice.post(f"/api/channel/{channel}/assign/links/{link}")
    page = get(console, f"/console/channels/{channel}")
    assert members(page) == [(f"links/{link}", "1 click 1 conversion")]
    assert "unique visitor 1 conversions 2 All-time figures." in seen(page)
    assert members(get(console, f"{path}?period=90d")) == [(f"links/{link}", "2 clicks 2 conversions")]
    text = console.post("/console/links/selected", data={"action": "export", "id": link}).text
    assert dict(zip(*(line.split(",") for line in text.splitlines()), strict=True))["conversions"] == "2"


def test_without_the_feature_no_list_and_no_file_has_conversions(
    make_app: Callable[..., Flask], converted: tuple[int, int]
) -> None:
    campaign, link = converted
    browser = signed_in(make_app(features=["-conversions"]))
    for path in ("links", f"campaigns/{campaign}"):
        assert "conversion" not in get(browser, f"/console/{path}")
    assert "conversion" not in browser.post("/console/links/selected", data={"action": "export", "id": link}).text
