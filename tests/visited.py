"""Visits that tests insert directly. The trigger of the table counts them as it counts those of visitors."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import psycopg2
import pytest
from psycopg2.extras import execute_values

LABELS = ("country", "city", "referrer", "browser", "os", "device", "language")


class Visited(NamedTuple):
    """A visit: of a target, at a time, by a visitor, with labels."""

    target_id: int
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


Store = Callable[[Iterable[Visited]], None]


@pytest.fixture
def store(raw: psycopg2.extensions.connection) -> Iterator[Store]:
    """Store visits, with their labels among those that are counted on their own. Create the months that they need, and
    drop them after the test."""

    def insert(visits: Iterable[Visited]) -> None:
        rows = list(visits)
        labels = {(visit.target_id, name, getattr(visit, name), 0) for visit in rows for name in LABELS}
        columns = ", ".join(Visited._fields)
        with raw.cursor() as cursor:
            for at in {visit.at for visit in rows}:
                cursor.execute("SELECT create_partition(%s)", (at,))
            execute_values(cursor, "INSERT INTO target_breakdowns VALUES %s ON CONFLICT DO NOTHING", labels)
            totals = {(visit.target_id, 0, 0) for visit in rows}
            execute_values(
                cursor, "INSERT INTO totals (target_id, clicks, visitors) VALUES %s ON CONFLICT DO NOTHING", totals
            )
            execute_values(cursor, f"INSERT INTO visits ({columns}) VALUES %s", rows, page_size=10_000)

    yield insert
    with raw.cursor() as cursor:
        cursor.execute("SELECT drop_partition(partition, false) FROM partitions WHERE until <= now()")
