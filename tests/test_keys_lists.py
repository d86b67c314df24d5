"""Links that a restricted key reads: references to rows that it may not use, and the rows that its lists read."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from tests.conftest import Client
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.keyring import URL, Make, branded
from tests.support.operations import KEYED

READS = [call for call in KEYED if call.method == "GET"]


def test_a_link_keeps_its_short_url_on_a_domain_of_its_owner(alice: Client, make_restricted: Make, sql: Sql) -> None:
    client, (_, domain) = make_restricted(alice, own_only=True), branded(sql, alice)
    link = client.add("/api/url/add", {"url": URL, "custom": "mine"})
    assert alice.put(f"/api/url/{link}/update", {"domain": domain}).get_json()["shorturl"] == f"{domain}/mine"
    [listed] = client.get("/api/urls").get_json()["data"]["urls"]
    [found] = client.get(f"/api/urls?short={domain}/mine").get_json()["data"]["urls"]
    changed = client.put(f"/api/url/{link}/update", {"metatitle": "New"}).get_json()
    records = (listed, found, client.get(f"/api/url/{link}").get_json()["details"], changed, changed["details"])
    assert {record["shorturl"] for record in records} == {f"{domain}/mine"}


@pytest.mark.parametrize(
    ("path", "limit"),
    [("/api/urls", "own_only"), ("/api/urls?after=1000000000000", "domains"), ("/api/urls?order=click", "domains")],
)
def test_a_list_reads_no_links_of_other_keys(
    *, app_with: Callable[..., Flask], alice: Client, make_key: Make, raw: psycopg2.extensions.connection, dsn: str,
    path: str, limit: str, monkeypatch: pytest.MonkeyPatch, sql: Sql,
) -> None:  # fmt: skip
    domain_id, url = branded(sql, alice)
    limits: dict[str, Any] = {"domains": [domain_id]} if limit == "domains" else {"own_only": True}
    domain = {"domain": url} if limit == "domains" else {}
    client = make_key(alice, **limits)
    client.http = app_with(prepare="0").test_client()  # which sends the search path with the statement
    ids = {client.add("/api/url/add", {"url": f"{URL}/{n}"} | domain) for n in range(3)}
    with raw.cursor() as cursor:
        many = "SELECT %s, 'many' || n, 'https://example.com/many' FROM generate_series(1, 5000) AS n"
        cursor.execute(f"INSERT INTO links (user_id, alias, url) {many}", [alice.id])
        cursor.execute("ANALYZE links")

    def read() -> None:
        data = client.get(path).get_json()["data"]
        assert (data["result"], {row["id"] for row in data["urls"]}) == (3, ids)

    assert max(rows_read(monkeypatch, dsn, read)) < 100
