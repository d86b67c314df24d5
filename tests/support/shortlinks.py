"""A short link with any column values, and requests of visitors for it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.support import factories
from tests.support.factories import Sql
from tests.support.targets import FIREFOX, statistics, wait_until

TARGET = "https://example.com/page"
BRANDED = "go.example.org"
ANDROID = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/130.0.0.0 Mobile Safari/537.36"
)
FACEBOOK = "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"


class Short:
    def __init__(self, app: Flask, sql: Sql, user_id: int, **columns: Any) -> None:
        self.app, self.sql = app, sql
        self.id = factories.link(sql, user_id, url=columns.pop("url", TARGET))
        for name, value in columns.items():
            kept = json.dumps(value) if isinstance(value, dict | list) else value
            sql(f"UPDATE links SET {name} = %(value)s WHERE id = %(id)s RETURNING id", value=kept, id=self.id)
        self.alias = sql("SELECT alias FROM links WHERE id = %(id)s", id=self.id)[0]["alias"]
        self.path = f"/{self.alias}"

    def ask(
        self,
        *,
        method: str = "GET",
        path: str = "",
        agent: str = FIREFOX,
        address: str = "127.0.0.1",
        data: Any = None,
        **headers: str,
    ) -> TestResponse:
        return self.app.test_client().open(
            self.path + path,
            method=method,
            data=data,
            headers={"User-Agent": agent} | {name.replace("_", "-"): value for name, value in headers.items()},
            environ_base={"REMOTE_ADDR": address},
        )

    def redirect_target(self, **request: Any) -> str:
        answer = self.ask(**request)
        assert answer.status_code == 302, answer.text
        assert answer.headers["Cache-Control"] == "no-store"
        return str(answer.headers["Location"])

    def brand(self, host: str = BRANDED, *, scheme: str = "https") -> None:
        """Move the link to a new domain of its owner."""
        [owner] = self.sql("SELECT user_id FROM links WHERE id = %(id)s", id=self.id)
        domain = factories.row(self.sql, "domains", **owner, scheme=scheme, host=host)
        self.sql("UPDATE links SET domain_id = %(domain)s WHERE id = %(id)s RETURNING 1", domain=domain, id=self.id)

    @property
    def clicks(self) -> int:
        return int(statistics(self.sql, self.id)["clicks"])

    def wait_for_clicks(self, number: int) -> None:
        """Wait until the clicks are recorded, for a service that runs in other processes."""
        wait_until(lambda: self.clicks >= number)
        assert self.clicks == number


Make = Callable[..., Short]


@pytest.fixture
def short(located: Flask, sql: Sql, alice: Any) -> Make:
    """Create a link of alice."""
    return lambda **columns: Short(located, sql, alice.id, **columns)


PAGE = "https://example.com/page"


def add(client: Any, **members: Any) -> dict[str, Any]:
    answer = client.post("/api/url/add", {"url": PAGE} | members)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def stored(sql: Sql, client: Any, **members: Any) -> dict[str, Any]:
    link_id = client.add("/api/url/add", {"url": PAGE} | members)
    return sql("SELECT * FROM links WHERE id = %(id)s", id=link_id)[0]


def refused(client: Any, **members: Any) -> str:
    answer = client.post("/api/url/add", {"url": PAGE} | members)
    assert answer.status_code == 400, answer.text
    message: str = answer.get_json()["message"]
    return message
