"""The jobs that make the blocks of links that searches read."""

import psycopg2
import pytest

from linkmgr.repository import link_blocks
from tests.conftest import Client
from tests.searched import Stock, found, retitle
from tests.transactions import costs

pytestmark = pytest.mark.usefixtures("small_blocks")

Connection = psycopg2.extensions.connection


def test_jobs_make_blocks_of_many_links_and_searches_then_read_few(
    alice: Client, raw: Connection, monkeypatch: pytest.MonkeyPatch, stock: Stock
) -> None:
    def insert(first: int, last: int) -> None:
        stock.sql(
            """
            INSERT INTO links (user_id, alias, url, title)
            SELECT %(owner)s, 'link-' || n, 'https://example.com/' || n, ''
              FROM generate_series(%(first)s::int, %(last)s::int) n
            RETURNING 1
            """,
            owner=alice.id, first=first, last=last,
        )  # fmt: skip

    def rows_read() -> int:
        return sum(cost.rows for cost in costs(monkeypatch, raw, lambda: found(alice, "Example.com/12345")))

    monkeypatch.setattr(link_blocks, "MAX_LINKS", 128)
    insert(1, 19_999)
    assert stock.sql("SELECT FROM jobs") == []
    assert rows_read() > 19_999
    insert(20_000, 20_000)
    assert len(stock.sql("SELECT FROM jobs WHERE kind = 'links_added'")) == 1
    stock.run_jobs()
    assert len(stock.blocks(alice)) == 157
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE links, link_blocks")  # as autovacuum does soon
    assert rows_read() < 4_000
    assert len(found(alice, "Example.com/12345")) == 1
    insert(20_001, 24_095)
    assert stock.sql("SELECT FROM jobs") == []
    insert(24_096, 24_096)
    assert len(stock.sql("SELECT FROM jobs WHERE kind = 'links_added'")) == 1


def test_many_changes_enqueue_a_job(alice: Client, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(300)])
    stock.sql("UPDATE links SET title = 'other' WHERE user_id = %(id)s RETURNING 1", id=alice.id)
    assert stock.sql("SELECT FROM changed_links") == [], "links without blocks are not queued"
    stock.index(alice)
    stock.sql("UPDATE links SET description = 'other', title = title WHERE user_id = %(id)s RETURNING 1", id=alice.id)
    assert stock.sql("SELECT FROM changed_links") == []
    stock.sql("UPDATE links SET title = 'changed' WHERE user_id = %(id)s RETURNING 1", id=alice.id)
    assert len(stock.sql("SELECT FROM changed_links")) == len(ids)
    assert len(stock.sql("SELECT FROM jobs WHERE kind = 'links_changed'")) in (1, 2)


def test_long_urls_make_small_blocks(alice: Client, monkeypatch: pytest.MonkeyPatch, stock: Stock) -> None:
    monkeypatch.setattr(link_blocks, "MAX_LINKS", 128)
    made = stock.sql(
        """
        INSERT INTO links (user_id, alias, url)
        SELECT %(owner)s, 'link-' || n, 'https://example.com/' || n || repeat(md5(n::text), 60)
          FROM generate_series(1, 100) n
        RETURNING id
        """,
        owner=alice.id,
    )
    stock.index(alice)
    assert len(stock.blocks(alice)) == 4
    assert found(alice, "C4CA4238A0b9") == [made[0]["id"]]


def test_blocks_without_links_are_deleted(alice: Client, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index(alice)
    alice.post("/api/urls/bulk/delete", {"ids": ids[7:16]})
    stock.index(alice)
    assert stock.blocks(alice) == [ids[3], ids[7], *ids[19::4]]
    assert found(alice, "Page 6") == [ids[6]]
    assert found(alice, "Page 16") == [ids[16]]


def test_a_process_leaves_blocks_to_the_one_that_makes_them(alice: Client, raw: Connection, stock: Stock) -> None:
    stock.add(alice, *[f"Page {n}" for n in range(40)])
    with raw.cursor() as cursor:
        cursor.execute("BEGIN; SELECT pg_advisory_xact_lock('link_blocks'::regclass::oid::bigint)")
        stock.index(alice)
        assert stock.blocks(alice) == []
        cursor.execute("COMMIT")
    stock.sql("UPDATE jobs SET due = now() RETURNING 1")
    stock.index(alice)
    assert len(stock.blocks(alice)) == 10


def test_a_deleted_user_leaves_no_blocks(admin: Client, alice: Client, stock: Stock) -> None:
    ids = stock.add(alice, *[f"Page {n}" for n in range(40)])
    stock.index(alice)
    retitle(alice, ids[0], "changed")
    stock.enqueue(alice)
    admin.delete(f"/api/user/{alice.id}/delete")
    stock.run_jobs()
    assert stock.sql("SELECT user_id FROM link_blocks UNION ALL SELECT user_id FROM changed_links") == []
    assert stock.sql("SELECT FROM jobs") == []
