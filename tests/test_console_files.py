"""Each file of the console has the rows, the names, the figures and the time zone of its page."""

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.console import statistics
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, pages, seen, visit
from tests.support.visited import Store, Visited

ZONE = "Europe/Berlin"
Rows = list[dict[str, str]]


@pytest.fixture
def account(console: FlaskClient, alice: Client, sql: Sql, store: Store) -> dict[str, int]:
    """The ids of rows of alice, whose time zone is that of Berlin: a campaign of two links, a channel of one of them
    and a QR code, and an overlay with an answer."""
    console.post("/account/timezone", data={"timezone": ZONE})
    sale, plain, code = (
        factories.link(sql, alice.id, title="Sale"),
        factories.link(sql, alice.id, url="https://www.example.com/plain?a=1"),
        factories.qr(sql, alice.id),
    )
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    overlay = factories.overlay(sql, alice.id)
    factories.answer(sql, alice.id)
    factories.assign(sql, campaign, [sale, plain])
    for kind, row_id in (("links", sale), ("qr", code)):
        alice.post(f"/api/channel/{channel}/assign/{kind}/{row_id}")
    visits = [visit(sale, days % 40, country=country) for days, country in enumerate(["Peru", "Chile", "Peru"] * 20)]
    store([*visits, visit(plain, 70), visit(plain, variant="B"), *(visit(code, 3, kind="scan") for _ in range(4))])
    sql("UPDATE links SET imported_clicks = 1507 WHERE id = %(id)s RETURNING 1", id=plain)
    return {"links": sale, "qrs": code, "campaigns": campaign, "channels": channel, "overlays": overlay, "plain": plain}


def file(console: FlaskClient, url: str) -> Rows:
    answer = console.get(unescape(url))
    assert (answer.status_code, answer.mimetype) == (200, "text/csv"), url
    return list(csv.DictReader(StringIO(answer.text)))


def files(page: str) -> list[str]:
    return re.findall(r'href="([^"]*(?:format=csv|\.csv)[^"]*)"', page)


