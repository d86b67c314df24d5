"""Visits that tests store without a request, as the queue does."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import pytest
from flask import Flask

from linkmgr.visits import store as visits
from tests.support.factories import Sql

_spools = count()
_BATCH = 500  # many tests run at once


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
    utm_source: str = "Unknown"
    utm_medium: str = "Unknown"
    utm_campaign: str = "Unknown"
    variant: str = "Unknown"
    rule: str = "Unknown"
    kind: str = "click"
    bot: bool = False


Store = Callable[[Iterable[Visited]], None]


@pytest.fixture
def store(app: Flask, sql: Sql, drop_past_months: None) -> Store:
    """Store visits, and create the months that they need."""

    def insert(visited: Iterable[Visited]) -> None:
        owners = sql("SELECT id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs")
        users = {owner["id"]: owner["user_id"] for owner in owners}
        stored = [
            visit._asdict()
            | {"user_id": users[visit.tracked_id], "at": visit.at.timestamp(), "visitor": visit.visitor.hex()}
            for visit in visited
        ]
        spool = f"test-{next(_spools)}"
        with app.app_context():
            for start in range(0, len(stored), _BATCH):
                text = json.dumps(stored[start : start + _BATCH])
                visits.create_partitions_for(text)
                assert visits.add(spool, start, start + _BATCH, text)
            visits.delete_spool(spool)

    return insert


def purge(app: Flask) -> Any:
    result = app.test_cli_runner().invoke(args=["visits", "purge"])
    assert result.exit_code == 0, result.output
    return result.output
