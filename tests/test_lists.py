"""A list reads only the caller's rows, however many rows other users have, and by cursor only those that it returns."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from linkmgr.core.fields.query import NAMED_PAGING
from tests.conftest import Client
from tests.support import factories, pages
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.lists import LISTS as ALL
from tests.support.operations import CALLS
from tests.support.visited import Store

# A path, its table, and the columns of n rows besides their owner.
LISTS = {
    "/api/pixels": ("pixels", {"type": "'bing'", "name": "'n'", "tag": "'t'"}),
    "/api/urls": ("links", {"alias": "%(user_id)s::bigint || '-' || n", "url": "'https://example.org/' || n"}),
}


@pytest.mark.parametrize("path", LISTS)
def test_a_list_reads_no_rows_of_other_users_and_by_cursor_none_that_it_skips(
    alice: Client, bob: Client, dsn: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    table, columns = LISTS[path]
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        for owner, rows in ((alice, 3), (bob, 20_000)):
            cursor.execute(
                f"INSERT INTO {table} (user_id, {', '.join(columns)}) "
                f"SELECT %(user_id)s, {', '.join(columns.values())} FROM generate_series(1, %(n)s) n",
                {"user_id": owner.id, "n": rows},
            )
        cursor.execute(f"ANALYZE {table}")
        cursor.execute(f"SELECT id FROM {table} WHERE user_id = %s ORDER BY id OFFSET 10000 LIMIT 1", [bob.id])
        [(middle,)] = cursor.fetchall()
    connection.close()

    def read() -> None:
        assert alice.get(path).get_json()["data"]["result"] == 3

    def read_middle() -> None:
        assert bob.get(f"{path}?after={middle}").get_json()["data"]["result"] == 20_000

    assert max(rows_read(monkeypatch, dsn, read)) < 100
    assert max(rows_read(monkeypatch, dsn, read_middle)) < 100


NAMED = [call.path for call in CALLS if NAMED_PAGING.items() <= call.operation.query.items()]


@pytest.mark.parametrize("path", NAMED)
def test_rows_are_found_and_sorted_by_their_names(alice: Client, bob: Client, sql: Sql, path: str) -> None:
    key, make, table, _ = ALL[path]
    column = {"domains": "host", "members": "email"}.get(table, "name")
    ids = {}
    for name in ("b.example.org", "A.EXAMPLE.net", "c%.example.com"):
        ids[name[0]] = make(sql, alice.id)
        sql(f"UPDATE {table} SET {column} = %(name)s WHERE id = %(id)s RETURNING 1", name=name, id=ids[name[0]])
    make(sql, bob.id)

    def found(query: str) -> tuple[int, list[int]]:
        data = alice.get(f"{path}?{query}").get_json()["data"]
        assert "next" not in data
        return data["result"], [row["id"] for row in data[key]]

    assert found("q=EXAMPLE.") == found("order=date") == (3, [ids["c"], ids["A"], ids["b"]])
    assert found("order=name") == (3, [ids["A"], ids["b"], ids["c"]])
    assert found("order=name&q=.example&limit=2&page=2") == (3, [ids["c"]])
    assert found("q=a.example") == (1, [ids["A"]])
    assert found(f"q=a.example&after={2**62}") == (1, [ids["A"]])
    assert found("q=%25") == (1, [ids["c"]])
    assert found("q=absent") == found("q=absent&page=2") == (0, [])
    for query, field in (("order=name&after=5", "after"), ("order=x", "order"), ("q=%00", "q")):
        answer = alice.get(f"{path}?{query}")
        assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (400, field)


def test_links_have_filters_and_orders(
    alice: Client, bob: Client, make_restricted: Callable[..., Client], sql: Sql, store: Store
) -> None:
    campaign, channel, domain = (getattr(factories, kind)(sql, alice.id) for kind in ("campaign", "channel", "domain"))
    [branded] = sql("SELECT domain, host FROM domains WHERE id = %(id)s", id=domain)
    bodies: dict[str, dict[str, Any]] = {
        "old": {},
        "hidden": {"status": "private", "campaign": campaign},
        "tagged": {"channel": channel, "campaign": campaign, "metatitle": "Needle"},
        "branded": {"domain": branded["domain"], "custom": "needle"},
    }
    ids = {name: alice.add("/api/url/add", {"url": f"https://example.com/{name}"} | bodies[name]) for name in bodies}
    names = {row_id: name for name, row_id in ids.items()}
    sql("UPDATE links SET created = '2020-01-02' WHERE id = %(id)s RETURNING 1", id=ids["old"])
    bob.add("/api/url/add", {"url": "https://example.com/needle"})
    store([pages.visit(ids["hidden"]), pages.visit(ids["hidden"]), pages.visit(ids["old"])])

    def found(query: str, client: Client = alice) -> list[str]:
        data = client.get(f"/api/urls?{query}").get_json()["data"]
        assert data["result"] == len(data["urls"]) or "after" in query
        return [names[link["id"]] for link in data["urls"]]

    assert found("sort=asc") == [*ids]
    assert found(f"campaign={campaign}") == ["tagged", "hidden"]
    assert found(f"campaign={campaign}&sort=asc") == ["hidden", "tagged"]
    assert found(f"campaign={campaign}&after={ids['tagged']}") == ["hidden"]
    assert found(f"campaign={campaign}&q=needle") == found(f"channel={channel}") == ["tagged"]
    assert found("q=NEEDLE") == ["branded", "tagged"]
    assert found("status=private") == ["hidden"]
    assert found("status=public&order=click") == ["old", "branded", "tagged"]
    assert found("clicked=no") == ["branded", "tagged"]
    assert found("clicked=yes&sort=asc") == ["old", "hidden"]
    assert found("order=click") == ["hidden", "old", "branded", "tagged"]
    assert found("order=click&sort=asc") == ["tagged", "branded", "old", "hidden"]
    assert found("from=2020-01-02&to=2020-01-02T00:01") == found("to=2020-01-03") == ["old"]
    assert found("to=2020-01-02T01:00%2B01:00") == found("campaign=0") == found(f"channel={2**80}") == []
    assert found(f"domain={branded['host']}") == found(f"domain={branded['domain']}/") == ["branded"]
    assert found("domain=http://127.0.0.1:5000&from=2021-01-01") == ["tagged", "hidden"]
    assert found("status=public", make_restricted(alice, own_only=True)) == []
    assert bob.get(f"/api/urls?domain={branded['host']}").get_json()["code"] == "domain_unknown"
    for query in ("after=5&sort=asc", "campaign=x", "status=x", "clicked=x", "from=x", "sort=x"):
        assert alice.get(f"/api/urls?{query}").get_json()["code"] == "invalid", query
