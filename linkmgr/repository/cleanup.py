"""Handlers of the jobs that deletes enqueue: they delete dependants and clear references, in batches.

Each statement handles at most so many rows, which it finds by an index.  Updates skip rows that are locked.  The
triggers `enqueue_cleanup` of schema.sql enqueue the jobs.
"""

from collections.abc import Callable
from typing import Any

from linkmgr.db.statements import UNSYNCED, database

MAX_STATISTICS = 5000
MAX_ROWS = 500

# Estimates are averages, by which a table is read as a whole for the last rows of a target.
_BY_INDEX = f"{UNSYNCED}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "

# A batch is of one month, so that a row's place is looked up in one partition only.
_VISITS = """
    WITH month AS MATERIALIZED (
        SELECT date_trunc('month', at) AS since FROM visits WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT 1),
    deleted AS (
        DELETE FROM visits
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM visits
                                  WHERE target_id = ANY (%(ids)s::bigint[])
                                    AND at >= (SELECT since FROM month)
                                    AND at < (SELECT since + interval '1 month' FROM month)
                                  LIMIT %(most)s))
           AND target_id = ANY (%(ids)s::bigint[])
           AND at >= (SELECT since FROM month) AND at < (SELECT since + interval '1 month' FROM month)
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM month) AS done
"""
_VISITORS = """
    WITH deleted AS (
        DELETE FROM visitors
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM visitors WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(most)s))
           AND target_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_TALLIES = """
    WITH deleted AS (
        DELETE FROM target_breakdowns
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM target_breakdowns
                                  WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(most)s))
           AND target_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_TOTALS = """
    WITH deleted AS (
        DELETE FROM totals WHERE target_id = ANY (%(ids)s::bigint[]) RETURNING 1)
    SELECT true AS done
"""
_CAMPAIGN = """
    WITH cleared AS (
        UPDATE links SET campaign_id = NULL
         WHERE id = ANY (ARRAY(SELECT id FROM links
                                WHERE user_id = %(user_id)s AND campaign_id = ANY (%(ids)s::bigint[])
                                LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED)))
    SELECT NOT EXISTS (SELECT FROM links
                        WHERE user_id = %(user_id)s AND campaign_id = ANY (%(ids)s::bigint[])) AS done
"""
_SPLASH = """
    WITH cleared AS (
        UPDATE links SET splash_id = NULL, type = 'direct'
         WHERE id = ANY (ARRAY(SELECT id FROM links
                                WHERE user_id = %(user_id)s AND splash_id = ANY (%(ids)s::bigint[])
                                LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED)))
    SELECT NOT EXISTS (SELECT FROM links
                        WHERE user_id = %(user_id)s AND splash_id = ANY (%(ids)s::bigint[])) AS done
"""
_OVERLAY = """
    WITH cleared AS (
        UPDATE links SET overlay_id = NULL, type = 'direct'
         WHERE id = ANY (ARRAY(SELECT id FROM links
                                WHERE user_id = %(user_id)s AND overlay_id = ANY (%(ids)s::bigint[])
                                LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED)))
    SELECT NOT EXISTS (SELECT FROM links
                        WHERE user_id = %(user_id)s AND overlay_id = ANY (%(ids)s::bigint[])) AS done
"""
_ANSWERS = """
    WITH deleted AS (
        DELETE FROM overlay_answers
         WHERE id = ANY (ARRAY(SELECT id FROM overlay_answers
                                WHERE overlay_id = ANY (%(ids)s::bigint[]) LIMIT %(most)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_PIXELS = """
    WITH deleted AS (
        DELETE FROM link_pixels
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM link_pixels
                                  WHERE user_id = %(user_id)s AND pixel_id = ANY (%(ids)s::bigint[]) LIMIT %(most)s))
           AND pixel_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_ITEMS = """
    WITH deleted AS (
        DELETE FROM channel_items
         WHERE id = ANY (ARRAY(SELECT id FROM channel_items WHERE channel_id = ANY (%(ids)s::bigint[]) LIMIT %(most)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
# In an order in which nothing refers to what is deleted.
_OWNED = (
    """
    WITH deleted AS (
        DELETE FROM links
         WHERE id = ANY (ARRAY(SELECT id FROM links WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM qrs
         WHERE id = ANY (ARRAY(SELECT id FROM qrs WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM bios
         WHERE id = ANY (ARRAY(SELECT id FROM bios WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM campaigns
         WHERE id = ANY (ARRAY(SELECT id FROM campaigns WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM channels
         WHERE id = ANY (ARRAY(SELECT id FROM channels WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM splash_pages
         WHERE id = ANY (ARRAY(SELECT id FROM splash_pages WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM overlays
         WHERE id = ANY (ARRAY(SELECT id FROM overlays WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM pixels
         WHERE id = ANY (ARRAY(SELECT id FROM pixels WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM domains
         WHERE id = ANY (ARRAY(SELECT id FROM domains WHERE user_id = %(user_id)s LIMIT %(most)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
)


def _batch(*statements: str, most: int) -> Callable[[Any], bool]:
    """A handler that runs a batch of the first statement that is not done.  Each returns whether it was done."""

    def handle(argument: Any) -> bool:
        for statement in statements:
            [batch] = database().execute(statement, argument | {"most": most}, idempotent=False, prelude=_BY_INDEX)
            if not batch["done"]:
                return False
        return True

    return handle


targets = _batch(_VISITS, _VISITORS, _TALLIES, _TOTALS, most=MAX_STATISTICS)

HANDLERS = {
    "links_deleted": targets,
    "qrs_deleted": targets,
    "campaigns_deleted": _batch(_CAMPAIGN, most=MAX_ROWS),
    "splash_pages_deleted": _batch(_SPLASH, most=MAX_ROWS),
    "overlays_deleted": _batch(_OVERLAY, _ANSWERS, most=MAX_ROWS),
    "pixels_deleted": _batch(_PIXELS, most=MAX_ROWS),
    "channels_deleted": _batch(_ITEMS, most=MAX_ROWS),
    "users_deleted": _batch(*_OWNED, most=MAX_ROWS),
}
