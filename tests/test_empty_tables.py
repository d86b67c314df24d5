"""A connection that planned its statements while tables were empty reads as few rows once they have grown. It keeps its
plans until the tables are analyzed."""

import json
import time
from collections.abc import Callable, Iterator

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import statements
from linkmgr.core.database.statements import Row
from linkmgr.features.bulk import row_budget
from linkmgr.repository import taken_names
from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support import factories
from tests.support.explain import Passed, rows_passed_in_functions
from tests.support.factories import Sql
from tests.support.imported import Import, sale, shlink

BULK = "/api/urls/bulk"
FEW, MANY = 1, 300
MOST = 50  # rows that the steps of one statement return or discard for each element


@pytest.fixture
def passed(app: Flask, raw: psycopg2.extensions.connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[Passed]:
    """Collect the rows of statements, of which none has a plan yet, in tables as those of a new installation."""
    monkeypatch.setattr(row_budget, "spend", lambda _: None)
    with app.app_context():
        statements.database().close_idle()
    raw.cursor().execute("VACUUM (FULL, ANALYZE)")
    with rows_passed_in_functions(monkeypatch) as collected:
        yield collected
    with app.app_context():
        statements.database().close_idle()


@pytest.fixture
def check(passed: Passed) -> Callable[[str, int], None]:
    """Check the statements since the last call, which carried out an operation on some elements."""

    def at_most(operation: str, elements: int) -> None:
        most = max(passed)
        passed.clear()
        assert most[0] <= MOST * (elements + 20), f"{operation}: {most}"

    return at_most


def test_operations_on_many_links(
    *, alice: Client, bob: Client, app: Flask, sql: Sql, run_import: Import, check: Callable[[str, int], None]
) -> None:
    channel = factories.channel(sql, alice.id)
    for number in (FEW, MANY, MANY + 1):
        own = [{"url": f"https://example.com/{number}/{n}"} for n in range(number)]
        aliases = [f"alias-{number}-{n}" for n in range(number)]
        custom = [{"url": "https://example.com/", "custom": alias, "channel": [channel]} for alias in aliases]
        ids = [result["id"] for result in alice.post(BULK, {"urls": own + custom}).get_json()["results"]]
        check("add", number)
        assert bob.post(BULK, {"urls": custom}).get_json()["failed"] == number
        check("add with aliases that are taken", number)
        with app.app_context():
            assert not taken_names.release("alias_taken", aliases=aliases, link_id=None)
        check("release names", number)
        reports = [{"link": link, "event": "sale", "order": f"{number}-{link}"} for link in ids]
        alice.post("/api/conversions/batch", {"conversions": reports})
        check("report conversions", number)
        texts = [{"name": "x", "type": "text", "data": f"{number}-{n}"} for n in range(number)]
        alice.post("/api/qr/bulk", {"qrs": texts})
        check("add QR codes", number)
        for query in (f"channel={channel}", "q=example", f"ids={ids[0]}", "order=updated", ""):
            alice.get(f"/api/urls?limit=100&{query}")
            check(f"list {query}", number)
        changes: list[Row] = [
            {"title": "x", "channel": [channel]},
            {"url": "https://example.com/other"},
            {"channel": []},
        ]
        for data in changes:
            assert alice.put(BULK, {"ids": ids, "data": data}).get_json()["failed"] == 0
            check(f"update {data}", number)
        assert alice.post(f"{BULK}/delete?bin=1", {"ids": ids[:number]}).get_json()["failed"] == 0
        check("put into the bin", number)
        for link in ids[:3]:
            alice.post(f"/api/url/{link}/restore")
        check("restore", number)
        assert alice.post(f"{BULK}/delete", {"ids": ids[number:]}).get_json()["failed"] == 0
        check("delete", number)
        file = shlink(*(sale(alias, clicks=3) for alias in aliases))
        for query in ("", "?on_conflict=update", "?on_conflict=rename"):
            assert run_import(alice, file, query)["failed"] == 0
            check(f"import {query}", number)


def test_visits(alice: Client, app: Flask, sql: Sql, check: Callable[[str, int], None]) -> None:
    visit = {"country": "Peru", "browser": "Firefox", "os": "Linux", "kind": "click", "bot": False}
    common = visit | {"at": time.time(), "tracked_id": factories.link(sql, alice.id), "user_id": alice.id}
    for batch, number in enumerate((FEW, MANY, MANY)):
        sent = [common | {"visitor": f"{batch:02x}{n:04x}", "referrer": f"{batch}-{n}.example"} for n in range(number)]
        with app.app_context():
            assert visits.add("batches", 0, 1, json.dumps(sent))
            visits.delete_spool("batches")
        check("store visits", number)
