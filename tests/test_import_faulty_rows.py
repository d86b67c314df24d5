"""Faults of the report of failed rows, and of single rows."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from tests.conftest import BASE_URL, Client
from tests.support.archives import zipped
from tests.support.factories import Sql
from tests.support.imported import Import, aliases, counts, details, sale, send, shlink
from tests.support.visited import purge

PAGE = "https://example.com"
MARK = "correct-horse-97"
KEPT_SECRET = "Row 1 has a password, which the source keeps secret. Fill in 'password', or leave the row out."


def errors(client: Client, found: dict[str, Any]) -> list[str]:
    path = f"/api/imports/{found['id']}/errors"
    rows = client.get(path, headers={"Accept": "application/json"}).get_json()["data"]
    return [row["message"] for row in rows]


def test_no_table_has_the_password_of_a_row_that_failed(
    app: Flask, alice: Client, run_import: Import, run_jobs: Callable[[], None], sql: Sql
) -> None:
    bad = {"url": "ftp://example.com", "custom": "bad", "password": MARK}
    good = bad | {"url": PAGE, "custom": "good"}
    files: list[tuple[bytes, str]] = [
        (f"target,address,password\nftp://example.com,bad,{MARK}\n{PAGE},good,{MARK}\n".encode(), ""),
        (f"to,code word\nftp://example.com,{MARK}\n".encode(), '?mapping={"url":"to","password":"code word"}'),
        (f"target,address,password\n{PAGE},bad,x,{MARK},y\n".encode(), ""),
        (json.dumps([bad, good | {"custom": "better"}]).encode(), ""),
        (zipped(manifest__json="{}", links__jsonl=json.dumps(bad | {"id": 1, "alias": "bad"})), ""),
    ]
    assert [run_import(alice, file, query)["failed"] for file, query in files] == [1] * len(files)
    bulk = alice.post("/api/urls/bulk", {"urls": [bad, good | {"custom": "best"}]}, headers={"Idempotency-Key": "k"})
    assert (bulk.get_json()["created"], bulk.get_json()["failed"]) == (1, 1)
    run_jobs()
    tables = sql("SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r' AND oid > 16383")
    assert len(tables) > 20
    for table in tables:
        marked = f"SELECT t FROM {table['name']} t WHERE position(%(mark)s IN t::text) > 0"
        assert sql(marked, mark=MARK) == sql(marked, mark=MARK.encode().hex()) == [], table
    sql("UPDATE imports SET finished = now() - interval '29 days 23 hours' RETURNING 1")
    purge(app)
    assert len(sql("SELECT FROM import_rows WHERE code IS NOT NULL")) == len(files)
    sql("UPDATE imports SET finished = now() - interval '30 days 1 hour' RETURNING 1")
    purge(app)
    assert sql("SELECT FROM import_rows") == []


@pytest.mark.parametrize("mark", ["$2a$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW", "true"])
def test_the_hash_of_a_password_is_not_a_password(alice: Client, run_import: Import, sql: Sql, mark: str) -> None:
    found = run_import(alice, f"target,address,password\n{PAGE},secret,{mark}\n".encode())
    assert (found["made"], errors(alice, found)) == (0, [KEPT_SECRET])


def test_links_that_the_source_has_banned_are_not_imported(alice: Client, run_import: Import, sql: Sql) -> None:
    file = f"target,address,banned\n{PAGE},live,false\n{PAGE}/2,bad,true\n{PAGE}/3,worse,t\n"
    found = run_import(alice, file.encode())
    assert [message.split(".")[0] for message in errors(alice, found)] == [
        "Row 2 is banned at the source",
        "Row 3 is banned at the source",
    ]
    assert aliases(sql, alice) == ["live"]


@pytest.mark.parametrize("is_last", [False, True])
def test_a_link_that_keeps_its_host_comes_before_one_that_moves_there(
    alice: Client, run_import: Import, *, is_last: bool
) -> None:
    own = sale("case", "https://example.com/own").replace("s.example.com", BASE_URL)
    rows = [sale("case", "https://example.com/moved"), own]
    found = run_import(alice, shlink(*rows[:: -1 if is_last else 1]))
    assert errors(alice, found) == [
        f"s.example.com/case would become {BASE_URL.removeprefix('http://')}/case, which is already in use. Choose "
        "another alias, or add the domain."
    ]
    assert details(alice, "case")["longurl"] == "https://example.com/own"


def test_titles_above_255_characters_are_cut_with_a_note(alice: Client, run_import: Import) -> None:
    found = run_import(alice, shlink(sale("long").replace("Sale", "t" * 300), sale("short")))
    assert counts(found) == ("done", 2, 2, 0, 0, 0)
    assert found["message"] == "Titles that were cut to 255 characters: 1."
    assert details(alice, "long")["metatitle"] == "t" * 255


def test_json_lines_of_an_unknown_service_are_mapped(alice: Client, run_import: Import) -> None:
    """The first records lack members that later ones have."""
    lines = [{"goes_to": f"{PAGE}/1"}, {"goes_to": f"{PAGE}/2", "called": "second", "heading": "Two"}]
    file = b"\n".join(json.dumps(line).encode() for line in lines)
    shown = send(alice, file, "?dry_run=1").get_json()["data"]
    assert (shown["format"], shown["columns"]) == ("jsonl", ["goes_to", "called", "heading"])
    mapping = json.dumps({"url": "goes_to", "custom": "called", "metatitle": "heading"})
    assert counts(run_import(alice, file, f"?mapping={mapping}")) == ("done", 2, 2, 0, 0, 0)
    assert details(alice, "second")["metatitle"] == "Two"
