"""Plans of the statements that the service executes."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from linkmgr.db.statements import Database, Row


def _rows(node: Row) -> int:
    if children := node.get("Plans"):
        return sum(map(_rows, children))
    return int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def rows_read(monkeypatch: pytest.MonkeyPatch, dsn: str, call: Callable[[], Any]) -> list[int]:
    """Return the number of rows that the plan reads, for each statement that the call runs."""
    statements: list[tuple[str, Row]] = []
    execute = Database.execute

    def record(self: Database, sql: str, params: Row, **options: Any) -> list[Row]:
        statements.append((sql, params))
        return execute(self, sql, params, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "execute", record)
        call()
    connection = psycopg2.connect(dsn)
    read = []
    with connection.cursor() as cursor:
        cursor.execute("SET random_page_cost = 1.1")
        for sql, params in statements:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
            [[[found]]] = cursor.fetchall()
            read.append(_rows(found["Plan"]))
    connection.rollback()
    connection.close()
    return read
