"""GET /api/urls?q=: the search of links, with and without the blocks that jobs make of them."""

import random
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import link_blocks
from tests.conftest import Client
from tests.imported import Import, sale, shlink
from tests.races import during
from tests.searched import Stock, found, retitle
from tests.test_account_page import signed_in

pytestmark = pytest.mark.usefixtures("small_blocks")

Connection = psycopg2.extensions.connection
RARE = ["Straße?q=100%_", "Ää-É 😀 İstanbul", 'O\'Hara \\ "x"', "plain title"]
LATE = """
    INSERT INTO links (id, user_id, alias, url, title)
    VALUES (%(id)s, %(owner)s, 'late-' || %(title)s::text, 'https://example.com/', %(title)s)
    RETURNING 1
"""
SEARCHED = ["STRAßE", "100%_", "0%_", "ää-é", "É 😀", "😀 İ", "İstanbul", "stanbul", "o'hara", '\\ "X', "'ha", "N T"]


# --- results


@pytest.mark.parametrize("place", ["blocks", "tail", "changed"])
def test_a_search_finds_any_part_in_upper_and_lower_case(alice: Client, bob: Client, place: str, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(30)])
    stock.add(bob, *RARE)
    if place == "tail":
        stock.index(alice)
    rare = stock.add(alice, *RARE)
    if place != "tail":
        stock.index(alice)
    if place == "changed":
        for link_id, title in zip(rare, RARE, strict=True):
            retitle(alice, link_id, "")
            retitle(alice, link_id, title)
    stock.add(alice, *[f"Page {n}" for n in range(30, 40)])
    assert len(stock.blocks(alice)) >= 7
    owners = dict(zip(RARE, rare, strict=True))
    for q in SEARCHED:
        expected = [owners[title] for title in RARE if q.lower() in title.lower()]
        assert expected, q
        assert found(alice, q) == expected, q
    assert found(alice, "absent") == found(alice, "Page 1\nPage") == []
    assert len(found(alice, "PAGE", limit=7)) == 40
    assert len(found(alice, "a")) == 44


