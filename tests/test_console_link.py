"""The page of a link in the console: its periods, tables and QR code, and times in the time zone of the user."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from flask.testing import FlaskClient

from linkmgr.console import charts, periods
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, seen, visit, words
from tests.support.visited import Store, Visited


@pytest.mark.parametrize(
    ("query", "title", "marks"),
    [
        ("", "23 clicks in the last 28 days, 1 before", 28),
        ("period=24h", "21 clicks in the last 24 hours", 24),
        ("period=7d", "22 clicks in the last 7 days, 1 before", 7),
        ("period=28d&by=month", "23 clicks in the last 28 days, 1 before", 28),
        ("period=last-month", "in the previous month", None),
        ("period=90d&by=week", "24 clicks in the last 90 days", None),
        ("period=12mo", "24 clicks in the last 12 months</bdi>", 12),
        ("from={5}&to={10}", "2 clicks in the period", 6),
        ("from={0}", "21 clicks in the period", None),
        ("from={40}&to={12}&by=week", "1 click in the period", None),
        ("from={400}", "25 clicks in the period", None),
        ("to=9999-12-31", "21 clicks in the period", None),
    ],
)
def test_the_page_of_a_link_shows_its_clicks_by_period(
    *, console: FlaskClient, alice: Client, sql: Sql, store: Store, query: str, title: str, marks: int | None
) -> None:
    link_id = factories.link(sql, alice.id)
    store([visit(link_id) for _ in range(21)] + [visit(link_id, days) for days in (5, 10, 40, 370)])
    for days in (0, 5, 6, 10, 12, 40, 400):
        query = query.replace(f"{{{days}}}", f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}")
    page = get(console, f"/console/links/{link_id}?{query}")
    assert title in page
    assert marks in (None, page.count('<g class="mark">'))
    for text in ("Germany (DE)", "t.co", "Firefox", "Linux", "desktop", "Latest visits", ">28d<", ">Last week<"):
        assert text in page
    assert re.search(r">[A-Z][a-z]{2} \d+, 20\d\d, \d\d:\d\d</time></th><td>Germany", page), "the time of a visit"


def test_the_page_of_a_link_names_its_campaign_its_channels_and_its_targets(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    campaign, channels = factories.campaign(sql, alice.id), [factories.channel(sql, alice.id) for _ in range(2)]
    sql("UPDATE campaigns SET name = 'Summer <b>' RETURNING 1")
    sql("UPDATE channels SET name = 'Posters ' || id RETURNING 1")
    body = {"url": "https://example.com/", "campaign": campaign, "channel": channels}
    body |= {"geotarget": [{"location": "Peru", "link": "https://example.com/pe"}]}
    link_id = alice.add(
        "/api/url/add", body | {"parameters": [{"name": "a", "value": "<1>"}, {"name": "b", "value": ""}]}
    )
    page = get(console, f"/console/links/{link_id}")
    assert {"Peru → https://example.com/pe", "a=&lt;1&gt;&amp;b="} <= set(
        re.findall("Peru → [^ ]+|a=[^ ]+", seen(page))
    )
    assert (
        f'href="/console/campaigns/{campaign}"><span class="muted">campaign</span> <bdi>Summer &lt;b&gt;</bdi>' in page
    )
    for channel in channels:
        assert f'href="/console/channels/{channel}">' in page
        assert f"<bdi>Posters {channel}</bdi>" in page
    assert console.get("/console/links/99999").status_code == 404


@pytest.mark.parametrize(("query", "days"), [("period=7d&by=hour", 6), ("from={0}", 0), ("from={6}&by=hour", 6)])
def test_hours_to_come_are_not_shown_and_the_current_one_is_not_complete(
    *, console: FlaskClient, alice: Client, sql: Sql, store: Store, query: str, days: int
) -> None:
    ahead = 12 - datetime.now(UTC).hour  # a time zone where it is about noon
    console.post("/account/timezone", data={"timezone": f"Etc/GMT{-ahead:+d}" if ahead else "UTC"})
    link_id = factories.link(sql, alice.id)
    store([visit(link_id) for _ in range(21)] + [visit(link_id, 7), visit(link_id, 30)])

    def hour() -> datetime:
        return datetime.now(UTC) + timedelta(hours=ahead)

    before = hour()
    query = re.sub(r"{(\d)}", lambda match: f"{before - timedelta(days=int(match[1])):%Y-%m-%d}", query)
    page = get(console, f"/console/links/{link_id}?{query}")
    after = hour()
    marks = re.findall('<g class="mark"><title>([^<]+)</title>', page)
    assert len(marks) in {24 * days + at.hour + 1 for at in (before, after)}
    assert marks[-1].split(":00")[0] in {f"{at:%b} {at.day}, {at:%H}" for at in (before, after)}
    assert ["not complete yet" in mark for mark in marks] == [False] * (len(marks) - 1) + [True]
    assert sum(int(re.findall(r": (\d+),", mark)[-1]) for mark in marks) == 21


def test_a_past_period_is_complete_and_is_kept_in_the_links_of_its_units(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    link_id = factories.link(sql, alice.id)
    store([visit(link_id, days) for days in (5, 6, 7, 8, 30)])
    first, last = (f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (6, 3))
    page = get(console, f"/console/links/{link_id}?from={first}&to={last}")
    assert "2 clicks in the period" in page
    assert ", 2 before" in page
    assert ", not complete yet</title>" not in page
    assert f"?by=hour&amp;from={first}&amp;to={last}" in page
    assert f'name="from" value="{first}"' in page
    assert ", not complete yet</title>" in get(console, f"/console/links/{link_id}?from={first}")


@pytest.mark.parametrize(
    ("query", "units", "current"),
    [
        ("period=7d", ["day", "hour"], "day"),
        ("period=90d", ["day", "week", "month"], "day"),
        ("period=12mo", ["week", "month"], "month"),
        ("from={150}", ["week", "month"], "week"),
        ("from={900}", ["month"], "month"),
    ],
)
def test_a_long_period_is_shown_by_week_unless_it_is_that_of_twelve_months(
    *, console: FlaskClient, alice: Client, sql: Sql, query: str, units: list[str], current: str
) -> None:
    query = re.sub(r"{(\d+)}", lambda match: f"{datetime.now(UTC) - timedelta(days=int(match[1])):%Y-%m-%d}", query)
    page = get(console, f"/console/links/{factories.link(sql, alice.id)}?{query}")
    assert re.findall(">by (day|hour|week|month)</a>", page) == units
    assert re.findall('aria-current="true">by (.+?)</a>', page) == [current]


@pytest.mark.parametrize("query", ["from=x", "to=2026-13-01", "from=%00", "from=2026-01-01&from=2026-01-02"])
def test_a_wrong_date_is_an_error_with_a_sentence(console: FlaskClient, alice: Client, sql: Sql, query: str) -> None:
    link_id = factories.link(sql, alice.id)
    assert console.get(f"/console/links/{link_id}?{query}").status_code == 400


@pytest.mark.parametrize("path", ["/console/links/{}", "/console/statistics", "/console/statistics?link={}"])
def test_a_period_is_as_long_as_statistics_can_be(
    console: FlaskClient, alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """From 19 May 2027 on, the time since the first day of 2000 is longer than statistics can be."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Later":
            return cls(2027, 6, 1, 12, tzinfo=tz)

    monkeypatch.setattr(periods, "datetime", Later)
    path = path.format(factories.link(sql, alice.id))
    for query in ("from=1999-01-01", "from=2000-01-01&to=2027-05-31"):
        assert "2000" in get(console, f"{path}{'&' if '?' in path else '?'}{query}")


