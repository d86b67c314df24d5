"""A target that visitors open, and a service with a GeoIP file."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.database import statements
from linkmgr.visits import store
from tests.support import factories, geoip
from tests.support.factories import Sql

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.0 Mobile/15E148 Safari/604.1"
)
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:143.0) Gecko/20100101 Firefox/143.0"


@pytest.fixture(scope="session")
def located(make_app: Callable[..., Flask], tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The service with a GeoIP file."""
    return make_app(geoip_database=geoip.write(tmp_path_factory.mktemp("geoip") / "test.mmdb"))


def wait_until(holds: Callable[[], object], seconds: float = 120) -> None:
    """Wait for what takes a moment. The deadline is for machines that do much else."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def statistics(sql: Sql, tracked_id: int) -> statements.Row:
    totals = sql("SELECT clicks, visitors, top_labels FROM totals WHERE tracked_id = %(id)s", id=tracked_id)
    return store.statistics(totals[0] if totals else dict.fromkeys(store.TOTALS))


class Target:
    """A QR code of alice that visitors open."""

    def __init__(self, app: Flask, sql: Sql, user_id: int) -> None:
        self.app, self.sql = app, sql
        self.id = factories.qr(sql, user_id)
        self.code = sql("SELECT code FROM qrs WHERE id = %(id)s", id=self.id)[0]["code"]

    def visit(
        self, *, agent: str = FIREFOX, address: str = "127.0.0.1", method: str = "GET", **headers: str
    ) -> TestResponse:
        answer = self.app.test_client().open(
            f"/q/{self.code}",
            method=method,
            headers={"User-Agent": agent} | {name.replace("_", "-"): value for name, value in headers.items()},
            environ_base={"REMOTE_ADDR": address},
        )
        assert answer.status_code == 200
        return answer

    def statistics(self) -> statements.Row:
        return statistics(self.sql, self.id)

    @property
    def clicks(self) -> int:
        return int(self.statistics()["clicks"])


@pytest.fixture
def target(located: Flask, sql: Sql, alice: Any) -> Target:
    return Target(located, sql, alice.id)
