"""The work of the console's pages: their statements, and the rows that these read as an account grows."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import psycopg2
import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.db.statements import Database
from tests import explain, factories
from tests.conftest import Client
from tests.factories import Sql
from tests.test_account_page import signed_in
from tests.test_console import ROWS, console_rules
from tests.visited import Store, Visited

MAX_STATEMENTS = 3  # of a page, besides that of the session
FEW, MANY = 100, 100_000  # links
MAX_GROWTH = 3
FEW_BLOCKS = 100  # a page that reads fewer may read three times these


@pytest.fixture
def browser(app: Flask, admin: Client) -> FlaskClient:
    """A browser of an administrator, who sees all pages."""
    return signed_in(app, "admin@example.com")


def pages(app: Flask, sql: Sql, user_id: int) -> Iterator[str]:
    """Yield the path of each page, with the id of a row of the user."""
    ids: dict[str, int] = {}
    for method, rule in console_rules(app):
        if method != "GET" or "/export/" in rule:  # files of any size are streamed
            continue
        word = rule.split("/")[2] if rule.count("/") > 1 else ""
        if "<" in rule and word not in ids:
            ids[word] = ROWS[word](sql, user_id) if word in ROWS else user_id
        if "/plans/<" in rule:
            ids[word] = sql("SELECT min(id) AS id FROM plans")[0]["id"]
        yield re.sub("<[^>]+>", str(ids.get(word)), rule)
        ids.pop("administration", None)


def test_each_page_is_private_and_needs_at_most_three_statements(
    app: Flask, browser: FlaskClient, admin: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        factories.link(sql, admin.id)
    paths = list(pages(app, sql, admin.id))
    statements: list[object] = []
    execute_on = Database.execute_on

    def count(self: Database, *args: object) -> object:
        statements.append(args)
        return execute_on(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "execute_on", count)
    assert len(paths) > 10
    for path in paths:
        statements.clear()
        answer = browser.get(path)
        assert answer.status_code in (200, 302, 303), path
        assert len(statements) <= 1 + MAX_STATEMENTS, path
        assert answer.headers["Cache-Control"] == "no-store", path


# Without the timeout of the service, because an insert of 100,000 links takes seconds on a busy machine.
ADD_LINKS = """
    WITH added AS (
        INSERT INTO links (user_id, alias, url, title)
        SELECT %(user_id)s, 'speed' || n, 'https://example.com/' || n, 'Link ' || n
          FROM generate_series((SELECT count(*) FROM links WHERE user_id = %(user_id)s) + 1, %(number)s) n
        RETURNING id)
    INSERT INTO totals (target_id, clicks, visitors) SELECT id, 1, 1 FROM added
"""
# As they are rolled up: in the order of the visits, and within a batch in that of the index.
ADD_VISITS = """
    WITH visited AS MATERIALIZED (
        SELECT id, date_bin('15 minutes', now(), 'epoch') - make_interval(hours => (id %% 720)::int) AS at
          FROM links
         WHERE user_id = %(user_id)s AND id NOT IN (SELECT target_id FROM target_quarters)),
    quarters AS (
        INSERT INTO target_quarters (target_id, at, bot, visits, labels)
        SELECT id, at, false, 1, '{"country": {"Peru": 1}}' FROM visited ORDER BY at, id),
    counts AS MATERIALIZED (
        SELECT at, dimension, label, count(*) AS visits
          FROM visited,
               LATERAL (VALUES ('', ''), ('target', id::text), ('country', 'Peru')) AS labels (dimension, label)
         GROUP BY 1, 2, 3),
    account AS (
        INSERT INTO account_rollups AS r (user_id, dimension, at, label, bot, visits)
        SELECT %(user_id)s, dimension, at, label, false, visits FROM counts ORDER BY at, dimension, label COLLATE "C"
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits)
    INSERT INTO account_days AS r (user_id, dimension, day, label, bot, visits)
    SELECT %(user_id)s, dimension, (at AT TIME ZONE 'UTC')::date, label, false, sum(visits)
      FROM counts
     GROUP BY 2, 3, 4
     ORDER BY min(at), 2, 4
    ON CONFLICT (user_id, dimension, day, label, bot) DO UPDATE SET visits = r.visits + excluded.visits
"""


def add_links(raw: psycopg2.extensions.connection, user_id: int, number: int) -> None:
    """Add links until the user has this many, each visited once in the last 30 days, in rows that statistics read."""
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


@pytest.fixture
def analyze(dsn: str, raw: psycopg2.extensions.connection) -> Iterator[Callable[[], None]]:
    """Update the statistics of the planner, as autovacuum does, and again after the test."""

    def run() -> None:
        with raw.cursor() as cursor:
            cursor.execute(
                "VACUUM ANALYZE links, totals, usage, aliases, target_quarters, account_rollups, account_days"
            )

    yield run
    run()
