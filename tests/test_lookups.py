"""Lookups by alias read as few rows when many hosts have the alias. Only a lost database is a reason to answer from
memory."""

from unittest.mock import Mock

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import lookups, statements
from tests.conftest import BASE_URL, Client
from tests.support.explain import rows_read
from tests.support.targets import FIREFOX

HOSTS = 2000


@pytest.fixture
def host(alice: Client, raw: psycopg2.extensions.connection) -> str:
    """Return one of many domains that have a link with the alias `sale`."""
    with raw.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO domains (user_id, scheme, host)
            SELECT %(id)s, 'https', 'go' || n || '.example.com' FROM generate_series(1, %(hosts)s) n;
            INSERT INTO links (user_id, domain_id, alias, url)
            SELECT user_id, id, 'sale', 'https://example.com/' || host FROM domains;
            ANALYZE
            """,
            {"id": alice.id, "hosts": HOSTS},
        )
        alice.add("/api/url/add", {"url": "https://example.com/ours", "custom": "sale"})
        alice.add("/api/bio/add", {"name": "Dana", "alias": "dana"})
        return f"go{HOSTS // 2}.example.com"


def test_an_alias_on_many_hosts_is_found_by_the_index(
    app: Flask, alice: Client, dsn: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = app.test_client()

    def visit() -> None:
        assert visitor.get("/sale").headers["Location"] == "https://example.com/ours"
        assert visitor.get("/sale", headers={"Host": host}).headers["Location"] == f"https://example.com/{host}"
        assert "Dana" in visitor.get("/dana").text

    def search() -> None:
        for base in (BASE_URL, f"https://{host}"):
            assert alice.get(f"/api/urls?short={base}/sale").get_json()["data"]["result"] == 1

    def choose() -> None:
        assert alice.put("/api/account/update", {"domain": host}).status_code == 200

    for call in (visit, search, choose):
        assert max(rows_read(monkeypatch, dsn, call)) < 100


def location(app: Flask, alias: str) -> str | None:
    return app.test_client().get(f"/{alias}", headers={"User-Agent": FIREFOX}).headers.get("Location")


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_link_is_read_although_no_connection_is_idle(app: Flask, alice: Client, *, is_deleted: bool) -> None:
    """As after a restart of the database. A recent link would be answered from memory during an outage."""
    link = alice.add("/api/url/add", {"url": "https://example.com/a", "custom": "changed"})
    assert location(app, "changed") == "https://example.com/a"
    alice.put(f"/api/url/{link}/update", {"url": "https://example.com/b"})
    if is_deleted:
        alice.delete(f"/api/url/{link}/delete")
    with app.app_context():
        statements.database().close_idle()
        assert not lookups.lookups().primary.has_idle
    assert location(app, "changed") == (None if is_deleted else "https://example.com/b")


def test_a_recent_link_does_not_hide_a_bug(
    app: Flask, alice: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/a", "custom": "recent"})
    assert location(app, "recent") == "https://example.com/a"
    for failure in (AttributeError("ours"), psycopg2.ProgrammingError("ours")):
        with app.app_context():
            statements.database().close_idle()
        with monkeypatch.context() as patch:
            patch.setattr(statements.Database, "take", Mock(side_effect=failure))
            assert location(app, "recent") is None
    assert "AttributeError" in caplog.text
    assert "ProgrammingError" in caplog.text
