"""Plans of the statements that the service executes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
import pytest

from linkmgr.core.database.statements import Database, Row

_AUTO_EXPLAIN = """
    LOAD 'auto_explain';
    SET auto_explain.log_min_duration = 0;
    SET auto_explain.log_nested_statements = on;
    SET auto_explain.log_analyze = on;
    SET auto_explain.log_timing = off;
    SET auto_explain.log_level = notice;
    SET auto_explain.log_format = json
"""


def _rows(node: Row) -> int:
    read = sum(map(_rows, node.get("Plans", [])))
    if node["Node Type"].endswith("Scan") and "Relation Name" in node:
        read += int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
    return read


def _passed(node: Row) -> int:
    discarded = sum(number for name, number in node.items() if name.startswith("Rows Removed by"))
    rows = int((node["Actual Rows"] + discarded) * node["Actual Loops"])
    return rows + sum(map(_passed, node.get("Plans", [])))


def _conditions(node: Row) -> Iterator[str]:
    yield node.get("Index Cond", "")
    for child in node.get("Plans", []):
        yield from _conditions(child)


def _plans(monkeypatch: pytest.MonkeyPatch, dsn: str, call: Callable[[], Any], settings: str = "") -> list[Row]:
    """Return the plan of each statement that the call runs, without those of background threads."""
    statements: list[tuple[str, str, Row]] = []
    execute, thread = Database.execute, threading.get_ident()

    def record(self: Database, sql: str, params: Row, **options: Any) -> list[Row]:
        if threading.get_ident() == thread:
            statements.append((self.prelude + options.get("prelude", ""), sql, params))
        return execute(self, sql, params, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "execute", record)
        call()
    connection = psycopg2.connect(dsn)
    plans = []
    with connection.cursor() as cursor:
        cursor.execute(f"SET random_page_cost = 1.1; {settings}")
        for prelude, sql, params in statements:
            cursor.execute(f"{prelude} EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
            [[[explained]]] = cursor.fetchall()
            plans.append(explained["Plan"])
    connection.rollback()
    connection.close()
    return plans


def rows_read(monkeypatch: pytest.MonkeyPatch, dsn: str, call: Callable[[], Any], settings: str = "") -> list[int]:
    """Return the number of rows that the plan reads, for each statement that the call runs."""
    return [_rows(plan) for plan in _plans(monkeypatch, dsn, call, settings)]


def rows_passed(monkeypatch: pytest.MonkeyPatch, dsn: str, call: Callable[[], Any]) -> list[int]:
    """Return the number of rows that the steps of the plan return or discard, for each statement that the call runs."""
    return [_passed(plan) for plan in _plans(monkeypatch, dsn, call)]


def blocks_read(monkeypatch: pytest.MonkeyPatch, dsn: str, call: Callable[[], Any]) -> list[int]:
    """Return the number of blocks that the plan reads, for each statement that the call runs."""
    return [
        plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] + plan["Temp Read Blocks"]
        for plan in _plans(monkeypatch, dsn, call)
    ]


def index_conditions(monkeypatch: pytest.MonkeyPatch, dsn: str, call: Callable[[], Any]) -> list[str]:
    """Return the conditions of index scans in the statements of the call, planned as for large tables with unknown
    values. In small ones all indexes cost the same. The lock keeps autovacuum from storing statistics meanwhile."""
    large = """
        DO $$
        BEGIN
            EXECUTE (SELECT format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE',
                                   string_agg(oid::regclass::text, ', '))
                       FROM pg_class
                      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r');
        END $$;
        DELETE FROM pg_statistic;
        UPDATE pg_class SET relpages = 1, reltuples = 1000000
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r';
        SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off
    """
    return [condition for plan in _plans(monkeypatch, dsn, call, large) for condition in _conditions(plan) if condition]


class Passed(list[tuple[int, str]]):
    """The numbers of rows that the steps of plans return or discard, each with its statement, from notices."""

    def append(self, notice: str) -> None:  # type: ignore[override]
        if "plan:\n" in notice:
            explained = json.loads(notice.split("plan:\n", 1)[1])
            super().append((_passed(explained["Plan"]), explained["Query Text"]))


@contextmanager
def rows_passed_in_functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passed]:
    """Collect the rows of each statement, those inside of functions too, on connections that are made in the block.
    Unlike the others, these are the plans that the service uses."""
    passed, connect = Passed(), Database.connect

    def explained(self: Database) -> psycopg2.extensions.connection:
        connection = connect(self)
        connection.notices = passed  # type: ignore[assignment] # any object with append()
        with connection.cursor() as cursor:
            cursor.execute(_AUTO_EXPLAIN)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(Database, "connect", explained)
        yield passed