def table(page: str, caption: str) -> Iterator[list[str]]:
    """Yield the texts of the rows of a table: of the labels, which are the first in bold, and of the figures."""
    body = page.partition(caption)[2].partition("<tbody>")[2].partition("</tbody>")[0]
    for row in re.findall("<tr>(.*?)</tr>", body, re.DOTALL):
        labels = re.findall(r'<th scope="row">(.*?)</th>', row, re.DOTALL)
        names = [re.search("<bdi>(.*?)</bdi>", label, re.DOTALL) or re.match(r"\s*([^<]*)", label) for label in labels]
        figures = [seen(figure) for figure in re.findall("<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        yield [unescape(name[1]).strip() for name in names if name] + [text.replace(",", "") for text in figures]


def test_no_file_of_the_console_is_compared_with_no_page(
    app: Flask, console: FlaskClient, alice: Client, sql: Sql, account: dict[str, int]
) -> None:
    """The links of all pages lead to those that the tests below compare."""
    found = {
        re.sub(r"/\d+", "", url.partition("?")[0]) + (" of times" if "table=time" in url else "")
        for path in pages(app, sql, alice.id, **account)
        if (answer := console.get(path)).mimetype == "text/html"
        for url in files(answer.text)
    }
    assert found == {
        "/console/statistics",
        "/console/statistics of times",
        "/console/links/visits.csv",
        "/console/qrs/visits.csv",
        "/console/overlays/answers.csv",
        "/console/export/links.csv",  # the file of the API, for other programs
    }
    assert "Times in both are UTC." in get(console, "/console/imports")


@pytest.mark.parametrize(
    "query",
    [
        "dimension=target", "dimension=country", "dimension=campaign", "dimension=channel", "dimension=domain",
        "dimension=country&link={links}", "dimension=country&qr={qrs}", "dimension=target&campaign={campaigns}",
        "dimension=target&channel={channels}", "dimension=country&second=browser&campaign={campaigns}",
        "dimension=country&period=7d&order=change", "dimension=target&q=sale",
    ],
)  # fmt: skip
def test_the_file_of_a_table_has_its_labels_and_its_figures_by_its_headings(
    console: FlaskClient, account: dict[str, int], query: str
) -> None:
    page = get(console, "/console/statistics?" + query.format(**account))
    headings = [seen(text) for text in re.findall("<th scope=.col.[^>]*>(.*?)</th>", page.split('id="by"')[1])]
    number = 2 if "second" in query else 1
    figures = [text.split()[0].lower() for text in headings[number:]]  # behind it are the two orders
    [url] = [url for url in files(page) if "table=time" not in url]
    lines = file(console, url)
    shown = list(table(page, 'id="by"'))
    assert len(lines) == len(shown) > 0
    for line, row in zip(lines, shown, strict=True):
        labels, numbers = row[:number], dict(zip(figures, row[number:], strict=True))
        assert list(line.values())[:number] == labels
        assert {name: line[name] for name in figures if name not in ("share", "change")} == {
            name: text for name, text in numbers.items() if name not in ("share", "change")
        }
        if "change" in figures:
            assert int(line["change"]) == int(numbers["change"].split()[0].replace("\N{MINUS SIGN}", "-"))
    assert {"clicks", "scans", "visits"} & lines[0].keys() == {figures[0]}
    assert ("short URL" in lines[0]) == ("target" in query)
    for line in lines if "target" in query else ():
        assert line["short URL"].startswith(BASE_URL) or line["target"] == "QR code Poster"


@pytest.mark.parametrize("path", ["", "/links/{links}", "/qrs/{qrs}", "/campaigns/{campaigns}", "/channels/{channels}"])
def test_the_files_of_the_tables_of_a_page_begin_with_their_rows(
    console: FlaskClient, account: dict[str, int], path: str
) -> None:
    cards = get(console, f"/console{path.format(**account)}").split('<section class="card bars">')[1:]
    for card in cards:
        url, *_ = files(card)  # the last one is followed by the latest visits
        rows, lines = list(table(card, "<table>")), file(console, url)
        clicks = next(name for name in lines[0] if name in ("clicks", "scans", "visits"))
        assert len(lines) >= len(rows) > 0
        assert [[next(iter(line.values())), line[clicks]] for line in lines[: len(rows)]] == [row[:2] for row in rows]
    assert len(cards) >= (3 if path == "" else 5)


def test_links_without_a_title_have_the_host_and_path_of_their_target(
    console: FlaskClient, account: dict[str, int]
) -> None:
    lines = file(console, "/console/statistics?dimension=target&format=csv")
    assert {line["target"] for line in lines} == {"Sale", "example.com/plain", "QR code Poster"}


@pytest.mark.parametrize("path", ["", "/links/{links}", "/qrs/{qrs}", "/campaigns/{campaigns}", "/channels/{channels}"])
@pytest.mark.parametrize("period", ["28d", "7d", "24h", "month", "12mo"])
def test_the_file_of_a_chart_has_its_figures_in_the_zone_of_the_user(
    console: FlaskClient, account: dict[str, int], path: str, period: str
) -> None:
    page = get(console, f"/console{path.format(**account)}?period={period}")
    urls = [url for url in files(page) if "table=time" in url]
    if not urls:
        assert "Show the figures" not in page  # no visit
        return
    lines = file(console, urls[0])
    shown = list(table(page, "<summary>Show the figures</summary>"))[::-1]  # the last first
    headings = re.findall("<th scope=.col.>(.*?)</th>", page.split("Show the figures")[1])
    figures = [heading.lower() for heading in headings[1 : len(shown[0])]]
    assert [[line[name] for name in figures] for line in lines] == [row[1:] for row in shown]
    assert next(iter(lines[0])) == f"time ({ZONE})"
    today = datetime.now(ZoneInfo(ZONE))
    assert lines[-1][f"time ({ZONE})"][:7] == f"{today:%Y-%m}"


@pytest.mark.parametrize("kind", ["links", "qrs"])
def test_the_file_of_visits_has_all_of_them_at_the_times_of_the_page(
    *, console: FlaskClient, account: dict[str, int], store: Store, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(statistics, "BATCH", 7)
    now = datetime.now(UTC)
    many = [Visited(account[kind], now - timedelta(minutes=number // 3), bot=number % 2 == 0) for number in range(80)]
    store(many)
    page = get(console, f"/console/{kind}/{account[kind]}")
    [url] = [url for url in files(page) if "visits.csv" in url]
    lines = file(console, url)
    assert len(lines) == 40 + (60 if kind == "links" else 4)
    times = [line[f"time ({ZONE})"] for line in lines]
    assert times == sorted(times, reverse=True)
    shown = re.findall('<time datetime="([^"]+)Z"', page.partition(">Latest ")[2])[:10]
    local = [datetime.fromisoformat(f"{text}Z").astimezone(ZoneInfo(ZONE)) for text in shown]
    assert times[:10] == [f"{at:%Y-%m-%d %H:%M:%S}" for at in local]
    assert console.get(f"/console/{kind}/{2**40}/visits.csv").status_code == 404


def test_a_file_of_more_labels_than_a_table_has_them_and_says_if_more_are_left_out(
    console: FlaskClient, alice: Client, sql: Sql, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = factories.link(sql, alice.id)
    store([visit(link, referrer=f"{number}.example.com") for number in range(6)])
    monkeypatch.setattr(statistics, "MAX_LABELS", 2)
    page = get(console, "/console/statistics?dimension=referrer")
    assert "This table has the 2 with the most visits, the file up to 10,000." in seen(page)
    url = "/console/statistics?dimension=referrer&format=csv"
    assert len(file(console, url)) == 6
    monkeypatch.setattr(statistics, "MAX_ROWS", 4)
    lines = file(console, url)
    assert len(lines) == 5
    assert lines[-1] == {"referrer": "Only the 4 with the most visits are in this file.", "visits": ""}


def test_the_file_of_selected_links_has_the_names_and_the_figures_of_the_list(
    console: FlaskClient, account: dict[str, int], sql: Sql
) -> None:
    sql("UPDATE links SET created = '2026-07-01 22:30+00', expiry = '2031-01-01 12:00+00' RETURNING 1")
    page = get(console, "/console/links?order=click")
    names = re.findall('class="row-title"><a href="/console/links/[^"]+"><bdi>([^<]+)', page)
    clicks = re.findall(r'class="row-clicks">\s*<bdi><strong>([\d,]+)', page)
    imported = [int(text) for text in re.findall(r"([\d,]+) imported", page.replace(",", ""))]
    sent = {"action": "export", "id": [account["plain"], account["links"]]}
    answer = console.post("/console/links/selected", data=sent)
    lines = sorted(csv.DictReader(StringIO(answer.text)), key=lambda line: -int(line["clicks"]))
    assert [line["title"] for line in lines] == names == ["example.com/plain", "Sale"]
    assert [int(line["clicks"]) for line in lines] == [int(text.replace(",", "")) for text in clicks] == [1509, 60]
    assert [int(line["imported"]) for line in lines] == [*imported, 0] == [1507, 0]
    assert lines[0][f"created ({ZONE})"] == "2026-07-02 00:30:00"
    assert lines[0][f"expiry ({ZONE})"] == "2031-01-01 13:00:00"


def test_the_file_of_answers_has_all_of_them_in_the_zone_of_the_user(
    *, console: FlaskClient, alice: Client, sql: Sql, account: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.console.overlay.BATCH", 2)
    for _ in range(4):
        factories.answer(sql, alice.id)
    sql("UPDATE overlay_answers SET created = '2026-07-01 22:30+00' RETURNING 1")
    path = f"/console/overlays/{account['overlays']}/answers"
    [url] = files(get(console, path))
    assert file(console, url) == [{f"time ({ZONE})": "2026-07-02 00:30:00", "email": "visitor@example.com"}] * 5
