"""Files to import, and how they are imported."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.test import TestResponse

from tests.factories import Sql

if TYPE_CHECKING:
    from tests.conftest import Client

HEADER = "createdAt,shortCode,domain,longUrl,tags,title,visits"
Import = Callable[..., dict[str, Any]]


def shlink(*rows: str) -> bytes:
    """Return a CSV with the columns of Shlink."""
    return "\r\n".join([HEADER, *rows, ""]).encode()


def sale(alias: str, target: str = "https://example.com/sale", clicks: int = 0) -> str:
    return f"2024-01-31T10:00:00+00:00,{alias},s.example.com,{target},,Sale,{clicks}"


def send(client: "Client", file: bytes, query: str = "") -> TestResponse:
    return client.post(f"/api/imports{query}", data=file, content_type="text/csv")


def details(client: "Client", alias: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/urls?short={alias}").get_json()["details"]
    return found


def aliases(sql: Sql, client: "Client") -> list[str]:
    rows = sql("SELECT alias FROM links WHERE user_id = %(id)s ORDER BY alias", id=client.id)
    return [row["alias"] for row in rows]


@pytest.fixture
def run_import(run_jobs: Callable[[], None]) -> Import:
    """Import a file, and return the state of the import at its end."""

    def run(client: "Client", file: bytes, query: str = "") -> dict[str, Any]:
        answer = send(client, file, query)
        assert answer.status_code == 200, answer.text
        run_jobs()
        found: dict[str, Any] = client.get(f"/api/imports/{answer.get_json()['id']}").get_json()["data"]
        return found

    return run


COUNTS = ("state", "read", "made", "updated", "skipped", "failed")


def counts(found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found[name] for name in COUNTS)
