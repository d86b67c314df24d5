"""Links that refer to one row, and background jobs that are killed between two batches."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database import jobs
from linkmgr.features.imports import job
from tests.support.factories import Sql

MANY = 2_500
BATCH = 10_000  # rows that a batch may read and write, cascades included
VISITS = """
    WITH visited AS (
        INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os)
        SELECT %(id)s, now(), sha256(int4send(n)), '', '', '', '' FROM generate_series(1, %(many)s) n),
    known AS (
        INSERT INTO visitors SELECT %(id)s, sha256(int4send(n)), current_date FROM generate_series(1, %(many)s) n),
    rollups AS (
        INSERT INTO tracked_rollups
        SELECT %(id)s, 'quarter', false, now() - n * interval '15 minutes', 1 FROM generate_series(1, 1000) n)
    INSERT INTO totals VALUES (%(id)s, %(many)s, %(many)s) RETURNING 1
"""
STATISTICS = """
    SELECT tracked_id FROM visits UNION ALL SELECT tracked_id FROM visitors
     UNION ALL SELECT tracked_id FROM tracked_rollups UNION ALL SELECT tracked_id FROM totals
"""


@pytest.fixture
def links(sql: Sql, alice: Any) -> list[int]:
    """Add many links of alice."""
    made = sql(
        """
        INSERT INTO links (user_id, alias, url)
        SELECT %(owner)s, 'link-' || n, 'https://example.com/' FROM generate_series(1, %(many)s) n
        RETURNING id
        """,
        owner=alice.id,
        many=MANY,
    )
    return [link["id"] for link in made]


@pytest.fixture
def run_jobs(app: Flask) -> Callable[[], None]:
    """Run the background jobs that are due, and the jobs that they enqueue."""

    def run() -> None:
        with app.app_context():
            while jobs.run_next(lambda _: False) or jobs.fetch_next(lambda _: False):
                pass

    return run


@pytest.fixture
def one_batch(app: Flask, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Run one batch of a job in a process that is then killed, and let its lease expire. A batch does not end earlier
    on a busy machine."""
    monkeypatch.setattr(job, "READ_SECONDS", 60)

    def run() -> bool:
        with app.app_context():
            try:
                return jobs.run_next(_killed) or jobs.fetch_next(_killed)
            except KeyboardInterrupt:
                sql("UPDATE jobs SET due = now() RETURNING 1")
                return True

    return run


def _killed(_: float) -> bool:
    raise KeyboardInterrupt  # not caught by any exception handler
