"""Jobs that keep the index of the search up to date: see link_blocks in schema.sql."""

import time
from typing import Any

from psycopg2.errors import LockNotAvailable

from linkmgr.db.jobs import Later
from linkmgr.db.statements import Row, row, run_unsynced

MAX_LINKS = 128  # per block, as search_links() assumes
MAX_BLOCKS = 8  # per batch, each in a transaction of its own
_WAIT_SECONDS = 1
_BUSY_SECONDS = 5

# Batches of cleanup.py.
DELETE_EMPTY = """
    WITH blocks AS MATERIALIZED (
        SELECT DISTINCT last_id
          FROM unnest(%(ids)s::bigint[]) AS deleted (id),
               LATERAL (SELECT last_id FROM link_blocks
                         WHERE user_id = %(user_id)s AND last_id >= deleted.id
                         ORDER BY last_id
                         LIMIT 1) block),
    emptied AS (
        DELETE FROM link_blocks
         WHERE user_id = %(user_id)s
           AND last_id = ANY (ARRAY(
               SELECT last_id FROM blocks
                WHERE NOT EXISTS (
                      SELECT FROM links
                       WHERE (user_id, id) > (%(user_id)s, coalesce((SELECT max(b.last_id) FROM link_blocks b
                                                                      WHERE b.user_id = %(user_id)s
                                                                        AND b.last_id < blocks.last_id), 0))
                         AND (user_id, id) <= (%(user_id)s, blocks.last_id)))))
    SELECT true AS done
"""
OWNED = (
    """
    WITH deleted AS (
        DELETE FROM link_blocks
         WHERE user_id = %(user_id)s
           AND last_id = ANY (ARRAY(SELECT last_id FROM link_blocks WHERE user_id = %(user_id)s LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM changed_links
         WHERE user_id = %(user_id)s
           AND link_id = ANY (ARRAY(SELECT link_id FROM changed_links WHERE user_id = %(user_id)s LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
)


def add(argument: Any) -> bool:
    """Make a batch of blocks of the links of a user that are in no block. Return True if nothing is left."""
    try:
        indexed_to = _raise_limit(argument["user_id"])
    except LockNotAvailable as error:  # a long transaction stores links
        raise Later(_BUSY_SECONDS) from error
    if indexed_to is None:
        return True
    _wait_for_writers()
    return any(_add_block(argument["user_id"], indexed_to) for _ in range(MAX_BLOCKS))


def replace(_: Any) -> bool:
    """Make a batch of blocks of changed links again. Return True if nothing is left."""
    return any(_replace_block() for _ in range(MAX_BLOCKS))


def _raise_limit(user_id: int) -> int | None:
    """Return the highest id of a link of the user, or None if there is none. From now on, each statement that stores a
    link up to it adds it to `changed_links`."""
    raised = run_unsynced(
        """
        UPDATE usage SET indexed_to = greatest(indexed_to, (SELECT max(id) FROM links WHERE user_id = %(user_id)s))
         WHERE user_id = %(user_id)s AND kind = 'links'
        RETURNING indexed_to
        """,
        user_id=user_id,
    )
    return raised["indexed_to"] if raised else None


def _wait_for_writers() -> None:
    """Wait until all transactions that have written something so far have ended. Later ones see the raised limit."""
    current = run_unsynced("SELECT pg_current_xact_id()::text AS id")
    assert current
    deadline = time.monotonic() + _WAIT_SECONDS
    while not _have_ended(current["id"]):
        if time.monotonic() > deadline:
            raise Later(_BUSY_SECONDS)
        time.sleep(0.01)


def _have_ended(transaction: str) -> bool:
    oldest = row(
        "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %(transaction)s::xid8 AS newer", transaction=transaction
    )
    return bool(oldest and oldest["newer"])


def _add_block(user_id: int, indexed_to: int) -> bool:
    batch = run_unsynced(
        "SELECT add_block(%(user_id)s, %(indexed_to)s, %(max_links)s) AS done",
        user_id=user_id,
        indexed_to=indexed_to,
        max_links=MAX_LINKS,
    )
    return _is_done(batch)


def _replace_block() -> bool:
    return _is_done(run_unsynced("SELECT replace_block(%(max_links)s) AS done", max_links=MAX_LINKS))


def _is_done(batch: Row | None) -> bool:
    assert batch
    if batch["done"] is None:  # another process has the lock
        raise Later(1)
    return bool(batch["done"])


HANDLERS = {"links_added": add, "links_changed": replace}
