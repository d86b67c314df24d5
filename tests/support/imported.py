"""Files to import, and how they are imported."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.test import TestResponse

from linkmgr.features.imports import job
from tests.support.factories import Sql

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


def import_of(client: "Client", import_id: int) -> dict[str, Any]:
    record: dict[str, Any] = client.get(f"/api/imports/{import_id}").get_json()["data"]
    return record


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "READ_SECONDS", 60)
    monkeypatch.setattr(job, "MAX_ROWS", 20)


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


# --- other files

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
DUMP = """\
CREATE TABLE `yourls_url` (
  `keyword` varchar(100) NOT NULL,
  `url` text NOT NULL,
  `title` text,
  `timestamp` timestamp NOT NULL DEFAULT current_timestamp(),
  `ip` varchar(41) NOT NULL,
  `clicks` int(10) unsigned NOT NULL
);
INSERT INTO `yourls_url` VALUES
('{alias}','https://example.com/sale','Sale','2024-01-31 10:00:00','192.0.2.1',{clicks});
CREATE TABLE `yourls_log` (
  `click_id` int(11) NOT NULL,
  `click_time` datetime NOT NULL,
  `shorturl` varchar(200) NOT NULL,
  `referrer` varchar(200) NOT NULL,
  `user_agent` varchar(255) NOT NULL,
  `ip_address` varchar(41) NOT NULL,
  `country_code` char(2) NOT NULL
);
INSERT INTO `yourls_log` VALUES {visits};
"""


def yourls(alias: str, number: int, clicks: int) -> bytes:
    """Return a dump of YOURLS with a link and a number of visits."""
    visits = ",".join(
        f"({n},'2024-02-{1 + n % 28:02} 12:00:00','{alias}','https://t.co/x','{AGENT}','192.0.2.1','DE')"
        for n in range(number)
    )
    return DUMP.format(alias=alias, clicks=clicks, visits=visits).encode()
