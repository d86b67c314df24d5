"""A connection that knew the tables empty reads them by their indexes once they have grown."""

import json
import time
from collections.abc import Callable

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import statements
from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql

BULK = "/api/urls/bulk"
VISIT = {"country": "Peru", "browser": "Firefox", "os": "Linux", "kind": "click", "bot": False}


@pytest.fixture
def rows_read(app: Flask, raw: psycopg2.extensions.connection, sql: Sql) -> Callable[[], int]:
    """Return the rows that were read of whole tables since the last call. There are no plans yet."""
    with app.app_context():
        statements.database().close_idle()
    raw.cursor().execute("VACUUM ANALYZE")
    last = 0

    def read() -> int:
        nonlocal last
        with app.app_context():
            for statement in ("SELECT pg_stat_force_next_flush()", "SELECT 1"):
                statements.run(statement)
        [row] = sql(
            # Others have no index: `service` has one row, and the ids of jobs are few.
            "SELECT sum(seq_tup_read)::bigint AS rows FROM pg_stat_user_tables WHERE relname NOT IN ('service', 'jobs')"
        )
        before, last = last, int(row["rows"])
        return last - before

    read()
    return read


def test_bulk_operations(alice: Client, sql: Sql, rows_read: Callable[[], int]) -> None:
    def all_operations(number: int) -> dict[str, int]:
        """Carry out one after the other on the same links, and return the rows that each read."""
        urls = [{"url": f"https://example.com/{number}/{n}"} for n in range(number)]
        aliases = [{"url": "https://example.com/", "custom": f"alias-{number}-{n}"} for n in range(number)]
        texts = [{"name": "x", "type": "text", "data": f"{number}-{n}"} for n in range(number)]
        results = alice.post(BULK, {"urls": urls + aliases}).get_json()["results"]
        read = {"add": rows_read()}
        ids = [result["id"] for result in results]
        for name, method, path, body in (
            ("qr", "POST", "/api/qr/bulk", {"qrs": texts}),
            ("title", "PUT", BULK, {"ids": ids, "data": {"title": "x", "channel": [channel]}}),
            ("url", "PUT", BULK, {"ids": ids, "data": {"url": "https://example.com/other"}}),
            ("delete", "POST", f"{BULK}/delete", {"ids": ids}),
        ):
            assert alice.call(method, path, body).get_json()["error"] == 0
            read[name] = rows_read()
        return read

    channel = factories.channel(sql, alice.id)
    rows_read()
    all_operations(1)
    read = all_operations(300)
    assert read == dict.fromkeys(read, 0)


def test_visits(alice: Client, app: Flask, sql: Sql, rows_read: Callable[[], int]) -> None:
    common = VISIT | {"at": time.time(), "tracked_id": factories.link(sql, alice.id), "user_id": alice.id}
    rows_read()
    for batch in range(3):
        sent = [
            common | {"visitor": f"{batch:02x}{number:04x}", "referrer": f"{batch}-{number}.example"}
            for number in range(200)
        ]
        with app.app_context():
            assert visits.add("batches", 0, 1, json.dumps(sent))
            visits.delete_spool("batches")
    assert rows_read() < 200
