"""The numbers of the console agree with those of the API, and those of busy links are read from the days."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.console import home
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support import factories
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.pages import get
from tests.support.reports import DAY, NOW, TODAY, report
from tests.support.schemas import execute
from tests.support.visited import Store, Visited


def visits_of(link: int) -> list[Visited]:
    """Return visits of the last two years, many of them at the start of a UTC day."""
    random = Random(1)  # noqa: S311 - reproducible
    times = [TODAY - random.randrange(760) * DAY + random.choice([0, 1, 4, 6, 20]) * DAY / 24 for _ in range(500)]
    times += [TODAY - days * DAY + hours * DAY / 24 for days in range(395, 406) for hours in (0, 3, 12, 23)]
    return [
        Visited(link, min(at, NOW), country=random.choice(["Germany", "Peru", "France"]), bot=random.random() < 0.2)
        for at in times
    ]


def chart(page: str) -> list[tuple[int, int]]:
    """Return the clicks in each bucket, and in the bucket of the period before."""
    marks = re.findall(r"<title>[^<]*: (\d+), (\d+) before[^<]*</title>", page)
    return [(int(clicks), int(previous)) for clicks, previous in marks]


def table(page: str, heading: str) -> dict[str, int]:
    rows = page.partition(f"<h2>{heading}</h2>")[2].split("</section>")[0]
    labels = re.findall(r"<bdi>([^<]*)</bdi>(?:</a>)?(?:</span>|</p>).*?<td>(\d+)", rows, re.DOTALL)
    return {label.partition(" (")[0]: int(clicks) for label, clicks in labels}


def days(first: date, after: date) -> str:
    return f"from={first}&to={after}"


@pytest.mark.usefixtures("drop_past_months")
@pytest.mark.parametrize(
    ("zone", "folded"),
    [("UTC", False), ("America/New_York", True), ("Asia/Kathmandu", False), ("Asia/Kathmandu", True)],
)
def test_the_page_of_a_link_agrees_with_the_api_on_each_period(
    *, app: Flask, console: FlaskClient, alice: Client, sql: Sql, store: Store, link: int, zone: str, folded: bool
) -> None:
    console.post("/account/timezone", data={"timezone": zone})
    visits = visits_of(link)
    store([*visits, Visited(link, NOW - 1500 * DAY)])  # no period is compared with one before the first visit
    if folded:
        with app.app_context():
            purge.purge()

    def counts(query: str) -> list[int]:
        return [row["clicks"] for row in report(alice, f"ids={link}&timezone={zone}&{query}")["data"]["rows"]]

    def agree(page_query: str, query: str, unit: str, before: str | None = None) -> None:
        page = get(console, f"/console/links/{link}?{page_query}&by={unit}")
        found = chart(page)
        expected = counts(f"{query}&by=time:{unit}")
        to_come = [0] * (len(expected) - len(found)) if page_query == "period=7d" else []  # hours that are not shown
        assert [clicks for clicks, _ in found] + to_come == expected, page_query
        countries = report(alice, f"ids={link}&timezone={zone}&{query}&by=country")["data"]["rows"]
        assert table(page, "Countries") == {row["country"]: row["clicks"] for row in countries}, page_query
        if before:
            assert sum(previous for _, previous in found) == sum(counts(before)), page_query

    for period, unit in (("7d", "hour"), ("90d", "day"), ("90d", "week"), ("12mo", "week"), ("12mo", "month")):
        agree(f"period={period}", f"period={period}", unit)
    today = datetime.now(UTC).date()
    for ago, length, unit in ((300, 5, "hour"), (300, 60, "day"), (403, 6, "hour"), (420, 40, "day"), (500, 90, "week"),
                              (760, 700, "month")):  # fmt: skip
        first, after = today - ago * DAY, today - ago * DAY + length * DAY
        shown = days(first, after - timedelta(days=1))
        agree(shown, days(first, after), unit, days(first - length * DAY, first))


@pytest.fixture
def busy(sql: Sql, store: Store, link: int, dsn: str) -> int:
    """A link with visits in 3,000 quarters of an hour, and with days."""
    store([Visited(link, NOW - number * timedelta(minutes=15)) for number in range(3000)])
    execute(dsn, "VACUUM ANALYZE tracked_rollups, visits")
    return link


@pytest.mark.parametrize(("zone", "period"), [("UTC", "28d"), ("America/New_York", "12mo")])
def test_the_page_of_a_busy_link_reads_its_days(
    *, console: FlaskClient, busy: int, dsn: str, monkeypatch: pytest.MonkeyPatch, zone: str, period: str
) -> None:
    console.post("/account/timezone", data={"timezone": zone})
    page = partial(get, console, f"/console/links/{busy}?period={period}")
    assert "clicks in the last" in page()
    assert max(rows_read(monkeypatch, dsn, page)) < 3000  # as many as quarters of an hour, in each of two counts


def test_the_top_links_of_a_large_account_have_exact_numbers(
    console: FlaskClient, alice: Client, sql: Sql, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.post("/account/timezone", data={"timezone": "Asia/Kathmandu"})
    targets = [factories.link(sql, alice.id, title="A"), factories.qr(sql, alice.id), factories.link(sql, alice.id)]
    visits = [
        Visited(target, NOW - hours * DAY / 24, bot=hours % 5 == 0)
        for number, target in enumerate(targets, 1)
        for hours in range(0, 32 * 24, number)
    ]
    store(visits)
    page = get(console, "/console")
    exact = table(page, "Top links and QR codes")
    assert "busiest day" not in page
    assert list(exact) == sorted(exact, key=lambda name: -exact[name])
    assert len(exact) == len(targets)
    monkeypatch.setattr(home, "_MAX_COMPARED", 0)
    page = get(console, "/console")
    assert "busiest day" in page
    assert table(page, "Top links and QR codes") == exact