@pytest.mark.parametrize("number", [2**63, 99999999999999999999])
@pytest.mark.parametrize(
    "path", ["links/new?from", "overlays/new?from", "statistics?link", "statistics?channel", "links?campaign"]
)
def test_an_id_that_no_row_can_have_is_not_found(console: FlaskClient, path: str, number: int) -> None:
    assert console.get(f"/console/{path}={number}").status_code == 404


def test_cities_are_shown_if_they_are_known(console: FlaskClient, alice: Client, sql: Sql, store: Store) -> None:
    known, unknown = factories.link(sql, alice.id), factories.link(sql, alice.id)
    store([visit(known, city="Paris"), visit(unknown, city="Unknown")])
    assert "<h2>Cities</h2>" in get(console, f"/console/links/{known}")
    assert "<h2>Cities</h2>" not in get(console, f"/console/links/{unknown}")


def test_clicks_that_another_service_counted_are_in_the_sum_and_marked(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    link_id = factories.link(sql, alice.id)
    sql("UPDATE links SET imported_clicks = 1234 RETURNING 1")
    page = get(console, f"/console/links/{link_id}")
    assert "1,234 clicks that another service counted." in page
    assert "<div><dt>clicks</dt><dd>1,234</dd></div><div><dt>of which imported</dt><dd>1,234</dd></div>" in page
    assert "No clicks in the last 28 days." in page


def test_a_link_without_clicks_says_how_to_get_one(console: FlaskClient, alice: Client, sql: Sql) -> None:
    page = get(console, f"/console/links/{factories.link(sql, alice.id)}")
    assert "No clicks in the last 28 days." in page
    assert 'class="plot"' not in page


def test_the_qr_code_is_an_image_of_the_short_url(console: FlaskClient, alice: Client, sql: Sql) -> None:
    link_id = factories.link(sql, alice.id)
    alias = sql("SELECT alias FROM links WHERE id = %(id)s", id=link_id)[0]["alias"]
    image = console.get(f"/console/links/{link_id}/qr?format=png&size=300")
    assert image.data == console.get(f"/{alias}/qr?size=300").data
    saved = console.get(f"/console/links/{link_id}/qr?format=svg&download=1")
    assert (saved.mimetype, saved.headers["Content-Disposition"]) == (
        "image/svg+xml",
        f'attachment; filename="qr-{alias}.svg"',
    )
    assert console.get(f"/console/links/{link_id}/qr?size=1").status_code == 400


# --- the time zone


def at(zone: str, days: int, hour: int) -> datetime:
    """Return a time of the local day that was some days ago."""
    today = datetime.now(ZoneInfo(zone)).replace(hour=hour, minute=5, second=0, microsecond=0)
    return (today - timedelta(days=days)).astimezone(UTC)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kathmandu"])
def test_charts_have_the_days_of_the_time_zone_of_the_user(
    *, console: FlaskClient, alice: Client, sql: Sql, store: Store, zone: str
) -> None:
    answer = console.post("/account/timezone", data={"timezone": zone}, follow_redirects=True)
    assert f"Times are now shown in the time zone {zone}." in answer.text
    link_id = factories.link(sql, alice.id)
    store([Visited(link_id, at(zone, days, hour)) for days in (2, 27) for hour in (0, 23)])
    store([Visited(link_id, at(zone, 29, 23)), Visited(link_id, at(zone, 55, 0)), Visited(link_id, at(zone, 56, 23))])
    for path in ("/console", f"/console/links/{link_id}"):
        page = words(get(console, path))
        noun = "visits" if path == "/console" else "clicks"
        assert f"4 {noun} in the last 28 days, 2 before" in page
        for days in (2, 27):
            day = at(zone, days, 0).astimezone(ZoneInfo(zone))
            assert f"{day:%a}, {day:%b} {day.day}: 2," in page
    tables = re.findall(r"<bdi>(Germany \(DE\)|t.co)</bdi>.*?<td>(\d+)</td>", get(console, "/console"), re.DOTALL)
    assert tables == [("Germany (DE)", "4"), ("t.co", "4")]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kathmandu"])
def test_sparklines_have_the_days_of_the_time_zone_of_the_user(
    *, console: FlaskClient, alice: Client, sql: Sql, store: Store, zone: str
) -> None:
    console.post("/account/timezone", data={"timezone": zone})
    campaign_id, code_id = factories.campaign(sql, alice.id), factories.qr(sql, alice.id)
    link_id = factories.link(sql, alice.id)
    sql("UPDATE links SET campaign = %(id)s RETURNING 1", id=campaign_id)
    for tracked_id in (link_id, code_id):
        store([Visited(tracked_id, at(zone, days, hour)) for days in (2, 27) for hour in (0, 23)])
        store([Visited(tracked_id, at(zone, 28, 23))])
    line = charts.sparkline([2, *[0] * 24, 2, 0, 0])
    for path, noun in (("links", "click"), (f"campaigns/{campaign_id}", "click"), ("qrs", "scan")):
        page = get(console, f"/console/{path}")
        assert f'aria-label="4 {noun}s in the last 28 days"' in page
        assert f'<path d="{line}"/>' in page


def test_times_are_those_of_the_time_zone_of_the_user(console: FlaskClient, alice: Client) -> None:
    console.post("/account/timezone", data={"timezone": "Asia/Tokyo"})
    link_id = alice.add("/api/url/add", {"url": "https://example.com/a", "expiry": "2030-12-31 23:59:59"})
    assert "Jan 1, 2031, 08:59 JST" in get(console, f"/console/links/{link_id}")
    form = get(console, f"/console/links/{link_id}/edit")
    assert 'value="2031-01-01T08:59:59"' in form
    version = re.findall(r'name="version" value="([^"]+)"', form)[0]
    sent = {"url": "https://example.com/a", "version": version, "type": "direct", "status": "public"}
    answer = console.post(f"/console/links/{link_id}/edit", data=sent | {"expiry": "2032-02-01T09:30"})
    assert answer.status_code == 303
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["expiry"] == "2032-02-01 00:30:00"


def test_an_expiry_in_the_past_has_one_warning_in_the_words_of_the_form(console: FlaskClient) -> None:
    sent = {"url": "https://example.com/a", "type": "direct", "status": "public", "expiry": "2020-02-01T09:30"}
    page = get(console, console.post("/console/links/new", data=sent).headers["Location"])
    assert page.count("in the past") == page.count("Expiry is in the past, so the link has expired.") == 1
    assert "Open the short URL" not in page


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "Europe/Berlni", "\0", "x" * 5000])
def test_an_unknown_time_zone_is_refused(console: FlaskClient, sql: Sql, zone: str) -> None:
    page = console.post("/account/timezone", data={"timezone": zone}, follow_redirects=True).text
    assert 'id="timezone-error"' in page
    assert "timezone must be an IANA time zone such as" in page
    assert sql("SELECT DISTINCT timezone FROM users") == [{"timezone": "UTC"}]


def test_the_result_of_an_experiment_comes_before_the_chart_and_the_tables(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    variants = [{"name": name, "url": f"https://example.com/{name}", "weight": 1} for name in "AB"]
    tested = alice.add("/api/url/add", {"url": "https://example.com/", "variants": variants})
    sold, plain = factories.link(sql, alice.id), factories.link(sql, alice.id)
    store([visit(link) for link in (tested, sold, plain)])
    factories.conversion(sql, alice.id, link=sold)
    for link, is_first in ((tested, True), (sold, True), (plain, False)):
        page = get(console, f"/console/links/{link}")
        assert (page.index('id="conversions"') < page.index('class="chart"')) == is_first
        assert (page.index('id="conversions"') < page.index('class="tables"')) == is_first
