"""Reports of conversions read few rows, however many there are and whenever the planner last counted them: a connection
keeps the plan of a small table until the table is analyzed."""

import time
from collections.abc import Callable, Iterator
from itertools import count

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import statements
from linkmgr.features.conversions import clicks
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.targets import FIREFOX

REPORTS, MANY = 20, 2000
TABLES = "conversions, visits, visitors"


@pytest.fixture
def link(app: Flask, alice: Client, raw: psycopg2.extensions.connection, sql: Sql) -> Iterator[int]:
    """A link, in tables that are empty and of which no connection has plans."""
    raw.cursor().execute(f"TRUNCATE {TABLES}")
    with app.app_context():
        statements.database().close_idle()
    yield factories.link(sql, alice.id)
    raw.cursor().execute(f"TRUNCATE {TABLES}")


def fill(sql: Sql, link: int) -> None:
    sql(
        """
        WITH numbers AS (SELECT n FROM generate_series(1, %(many)s) n),
        added AS (INSERT INTO conversions (user_id, tracked_id, click, event, order_id, source)
                  SELECT user_id, id, now() - n * interval '1 minute', 'sale', n, 'key' FROM links, numbers
                   WHERE id = %(link)s),
        seen AS (INSERT INTO visitors SELECT %(link)s, int4send(n), now() FROM numbers),
        visited AS (INSERT INTO visits (tracked_id, at, visitor) SELECT %(link)s, now(), '' FROM numbers)
        INSERT INTO links (user_id, alias, url)
        SELECT user_id, 'plan-' || n, 'https://example.com/' || n FROM links, numbers WHERE id = %(link)s RETURNING 1
        """,
        link=link,
        many=MANY,
    )


def rows_read(app: Flask, sql: Sql, call: Callable[[], object]) -> int:
    """Return the number of rows that a call reads of the tables and of links."""

    def read() -> int:
        with app.app_context():
            for statement in ("SELECT pg_stat_force_next_flush()", "SELECT 1"):
                statements.run(statement)
        [row] = sql(
            """
            SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer AS rows FROM pg_stat_user_tables
             WHERE relname IN ('conversions', 'visitors', 'links') OR relname LIKE 'visits%%'
            """
        )
        return int(row["rows"])

    before = read()
    call()
    return read() - before


@pytest.mark.parametrize("plans_of", ["empty", "small"])
@pytest.mark.parametrize("has_click", [True, False])
def test_a_report_reads_few_rows_by_the_plans_of_small_tables(
    *,
    app: Flask,
    alice: Client,
    link: int,
    raw: psycopg2.extensions.connection,
    sql: Sql,
    plans_of: str,
    has_click: bool,
) -> None:
    numbers, now = count(), time.time() - 3600

    def report() -> None:
        """Report conversions of new clicks and orders of the link."""
        with app.app_context():
            orders = [(str(n), clicks.click_id(link, now + n)) for _, n in zip(range(REPORTS), numbers, strict=False)]
        unseen = {"link": link, "ip": "192.0.2.7", "agent": FIREFOX}
        sent = [{"order": f"A-{n}"} | ({"click": id_} if has_click else unseen) for n, id_ in orders]
        results = alice.post("/api/conversions/batch", {"conversions": sent}).get_json()["results"]
        assert {row["result"] for row in results} == {"counted" if has_click else "no_visit"}

    report()
    if plans_of == "small":
        raw.cursor().execute(f"ANALYZE {TABLES}, links")
        report()
    fill(sql, link)
    assert rows_read(app, sql, report) < 10 * REPORTS


def test_conversions_are_read_without_those_of_other_links_and_accounts(
    *, app: Flask, alice: Client, bob: Client, link: int, raw: psycopg2.extensions.connection, sql: Sql
) -> None:
    other = factories.link(sql, alice.id)

    def read() -> None:
        assert alice.get(f"/api/url/{other}/conversions").get_json()["data"]["conversions"] == 0
        for client, selected in ((alice, f"&ids={other}"), (bob, "")):
            totals = client.get(f"/api/stats?metrics=conversions{selected}").get_json()["data"]["totals"]
            assert totals == {"conversions": 0}

    read()
    fill(sql, link)
    raw.cursor().execute("ANALYZE links")
    assert rows_read(app, sql, read) < 100


def test_an_order_is_found_among_many(
    app: Flask, alice: Client, link: int, raw: psycopg2.extensions.connection, sql: Sql
) -> None:
    fill(sql, link)
    raw.cursor().execute("ANALYZE conversions")

    def find() -> None:
        for query, number in {"order=7": 1, "order=7&event=lead": 0, "order=x": 0}.items():
            assert alice.get(f"/api/conversions?{query}").get_json()["data"]["result"] == number

    assert rows_read(app, sql, find) < 100
