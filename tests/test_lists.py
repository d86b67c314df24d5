"""A list reads only the caller's rows, however many rows other users have."""

from typing import Any

import pytest
from flask import Flask

from linkmgr.db import statements
from tests.conftest import Client

# A path, its table, and the columns of n rows besides their owner.
LISTS = {
    "/api/pixels": ("pixels", {"type": "'bing'", "name": "'n'", "tag": "'t'"}),
    "/api/urls": ("links", {"alias": "%(user_id)s::bigint || '-' || n", "url": "'https://example.org/' || n"}),
    "/api/channels": ("channels", {"name": "n::text", "color": "'#fff'"}),
}


def removed_by_filters(plan: dict[str, Any], table: str) -> int:
    """Count rows of this table only: PostgreSQL may scan a small table, such as `usage`, completely."""
    below = sum(removed_by_filters(each, table) for each in plan.get("Plans", []))
    return below + (int(plan.get("Rows Removed by Filter", 0)) if plan.get("Relation Name") == table else 0)


def plan_of(statement: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the plan of the statement as the service prepares and executes it."""
    prepare, execute = statements._prepared(statement)
    with statements.database().connect() as connection, connection.cursor() as cursor:
        cursor.execute(prepare)
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {execute}", given)
        [[found]] = cursor.fetchall()
        plan: dict[str, Any] = found[0]["Plan"]
        return plan


@pytest.mark.parametrize("path", LISTS)
def test_the_list_of_a_user_with_few_rows_reads_no_rows_of_other_users(
    app: Flask, alice: Client, bob: Client, path: str
) -> None:
    table, columns = LISTS[path]
    asked: list[tuple[str, dict[str, Any]]] = []
    with app.app_context(), pytest.MonkeyPatch.context() as patch:
        for owner, rows in ((alice, 3), (bob, 20_000)):
            statements.run(
                f"INSERT INTO {table} (user_id, {', '.join(columns)}) "
                f"SELECT %(user_id)s, {', '.join(columns.values())} FROM generate_series(1, %(n)s) n",
                user_id=owner.id,
                n=rows,
            )
        with statements.database().connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {table}")
        read = statements.Database.read

        def reading(self: statements.Database, statement: str, given: statements.Row) -> list[statements.Row]:
            asked.append((statement, given))
            return read(self, statement, given)

        patch.setattr(statements.Database, "read", reading)
        assert alice.get(path).get_json()["data"]["result"] == 3
        [listed] = [each for each in asked if "list_total" in each[0]]
        assert removed_by_filters(plan_of(*listed), table) == 0
