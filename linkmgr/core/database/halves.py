"""Rows that one statement stores, of which some can be refused."""

from collections.abc import Callable
from typing import Any

import psycopg2

from linkmgr.core.database.statements import Row, undoable
from linkmgr.core.errors import RETRY_SECONDS, AppError, from_constraint

_MAX_TRIES = 4


def in_halves(
    items: list[Any],
    store: Callable[[list[Any]], list[Row]],
    atomic: bool,
    prepare_retry: Callable[[list[Any], psycopg2.IntegrityError], None] = lambda *_: None,
    tries: int = _MAX_TRIES,
) -> list[Row]:
    """Store items and return their results, in halves if a constraint is still violated after some
    tries. `prepare_retry` writes after what a failed try wrote has been undone."""
    violation: AppError | None = None
    for _ in range(tries):
        try:
            with undoable():
                return store(items)
        except psycopg2.IntegrityError as error:
            violation = _refusal_of(error)
            prepare_retry(items, error)
    assert violation
    if atomic:
        raise AppError("busy", seconds=RETRY_SECONDS)
    if len(items) == 1:
        return [failure(violation)]
    half = len(items) // 2
    halves = items[:half], items[half:]
    return [result for some in halves for result in in_halves(some, store, atomic, prepare_retry, 1)]


def _refusal_of(error: psycopg2.IntegrityError) -> AppError:
    refusal = from_constraint(error)
    if refusal is None or refusal.code == "key_unknown":
        raise error
    return refusal


def failure(error: AppError) -> Row:
    return {"code": error.code, "message": error.message} | ({"errors": error.errors} if error.errors else {})
