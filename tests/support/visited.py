"""Visits that tests insert directly. They are pending, as those of visitors are."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import psycopg2
import pytest
from flask import Flask
from psycopg2.extras import execute_values

# Visits that a test has inserted into `visits` alone.
PENDING = """
    INSERT INTO pending_visits (user_id, tracked_id, at, bot, country, city, referrer, browser, os, device, language)
    SELECT user_id, tracked_id, at, bot, country, city, referrer, browser, os, device, language
      FROM visits
      JOIN (SELECT id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs) owned ON id = tracked_id
    RETURNING 1
"""


class Visited(NamedTuple):
    """A visit: of a target, at a time, by a visitor, with labels."""

    tracked_id: int
    at: datetime
    visitor: bytes = b"someone"
    country: str = "Germany"
    city: str = "Berlin"
    referrer: str = "t.co"
    browser: str = "Firefox"
    os: str = "Linux"
    device: str = "desktop"
    language: str = "German"
    bot: bool = False


_COLUMNS = ", ".join(Visited._fields)
_STORE = f"""
    WITH visited ({_COLUMNS}) AS (VALUES %s),
    stored AS (
        INSERT INTO visits ({_COLUMNS}) SELECT {_COLUMNS} FROM visited)
    INSERT INTO pending_visits (user_id, tracked_id, at, bot, country, city, referrer, browser, os, device, language)
    SELECT user_id, tracked_id, at, bot, country, city, referrer, browser, os, device, language
      FROM visited
      JOIN (SELECT id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs) owned ON id = tracked_id
"""

Store = Callable[[Iterable[Visited]], None]


@pytest.fixture
def store(raw: psycopg2.extensions.connection) -> Iterator[Store]:
    """Store visits. Create the months that they need, and drop them after the test."""

    def insert(visits: Iterable[Visited]) -> None:
        rows = list(visits)
        with raw.cursor() as cursor:
            for at in {visit.at for visit in rows}:
                cursor.execute("SELECT create_partition(%s)", (at,))
            totals = {(visit.tracked_id, 0, 0) for visit in rows}
            execute_values(
                cursor, "INSERT INTO totals (tracked_id, clicks, visitors) VALUES %s ON CONFLICT DO NOTHING", totals
            )
            execute_values(cursor, _STORE, rows, page_size=10_000)

    yield insert
    with raw.cursor() as cursor:
        cursor.execute("SELECT drop_partition(partition, false) FROM partitions WHERE until <= now()")


def purge(app: Flask) -> Any:
    result = app.test_cli_runner().invoke(args=["visits", "purge"])
    assert result.exit_code == 0, result.output
    return result.output
