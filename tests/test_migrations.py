"""Upgrades of databases that past versions created."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

from linkmgr.db import jobs
from linkmgr.db.statements import VERSION
from tests.catalog import DEFINITIONS
from tests.conftest import BASE_URL, Client
from tests.races import meanwhile
from tests.test_schema import execute

pytestmark = pytest.mark.slow

PAST = sorted((Path(__file__).parent / "schemas_of_the_past").glob("*.sql"))
HOST = "go.example.org"
USER = """
    INSERT INTO users (id, username, email, password_hash, key_digest, key_ciphertext, plan_id)
    SELECT 1, 'a', 'a', '', '', '', id FROM plans WHERE name = 'Business'
"""
ROWS = f"""
    {USER};
    INSERT INTO domains (user_id, scheme, host) VALUES (1, 'https', '{HOST}');
    INSERT INTO links (user_id, alias, url) VALUES (1, 'sale', 'https://example.com/ours');
    INSERT INTO links (user_id, alias, url, domain_id) SELECT 1, 'sale', 'https://example.com/branded', id FROM domains;
    INSERT INTO bios (user_id, alias, name) VALUES (1, 'dana', 'Dana Demo');
"""
# Objects that 0009 and 0016 keep for the previous version. The next migration drops them.
LEFTOVERS = "DROP VIEW hits, tallies; ALTER TABLE usage DROP step; DROP FUNCTION roll_up(visits[])"
# All aliases in `links` and `bios`, compared with those in `aliases`.
DIFFERENCES = """
    WITH expected AS (SELECT alias, coalesce(domain_id, 0), id, NULL::bigint FROM links
                       UNION ALL
                      SELECT alias, 0, NULL, id FROM bios)
    (TABLE expected EXCEPT TABLE aliases) UNION ALL (TABLE aliases EXCEPT TABLE expected)
"""


@pytest.fixture
def definitions(app: Flask, dsn: str) -> list[tuple[Any, ...]]:
    """Return the definitions in a database created from the current schema."""
    execute(dsn, "SELECT drop_partition(partition, false) FROM partitions WHERE until <= now()")  # of other tests
    return execute(dsn, DEFINITIONS)


@pytest.mark.parametrize("past", PAST, ids=lambda path: f"version {path.stem}")
def test_an_upgraded_database_equals_a_new_one_and_works(
    empty: str, fresh: Flask, flask: Callable[..., Result], definitions: list[tuple[Any, ...]], past: Path
) -> None:
    execute(empty, past.read_text())
    execute(empty, ROWS)
    assert execute(empty, "SELECT version FROM schema_version") == [(int(past.stem),)]
    upgraded = flask("database", "upgrade")
    assert upgraded.output == f"The database has schema {VERSION}, which is up to date.\n"
    execute(empty, LEFTOVERS)
    assert execute(empty, DEFINITIONS) == definitions
    assert execute(empty, DIFFERENCES) == []

    visitor = fresh.test_client()
    assert visitor.get("/sale").headers["Location"] == "https://example.com/ours"
    assert visitor.get("/sale", headers={"Host": HOST}).headers["Location"] == "https://example.com/branded"
    assert "Dana Demo" in visitor.get("/dana").text

    owner = Client(visitor, flask("users", "key", "a", "--rotate").output.strip())
    for taken in ({"custom": "sale"}, {"custom": "dana"}, {"custom": "sale", "domain": HOST}):
        answer = owner.post("/api/url/add", {"url": "https://example.com/"} | taken)
        assert answer.get_json()["code"] == "alias_taken"
    added = owner.post("/api/url/add", {"url": "https://example.com/", "custom": "dana", "domain": HOST}).get_json()
    assert added["shorturl"] == f"https://{HOST}/dana"
    assert owner.get(f"/api/urls?short={BASE_URL}/sale").get_json()["data"]["result"] == 1


def test_no_alias_stored_during_the_upgrade_is_lost(empty: str, flask: Callable[..., Result]) -> None:
    execute(empty, PAST[0].read_text())
    execute(empty, USER)
    execute(empty, "INSERT INTO links (user_id, alias, url) SELECT 1, 'old' || n, '' FROM generate_series(1, 20000) n")
    numbers = count()
    connections = [psycopg2.connect(empty) for _ in range(4)]

    def write(connection: Any, *statements: str) -> int:
        number = next(numbers)
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement, {"number": number, "new": f"new{number}", "old": f"old{number % 20000}"})
        return number

    link = "INSERT INTO links (user_id, alias, url) VALUES (1, %(new)s, '')"
    bio = "INSERT INTO bios (user_id, alias, name) VALUES (1, %(new)s, '')"
    rename = "UPDATE {} SET alias = 'renamed-' || alias WHERE alias = %(new)s"
    with meanwhile(
        lambda: write(connections[0], link, rename.format("links")),
        lambda: write(connections[1], bio, rename.format("bios")),
        lambda: write(connections[2], "UPDATE links SET alias = 'moved' || id WHERE alias = %(old)s"),
        lambda: write(connections[3], "DELETE FROM links WHERE alias = %(old)s"),
    ) as written:
        upgraded = flask("database", "upgrade")
    assert upgraded.exit_code == 0, upgraded.output
    assert len(written) > 20
    assert execute(empty, DIFFERENCES) == []
    for connection in connections:
        connection.close()


def test_the_links_of_users_with_many_are_indexed_after_the_upgrade(
    empty: str, fresh: Flask, flask: Callable[..., Result]
) -> None:
    execute(empty, PAST[0].read_text())
    execute(empty, USER)
    execute(empty, "INSERT INTO links (user_id, alias, url) SELECT 1, 'old' || n, '' FROM generate_series(1, 20000) n")
    flask("database", "upgrade")
    assert execute(empty, "SELECT argument FROM jobs WHERE kind = 'links_added'") == [({"user_id": 1},)]
    with fresh.app_context():
        while jobs.run_next(lambda _: False):
            pass
    assert execute(empty, "SELECT count(*) FROM link_blocks") == [(157,)]
    assert execute(empty, "SELECT total FROM search_links(1, 'OLD1234')") == [(11,)]


def test_the_previous_version_counts_requests_and_visits_in_an_upgraded_database(
    empty: str, flask: Callable[..., Result]
) -> None:
    execute(empty, PAST[0].read_text())
    execute(empty, USER)
    flask("database", "upgrade")
    for _ in range(2):
        execute(
            empty,
            """
            INSERT INTO hits AS h (bucket, count, until) VALUES ('user:1', 1, now())
            ON CONFLICT (bucket) DO UPDATE SET count = h.count + 1, until = excluded.until;
            INSERT INTO tallies AS t (target_id, dimension, label, total) VALUES (1, 'os', 'Linux', 1)
            ON CONFLICT (target_id, dimension, label) DO UPDATE SET total = t.total + excluded.total;
            INSERT INTO usage AS u (user_id, kind, total, step) VALUES (1, 'visits', 1, 1)
            ON CONFLICT (user_id, kind) DO UPDATE SET (total, step) = (SELECT u.total + excluded.step, excluded.step);
            """,
        )
    assert execute(empty, "SELECT count FROM rate_windows") == [(2,)]
    assert execute(empty, "SELECT total FROM target_breakdowns") == [(2,)]
    assert execute(empty, "SELECT total FROM usage WHERE kind = 'visits'") == [(2,)]
    execute(empty, "DELETE FROM tallies WHERE ctid = ANY (ARRAY(SELECT ctid FROM tallies))")
    assert execute(empty, "SELECT * FROM target_breakdowns") == []
