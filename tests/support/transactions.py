"""The cost of the statements of the service. Each first runs in a transaction that is rolled back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg2
import pytest

from linkmgr.core.database.session import SET_LOCAL
from linkmgr.core.database.statements import Database, Row, _prepared

_ROWS = """
    SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del), 0)::int
      FROM pg_stat_xact_user_tables
"""
_EXCLUSIVE = """
    SELECT EXISTS (SELECT FROM pg_locks
                    WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND locktype = 'relation')
"""


@pytest.fixture(name="executed")
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the service executes."""
    executed: list[str] = []
    execute_on = Database.execute_on

    def record(self: Database, pooled: Any, sql: str, *others: Any) -> list[Row]:
        executed.append(sql)
        return execute_on(self, pooled, sql, *others)

    monkeypatch.setattr(Database, "execute_on", record)
    return executed


class Cost(NamedTuple):
    sql: str
    rows: int  # read or written by the statement, its triggers and its cascades
    exclusive: bool  # takes an exclusive lock on the whole table


Costs = Callable[[Callable[[], Any]], list[Cost]]


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch, raw: psycopg2.extensions.connection) -> Costs:
    """Return the cost of each statement that a call runs."""
    found: list[Cost] = []
    execute = Database.execute

    def measure(self: Database, sql: str, params: Row, *, idempotent: bool, prelude: str = "") -> list[Row]:
        with raw.cursor() as cursor:
            cursor.execute("BEGIN")
            prepare, run = _prepared(sql)
            cursor.execute(SET_LOCAL + prelude + prepare)
            cursor.execute(_ROWS)
            [(earlier,)] = cursor.fetchall()  # of transactions that PostgreSQL has not added to its statistics yet
            cursor.execute(run, params)
            cursor.execute(_ROWS)
            [(rows,)] = cursor.fetchall()
            cursor.execute(_EXCLUSIVE)
            [(exclusive,)] = cursor.fetchall()
            cursor.execute("ROLLBACK; DEALLOCATE ALL")
        found.append(Cost(sql, rows - earlier, exclusive))
        return execute(self, sql, params, idempotent=idempotent, prelude=prelude)

    def run(call: Callable[[], Any]) -> list[Cost]:
        found.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Database, "execute", measure)
            call()
        return found.copy()

    return run
