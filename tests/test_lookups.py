"""Lookups by alias read as few rows when many hosts have the alias."""

import psycopg2
import pytest
from flask import Flask

from tests.conftest import BASE_URL, Client
from tests.support.explain import rows_read

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
