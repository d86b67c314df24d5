"""The work of the console's pages: their statements, and the rows that these read as an account grows."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus

import psycopg2
import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.console import queries
from linkmgr.repository import link_lists
from tests.conftest import Client
from tests.support import explain, factories
from tests.support.factories import Sql
from tests.support.pages import pages, signed_in
from tests.support.visited import Store, Visited

MAX_STATEMENTS = 3  # of a page, besides that of the session
FEW, MANY = 100, 100_000  # links
MAX_GROWTH = 3
# A page that reads fewer may read three times these: plans differ with the rows that ANALYZE samples. One that reads
# all links reads more.
FEW_BLOCKS = 400


@pytest.fixture
def browser(app: Flask, admin: Client) -> FlaskClient:
    """A browser of an administrator, who sees all pages."""
    return signed_in(app, "admin@example.com")


def test_each_page_is_private_and_needs_at_most_three_statements(
    app: Flask, browser: FlaskClient, admin: Client, sql: Sql, executed: list[str]
) -> None:
    for _ in range(20):
        factories.link(sql, admin.id)
    paths = list(pages(app, sql, admin.id))
    assert len(paths) > 10
    for path in paths:
        executed.clear()
        answer = browser.get(path)
        assert answer.status_code in (200, 302, 303), path
        statements = [text for text in executed if "SELECT blocks" not in text]  # once in two seconds
        # That of an account with conversions counts them too.
        assert len(statements) <= 1 + MAX_STATEMENTS + (path == "/console/statistics"), path
        assert answer.headers["Cache-Control"] == "no-store", path


def test_conversions_cost_an_account_without_any_no_statement(browser: FlaskClient, executed: list[str]) -> None:
    browser.get("/console/statistics")
    executed.clear()
    browser.get("/console/statistics")
    assert not any("conversions" in text and "WITH counted" in text for text in executed)
    assert len([text for text in executed if "SELECT blocks" not in text]) <= 1 + MAX_STATEMENTS


# Without the timeout of the service, because an insert of 100,000 links takes seconds on a busy machine.
ADD_LINKS = """
    WITH added AS (
        INSERT INTO links (user_id, alias, url, title)
        SELECT %(user_id)s, 'speed' || n, 'https://example.com/' || n, 'Link ' || n
          FROM generate_series((SELECT count(*) FROM links WHERE user_id = %(user_id)s) + 1, %(number)s) n
        RETURNING id)
    INSERT INTO totals (tracked_id, clicks, visitors) SELECT id, 1, 1 FROM added
"""
# As they are stored: in the order of the visits, and within a batch in that of the index.
ADD_VISITS = """
    WITH visited AS MATERIALIZED (
        SELECT id, date_bin('15 minutes', now(), 'epoch') - make_interval(hours => (id %% 720)::int) AS at
          FROM links
         WHERE user_id = %(user_id)s AND id NOT IN (SELECT tracked_id FROM tracked_rollups)),
    quarters AS (
        INSERT INTO tracked_rollups (tracked_id, unit, bot, at, visits, labels)
        SELECT id, unit, false, start, 1, '{"country": {"Peru": 1}}'
          FROM visited, LATERAL (VALUES ('quarter', at), ('day', date_trunc('day', at, 'UTC'))) AS units (unit, start)
         ORDER BY at, id),
    counts AS MATERIALIZED (
        SELECT ROW(%(user_id)s, id, false, at, dimension, label, 1)::visit_sum AS sum
          FROM visited, LATERAL (VALUES ('', ''), ('country', 'Peru')) AS labels (dimension, label)
         ORDER BY at, id)
    SELECT add_account_sums(day_sums(ARRAY(SELECT sum FROM counts)))
