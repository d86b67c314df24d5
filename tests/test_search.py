"""GET /api/urls?q=: the search of links, with and without its index."""

import random
from collections.abc import Callable
from functools import partial

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

from linkmgr.core.database import jobs
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.imported import Import, sale, shlink
from tests.support.pages import details, ids_of, signed_in
from tests.support.schemas import execute
from tests.support.searched import Stock, found, retitle
from tests.support.transactions import Costs

Connection = psycopg2.extensions.connection
RARE = ["Straße?q=100%_", "Ää-É 😀 İstanbul", 'O\'Hara \\ "x"', "plain title"]
SEARCHED = ["STRAßE", "100%_", "0%_", "ää-é", "É 😀", "😀 İ", "İstanbul", "stanbul", "o'hara", '\\ "X', "'ha", "N T"]
SHORT = ["%", "_", "\\", "É", "😀", "'h", "%_", "?q", '"X']
PLANS = {
    "index": "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off;",
    "scan": "SET LOCAL enable_bitmapscan = off;",
}


def test_a_search_finds_any_part_in_upper_and_lower_case(alice: Client, bob: Client, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.add(bob, *RARE)
    owners = dict(zip(RARE, stock.add(alice, *RARE), strict=True))
    for q in SEARCHED + SHORT:
        expected = sorted((owners[title] for title in RARE if q.lower() in title.lower()), reverse=True)
        assert expected, q
        assert [link for link in found(alice, q) if link in owners.values()] == expected, q
    assert found(alice, "absent") == found(alice, "Page 1\nPage") == []
    assert len(found(alice, "PAGE", limit=7)) == 40
    assert len(found(alice, "a")) == 44


def test_urls_and_aliases_are_searched(alice: Client, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    assert found(alice, "example.com/P37") == [ids[36]]
    assert found(alice, f"al{ids[5] - 1}") == found(alice, f"AL{ids[5] - 1}") != []
    made = alice.add("/api/url/add", {"url": "https://other.example.org/", "custom": "Autumn"})
    for q in ("OTHER.example", "autumn"):
        assert found(alice, q) == [made]


@pytest.mark.parametrize("plan", PLANS)
def test_the_index_and_a_scan_find_the_same_links(alice: Client, stock: Stock, raw: Connection, plan: str) -> None:
    choice = random.Random(20)  # noqa: S311
    characters = "abcABCäÄ😀 %_\\'/"
    stock.add(alice, *RARE, *["".join(choice.choices(characters, k=8)) for _ in range(200)])
    stock.index()
    stock.add(alice, *["".join(choice.choices(characters, k=8)) for _ in range(50)])
    rows = stock.texts(alice)
    searched = ["".join(choice.choices(characters, k=choice.randrange(1, 5))) for _ in range(200)]
    with raw.cursor() as cursor:
        cursor.execute(f"BEGIN; {PLANS[plan]}")
        for q in searched + SEARCHED + SHORT:
            cursor.execute("SELECT total, ids FROM search_links(%s, %s)", (alice.id, q))
            lower = q.replace("İ", "i").lower()  # Python adds a dot to the first
            expected = [row["id"] for row in rows if lower in row["text"]]
            [(total, ids)] = cursor.fetchall()
            assert (total, sorted(ids or [])) == (len(expected), sorted(expected)), q
        cursor.execute("ROLLBACK")


def test_changes_by_api_bulk_and_import_are_found(alice: Client, run_import: Import, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index()
    alice.put(f"/api/url/{ids[3]}/update", {"url": "https://example.com/updated", "custom": "updated-alias"})
    alice.put("/api/urls/bulk", {"ids": ids[10:12], "data": {"metatitle": "by bulk"}})
    run_import(alice, shlink(sale("imported", "https://example.com/imported")))
    assert found(alice, "com/updated") == found(alice, "ed-alias") == [ids[3]]
    assert found(alice, "by bulk") == ids[10:12][::-1]
    assert len(found(alice, "com/imported")) == 1
    assert found(alice, "Page 10") == []
    alice.delete(f"/api/url/{ids[3]}/delete")
    assert found(alice, "com/updated") == []


def test_a_restricted_key_finds_only_its_links(
    alice: Client, make_restricted: Callable[..., Client], stock: Stock
) -> None:
    key = make_restricted(alice, own_only=True)
    stock.add(alice, *[f"Page {n}" for n in range(40)], "Needle of alice")
    own = [key.add("/api/url/add", {"url": f"https://example.com/own{n}", "metatitle": "Needle"}) for n in range(3)]
    assert found(key, "needle") == own[::-1]
    retitle(key, own[0], "changed needle")
    assert found(key, "changed need") == [own[0]]
    assert found(key, "Page 7") == []
    assert len(found(alice, "needle")) == 4


def test_the_console_searches_too(app: Flask, alice: Client, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(40)], "Needle")
    browser = signed_in(app)
    for query in ("q=NEEDLE", "q=needle&order=click", "q=needle&status=public"):
        page = browser.get(f"/console/links?{query}").text
        assert "Needle" in page
        assert "Page 7" not in page


def test_titles_of_pages_are_searched_if_they_are_shown(
    app: Flask, alice: Client, bob: Client, stock: Stock, sql: Sql
) -> None:
    ids = stock.add(alice, "", "Own title", "")
    [other] = stock.add(bob, "")
    for number, link in enumerate([*ids, other]):
        factories.page_title(sql, link, f"Fetched {number} 100%_ example.com")
    for q, expected in (("FETCHED", [ids[2], ids[0]]), ("fetched 2", [ids[2]]), ("0%_", [ids[2], ids[0]])):
        assert found(alice, q) == expected
    assert found(alice, "example.com") == ids[::-1]  # each once
    assert found(bob, "fetched") == [other]
    for query in ("q=fetched", "q=fetched&order=click", "q=fetched&status=public"):
        page = signed_in(app).get(f"/console/links?{query}").text
        assert (page.count("Fetched"), "Own title" in page) == (2, False), query
    retitle(alice, ids[0], "Now titled")
    assert found(alice, "fetched") == [ids[2]]
    alice.delete(f"/api/url/{ids[2]}/delete?bin=1")
    assert found(alice, "fetched") == []


def test_a_pasted_short_url_finds_its_link(app: Flask, alice: Client, bob: Client, stock: Stock, sql: Sql) -> None:
    hosts = "go.example.com", "xn--bcher-kva.example"
    domains = [factories.row(sql, "domains", user_id=alice.id, scheme="https", host=host) for host in hosts]
    main, *branded = (
        factories.row(sql, "links", user_id=alice.id, alias="abc", url="https://example.org/x", domain_id=domain)
        for domain in (None, *domains)
    )
    stock.add(alice, *[f"Page {n}" for n in range(20)])
    own = details(alice, main)["shorturl"].removesuffix("/abc")
    pasted = {
        main: [f"{own}/abc", f"{own.split('://')[1]}/abc", f"{own}/abc/"],
        branded[0]: [
            "https://go.example.com/abc",
            "http://GO.example.com/abc",
            "go.example.com/abc",
            " go.example.com/abc ",
        ],
        branded[1]: ["https://xn--bcher-kva.example/abc", "bücher.example/abc", "https://Bücher.example/abc"],
    }
    for link, texts in pasted.items():
        for text in texts:
            assert found(alice, text) == [link], text
            assert ids_of(signed_in(app).get("/console/links", query_string={"q": text}).text) == [link], text
            assert found(bob, text) == []
    for text in (
        "go.example.com/ABC",
        "go.example.com/absent",
        "other.example.com/abc",
        "https://go.example.com:81/abc",
    ):
        assert found(alice, text) == []


def test_an_external_id_finds_its_link(app: Flask, alice: Client, bob: Client, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(20)], "About CON-1")
    other = ids_of(signed_in(app).get("/console/links?q=con-1").text)
    members = {"url": "https://example.com/x", "title": "Titled", "custom": "con", "externalid": "con-1"}
    link = alice.add("/api/url/add", members)
    for text, expected in {"con-1": [link, *other], "CON-1": other, "externalid:con-1": [link], "con-": other,
                           'externalid:"con-1"': [link], "externalid:CON-1": [], "externalid:con-1 x": [link],
                           "externalid:": []}.items():  # fmt: skip
        page = signed_in(app).get("/console/links", query_string={"q": text}).text
        assert ids_of(page) == expected, text
        assert ("External id con-1" in page) == (expected == [link]), text
    assert found(alice, "con-1") == [link, *other]
    assert found(bob, "con-1") == []
    alice.add("/api/url/add", {"url": "https://example.com/y", "externalid": "con"})
    assert found(alice, "https://" + details(alice, link)["shorturl"].split("://")[1]) == [link], "each once"


def test_a_target_is_found_as_it_is_shown(alice: Client) -> None:
    made = alice.add("/api/url/add", {"url": "https://www.bücher.example/größe"})
    for text in ("bücher.example", "BÜCHER.example/größe", "https://www.bücher.example", "bücher.example/gr%C3%B6"):
        assert found(alice, text) == [made], text
    assert found(alice, "bücher.example/ab") == []


def test_a_line_break_is_in_no_link(app: Flask, alice: Client, stock: Stock) -> None:
    stock.add(alice, "Needle")
    assert found(alice, "\n") == []
    for query in ("q=%0A", "q=%0A&order=click", "q=%0A&status=public"):
        assert "Needle" not in signed_in(app).get(f"/console/links?{query}").text


def test_a_search_of_many_links_reads_few_and_jobs_empty_the_pending_list(
    app: Flask, alice: Client, raw: Connection, stock: Stock, costs: Costs
) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(20_000)])
    with raw.cursor() as cursor:
        with app.app_context():
            for call in jobs.registered().idle:
                call()
        cursor.execute("SELECT gin_clean_pending_list('links_search')")
        assert cursor.fetchone() == (0,)
        cursor.execute("ANALYZE links")  # as autovacuum does soon
        cursor.execute(
            """
            INSERT INTO link_checks (link_id, user_id, title)
            SELECT id, user_id, 'Fetched ' || title FROM links WHERE user_id = %s
            """,
            [alice.id],
        )
        cursor.execute("UPDATE links SET title = '' WHERE id = (SELECT max(id) FROM links)")
        cursor.execute("ANALYZE link_checks")
    alias = details(alice, stock.texts(alice)[0]["id"])["alias"]
    for q in ("Example.com/P12345", "Fetched Page 19999", f"go.example.com/{alias}", f"localhost/{alias}"):
        read = costs(partial(found, alice, q))
        assert sum(cost.rows for cost in read) < 100, q
    assert len(found(alice, "Example.com/P12345")) == len(found(alice, "Fetched Page 19999")) == 1


def test_without_the_extensions_the_database_check_says_so(empty: str, flask: Callable[..., Result]) -> None:
    execute(empty, "CREATE SCHEMA elsewhere; CREATE EXTENSION pg_trgm SCHEMA elsewhere")
    assert flask("database", "create").exit_code == 0
    checked = flask("database", "check")
    assert checked.exit_code == 0
    assert "because the extensions pg_trgm and btree_gin are refused" in checked.output
    assert execute(empty, "SELECT * FROM search_links(1, 'x')") == [(0, None)]
    execute(empty, "ALTER EXTENSION pg_trgm SET SCHEMA public")
    assert flask("database", "upgrade").output.endswith("which is up to date.\n")
