"""Deletion of expired rows, some at a time."""

from collections.abc import Callable
from functools import partial

from linkmgr.core.database import tables
from linkmgr.core.database.statements import run_unsynced


def older_than(table: str, column: str, age: str, condition: str = "true") -> Callable[[int], int]:
    """Return a function that deletes some rows whose column is older than an age, and returns their
    number. Requests do not wait for it: it skips the rows that they have locked."""
    expired = f"{column} < now() - interval '{age}' AND {condition}"
    return partial(_run_some, tables.deletion(table, expired, f"ORDER BY {column} FOR UPDATE SKIP LOCKED"))


def cleared_after(table: str, column: str, age: str, values: str, condition: str) -> Callable[[int], int]:
    """Return a function like `older_than` that sets values instead, after which the condition is
    false."""
    expired = f"{column} < now() - interval '{age}' AND {condition}"
    return partial(
        _run_some, tables.clearing(table, values, expired, f"ORDER BY {column} FOR UPDATE SKIP LOCKED")
    )


def _run_some(statement: str, limit: int) -> int:
    changed = run_unsynced(statement, limit=limit)
    assert changed is not None
    return int(changed["number"])