"""


def add_links(raw: psycopg2.extensions.connection, user_id: int, number: int) -> None:
    """Add links until the user has this many, each visited once in the last 28 days, in rows that statistics read."""
    with raw.cursor() as cursor:
        for statement in (ADD_LINKS, ADD_VISITS):
            cursor.execute(statement, {"user_id": user_id, "number": number})


@pytest.mark.slow
def test_no_page_reads_more_than_three_times_as_much_with_1000_times_as_many_links(
    *,
    app: Flask,
    dsn: str,
    admin: Client,
    browser: FlaskClient,
    sql: Sql,
    store: Store,
    raw: psycopg2.extensions.connection,
    monkeypatch: pytest.MonkeyPatch,
    analyze: Callable[[], None],
) -> None:
    link_id = factories.link(sql, admin.id)
    store([Visited(link_id, datetime.now(UTC) - timedelta(days=days)) for days in range(60)])
    paths = list(pages(app, sql, admin.id))
    work: dict[int, dict[str, int]] = {}

    def read(path: str) -> int:
        """Return the number of blocks that the statements of a page read."""
        statuses: list[int] = []
        blocks = explain.blocks_read(monkeypatch, dsn, lambda: statuses.append(browser.get(path).status_code))
        assert statuses[0] < HTTPStatus.BAD_REQUEST, path
        return sum(blocks)

    for number in (FEW, MANY):
        add_links(raw, admin.id, number)
        analyze()
        work[number] = {path: read(path) for path in paths}
    read_blocks = {path: (max(few, FEW_BLOCKS), work[MANY][path]) for path, few in work[FEW].items()}
    slow = {path: (few, many) for path, (few, many) in read_blocks.items() if many > MAX_GROWTH * few}
    assert slow == {}


def test_the_pages_of_a_campaign_read_as_much_with_ten_times_as_many_links(
    *,
    app: Flask,
    dsn: str,
    admin: Client,
    browser: FlaskClient,
    sql: Sql,
    raw: psycopg2.extensions.connection,
    monkeypatch: pytest.MonkeyPatch,
    analyze: Callable[[], None],
) -> None:
    monkeypatch.setattr(queries, "MANY", FEW)
    campaign_id = factories.campaign(sql, admin.id)
    paths = f"/console/campaigns/{campaign_id}", f"/u/admin/list-{campaign_id}"
    work: list[int] = []
    for number in (2 * FEW, 20 * FEW):
        add_links(raw, admin.id, number)
        sql("UPDATE links SET campaign = %(id)s RETURNING 1", id=campaign_id)
        analyze()
        for path in paths:
            work.append(sum(explain.rows_read(monkeypatch, dsn, partial(browser.get, path))))
    page = browser.get(paths[0]).text
    assert (f"those of the newest {FEW}." in page, f"<strong>{FEW}+</strong>" in page) == (True, True)
    assert (work[2] < 2 * work[0], work[3] < 2 * work[1]) == (True, True), work


@pytest.mark.parametrize("order", ["click", "created", "visit"])
def test_an_order_reads_as_much_with_ten_times_as_many_links(
    *,
    dsn: str,
    admin: Client,
    browser: FlaskClient,
    raw: psycopg2.extensions.connection,
    monkeypatch: pytest.MonkeyPatch,
    analyze: Callable[[], None],
    order: str,
) -> None:
    monkeypatch.setattr(link_lists, "MAX_COMPARED", FEW)
    work: list[int] = []
    for number in (4 * FEW, 40 * FEW):
        add_links(raw, admin.id, number)
        analyze()
        path = f"/console/links?order={order}"
        work.append(sum(explain.rows_read(monkeypatch, dsn, partial(browser.get, path))))
    assert work[1] < 1.5 * work[0], work


@pytest.fixture
def analyze(dsn: str, raw: psycopg2.extensions.connection) -> Iterator[Callable[[], None]]:
    """Update the statistics of the planner, as autovacuum does, and again after the test."""

    def run() -> None:
        with raw.cursor() as cursor:
            tables = "links, totals, usage, aliases, tracked_rollups, account_totals, account_targets, account_labels"
            cursor.execute(f"VACUUM ANALYZE {tables}")

    yield run
    run()