def test_urls_and_aliases_are_searched(alice: Client, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index(alice)
    assert found(alice, "example.com/P37") == [ids[36]]
    assert found(alice, f"al{ids[5] - 1}") == found(alice, f"AL{ids[5] - 1}") != []
    made = alice.add("/api/url/add", {"url": "https://other.example.org/", "custom": "Autumn"})
    for q in ("OTHER.example", "autumn"):
        assert found(alice, q) == [made]


def test_a_search_returns_what_a_plain_filter_finds(app: Flask, alice: Client, bob: Client, stock: Stock) -> None:
    choice = random.Random(20)  # noqa: S311

    def title() -> str:
        return "".join(choice.choices("abcä😀 %_", k=8))

    stock.add(alice, *[title() for _ in range(60)])
    spare = [row["id"] for row in stock.sql("SELECT nextval('target_ids') AS id FROM generate_series(1, 120)")]
    stock.add(alice, *[title() for _ in range(60)])
    stock.index(alice)
    steps: list[Callable[[list[int]], Any]] = [
        lambda ids: retitle(alice, choice.choice(ids), title()),
        lambda ids: alice.delete(f"/api/url/{choice.choice(ids)}/delete"),
        lambda _: stock.add(alice, *[title() for _ in range(choice.randrange(1, 9))]),
        lambda _: stock.add(bob, title()),
        lambda _: stock.sql(LATE, id=spare.pop(), owner=alice.id, title=title()),
        lambda ids: alice.post("/api/urls/bulk/delete", {"ids": sorted(ids)[:5]}),
        lambda _: _one_batch(app, choice.choice([link_blocks.add, link_blocks.replace]), alice),
    ]  # fmt: skip
    for _ in range(100):
        choice.choice(steps)([row["id"] for row in stock.texts(alice)])
        rows = stock.texts(alice)
        for q in ("".join(choice.choices("abcä😀 %_", k=choice.randrange(3, 5))) for _ in range(3)):
            expected = sorted((row["id"] for row in rows if q in row["text"]), reverse=True)
            assert found(alice, q, limit=100, order=choice.choice(["date", "click"])) == expected
    stock.index(alice)
    assert stock.sql("SELECT FROM changed_links") == []


def _one_batch(app: Flask, handler: Callable[[Any], bool], owner: Client) -> None:
    with app.app_context():
        handler({"user_id": owner.id})


def test_a_confined_key_finds_only_its_links(alice: Client, make_limited: Callable[..., Client], stock: Stock) -> None:
    key = make_limited(alice, own_only=True)
    stock.add(alice, *[f"Page {n}" for n in range(40)], "Needle of alice")
    own = [key.add("/api/url/add", {"url": f"https://example.com/own{n}", "metatitle": "Needle"}) for n in range(3)]
    stock.index(alice)
    own.append(key.add("/api/url/add", {"url": "https://example.com/tail", "metatitle": "Needle"}))
    assert found(key, "needle") == own[::-1]
    retitle(key, own[0], "changed needle")
    assert found(key, "changed need") == [own[0]]
    assert found(key, "Page 7") == []
    assert len(found(alice, "needle")) == 5


def test_the_console_searches_blocks_too(app: Flask, alice: Client, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index(alice)
    retitle(alice, ids[5], "Needle changed")
    stock.add(alice, "Needle behind")
    browser = signed_in(app)
    for query in ("q=NEEDLE", "q=needle&order=click", "q=needle&status=public"):
        page = browser.get(f"/console/links?{query}").text
        assert "Needle changed" in page
        assert "Needle behind" in page
        assert "Page 7" not in page


# --- changes


def test_changes_by_api_bulk_and_import_are_found_before_and_after_the_job(
    alice: Client, run_import: Import, stock: Stock
) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index(alice)
    alice.put(f"/api/url/{ids[3]}/update", {"url": "https://example.com/updated", "custom": "updated-alias"})
    alice.put("/api/urls/bulk", {"ids": ids[10:12], "data": {"metatitle": "by bulk"}})
    run_import(alice, shlink(sale("imported", "https://example.com/imported")))
    for _ in range(2):
        assert found(alice, "com/updated") == found(alice, "ed-alias") == [ids[3]]
        assert found(alice, "by bulk") == ids[10:12][::-1]
        assert len(found(alice, "com/imported")) == 1
        assert found(alice, "Page 10") == []
        stock.index(alice)
    assert stock.sql("SELECT FROM changed_links") == []
    alice.delete(f"/api/url/{ids[3]}/delete")
    assert found(alice, "com/updated") == []


def test_an_update_that_began_before_the_job_and_ends_after_it_is_found(
    alice: Client, raw: Connection, stock: Stock
) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    with raw.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE links SET title = 'held' WHERE id = %s", (ids[5],))
        stock.index(alice)
        cursor.execute("COMMIT")
    assert stock.sql("SELECT FROM changed_links") == []
    assert found(alice, "held") == [ids[5]]
    stock.sql("UPDATE jobs SET due = now() RETURNING 1")
    stock.index(alice)
    assert len(stock.blocks(alice)) == 10
    assert found(alice, "held") == [ids[5]]


def test_an_update_that_is_held_open_while_its_block_is_made_again_is_found(
    alice: Client, raw: Connection, stock: Stock
) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index(alice)
    with raw.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE links SET title = 'held' WHERE id = %s", (ids[5],))
        retitle(alice, ids[6], "neighbor")
        stock.index(alice)
        cursor.execute("COMMIT")
    assert found(alice, "held") == [ids[5]]
    assert found(alice, "neighbor") == [ids[6]]
    stock.index(alice)
    assert found(alice, "held") == [ids[5]]


def test_an_insert_that_ends_while_the_job_waits_for_it_is_found(alice: Client, raw: Connection, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(40)])
    insert = (
        f"INSERT INTO links (user_id, alias, url, title) VALUES ({alice.id}, 'held', 'https://e.com/', 'held open')"
    )
    during(raw, insert, lambda: stock.index(alice))
    assert len(found(alice, "held open")) == 1
    stock.index(alice)
    assert len(found(alice, "held open")) == 1


def test_a_link_whose_id_is_older_than_the_blocks_is_found(alice: Client, raw: Connection, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(20)])
    [spare] = stock.sql("SELECT nextval('target_ids') AS id")
    stock.add(alice, *[f"Page {n}" for n in range(20)])
    stock.index(alice)
    with raw.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(LATE, {"id": spare["id"], "owner": alice.id, "title": "latecomer"})
        stock.sql("INSERT INTO jobs (kind, argument) VALUES ('links_changed', '{}') RETURNING 1")
        assert found(alice, "latecomer") == []
        cursor.execute("COMMIT")
    for _ in range(2):
        assert found(alice, "latecomer") == [spare["id"]]
        stock.index(alice)
