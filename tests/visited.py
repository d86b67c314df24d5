"""Visits that tests insert directly. The trigger of the table counts them as it counts those of visitors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from psycopg2.extras import execute_values

from tests.factories import Sql


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
    language: str = "de"
    bot: bool = False


def insert(raw: Any, visits: Iterable[Visited]) -> None:
    """Insert visits, with their labels among those that are counted on their own."""
    rows = list(visits)
    with raw.cursor() as cursor:
        execute_values(cursor, "SELECT create_partition(at) FROM (VALUES %s) v (at)", {(visit.at,) for visit in rows})
        labels = {
            (visit.target_id, name, getattr(visit, name), 0)
            for visit in rows
            for name in ("country", "city", "referrer", "browser", "os", "device", "language")
        }
        execute_values(cursor, "INSERT INTO target_breakdowns VALUES %s ON CONFLICT DO NOTHING", labels)
        columns = ", ".join(Visited._fields)
        execute_values(cursor, f"INSERT INTO visits ({columns}) VALUES %s", rows)


def clear(sql: Sql) -> None:
    for table in ("visits", "target_rollups", "target_days", "account_rollups", "account_days"):
        sql(f"DELETE FROM {table} RETURNING 1")
