"""Shared by the rows of all resources: batches, versions, locks, and deletions of some rows at a
time."""

from collections.abc import Callable, Iterator

from linkmgr.core.database.statements import UNSYNCED, Row, rows, run, run_one

BATCH = 500  # rows of an export in memory at a time
Batch = Callable[[int, int], list[Row]]  # of a user, behind an id


def in_batches(batch: Batch, user_id: int, after: int = 0) -> Iterator[list[Row]]:
    """A batch is a statement of its own: an export of any size keeps no transaction open. Rows that
    are added meanwhile may be missing."""
    while stored := batch(user_id, after):
        after = stored[-1]["id"]
        yield stored


def batch_of(table: str) -> Batch:
    """Return the function `batch` of a table whose rows are exported as they are stored."""
    statement = f"""
        SELECT *, created AS date FROM {table} WHERE user_id = %(user_id)s AND id > %(after)s ORDER BY id LIMIT {BATCH}
    """  # noqa: S608 - the same for several tables
    return lambda user_id, after: rows(statement, user_id=user_id, after=after)


# --- versions of the rows that updates and deletes change: random numbers, which the triggers
# `change_version` set, or the statements of tables with few

# The rows of a deleted user are deleted in this order, so that no remaining row refers to a deleted
# one: links first, domains last.
TABLES = (
    "links",
    "binned_links",
    "bios",
    "campaigns",
    "channels",
    "conversions",
    "imports",
    "api_keys",
    "members",
    "overlays",
    "pixels",
    "kept_qrs",
    "splash_pages",
    "utm_templates",
    "webhooks",
    "domains",
)
_USER = "SELECT version::text FROM users WHERE id = %(row_id)s FOR NO KEY UPDATE"
_PLAN = "SELECT version::text FROM plans WHERE id = %(row_id)s FOR NO KEY UPDATE"
_STATEMENTS = {"users": _USER, "plans": _PLAN} | {
    table: f"""
        SELECT version::text FROM {table} WHERE user_id = %(user_id)s AND id = %(row_id)s FOR NO KEY UPDATE
    """  # noqa: S608 - the same for several tables
    for table in TABLES
}
_ELSEWHERE = {"links": "binned_links"}  # where a row may be, too


def lock_version(user_id: int, table: str, row_id: int) -> str | None:
    """Return the version of a row, or None if there is none. Until the transaction ends, no other
    transaction changes the row."""
    places = (table, _ELSEWHERE[table], table) if table in _ELSEWHERE else (table,)  # it may move meanwhile
    versions = (run(_STATEMENTS[place], user_id=user_id, row_id=row_id) for place in places)
    return next((str(stored["version"]) for stored in versions if stored), None)


def try_lock(user_id: int, name: str) -> bool:
    result = run_one(
        "SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s, %(user_id)s::bigint)) AS locked",
        user_id=user_id,
        name=name,
    )
    return bool(result["locked"])


# --- deletions of some rows at a time

# For the last rows of a link the planner would choose a bitmap scan, because it estimates the
# average number of rows of a link.
BY_INDEX = f"{UNSYNCED}SET LOCAL enable_bitmapscan = off; "


def clearing(table: str, values: str, condition: str, selected: str) -> str:
    return f"""
        WITH cleared AS (
            UPDATE {table} SET {values}
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE {condition} {selected} LIMIT %(limit)s))
               AND {condition}
            RETURNING 1)
        SELECT count(*) AS number FROM cleared
    """  # noqa: S608 - the same for several tables


def deletion(table: str, condition: str, selected: str = "") -> str:
    return f"""
        WITH deleted AS (
            DELETE FROM {table}
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE {condition} {selected} LIMIT %(limit)s))
               AND {condition}
            RETURNING 1)
        SELECT count(*) AS number, count(*) = 0 AS done FROM deleted
    """  # noqa: S608 - the same for several tables
