"""Handlers of the jobs that the triggers `enqueue_cleanup` in schema.sql enqueue after a delete.

They delete dependent rows and clear references, in batches. Each statement handles at most `limit` rows, finds them by
an index and returns `done`: True if no row remains. Updates skip locked rows, which a later batch handles.
"""

from collections.abc import Callable
from typing import Any

from linkmgr.db.statements import UNSYNCED, database
from linkmgr.repository import link_blocks

MAX_STATISTICS = 5000
MAX_ROWS = 500

# For the last rows of a target the planner would choose a sequential scan, because it estimates the average number of
# rows of a target.
_BY_INDEX = f"{UNSYNCED}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "

# One month per batch: a ctid is unique only within a partition, and the bounds of `at` exclude the other partitions.
_VISITS = """
    WITH month AS MATERIALIZED (
        SELECT date_trunc('month', at) AS since FROM visits WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT 1),
    deleted AS (
        DELETE FROM visits
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM visits
                                  WHERE target_id = ANY (%(ids)s::bigint[])
                                    AND at >= (SELECT since FROM month)
                                    AND at < (SELECT since + interval '1 month' FROM month)
                                  LIMIT %(limit)s))
           AND target_id = ANY (%(ids)s::bigint[])
           AND at >= (SELECT since FROM month) AND at < (SELECT since + interval '1 month' FROM month)
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM month) AS done
"""
_VISITORS = """
    WITH deleted AS (
        DELETE FROM visitors
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM visitors WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
           AND target_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_BREAKDOWNS = """
    WITH deleted AS (
        DELETE FROM target_breakdowns
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM target_breakdowns
                                  WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
           AND target_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_QUARTERS = """
    WITH deleted AS (
        DELETE FROM target_quarters
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM target_quarters
                                  WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
           AND target_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_FOLDS = """
    WITH deleted AS (
        DELETE FROM target_folds
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM target_folds
                                  WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
           AND target_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_BUSY_DAYS = """
    WITH deleted AS (
        DELETE FROM busy_days
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM busy_days
                                  WHERE target_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
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
                                LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)))
    SELECT NOT EXISTS (SELECT FROM links
                        WHERE user_id = %(user_id)s AND campaign_id = ANY (%(ids)s::bigint[])) AS done
"""
_SPLASH = """
    WITH cleared AS (
        UPDATE links SET splash_id = NULL, type = 'direct'
         WHERE id = ANY (ARRAY(SELECT id FROM links
                                WHERE user_id = %(user_id)s AND splash_id = ANY (%(ids)s::bigint[])
                                LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)))
    SELECT NOT EXISTS (SELECT FROM links
                        WHERE user_id = %(user_id)s AND splash_id = ANY (%(ids)s::bigint[])) AS done
"""
_OVERLAY = """
    WITH cleared AS (
        UPDATE links SET overlay_id = NULL, type = 'direct'
         WHERE id = ANY (ARRAY(SELECT id FROM links
                                WHERE user_id = %(user_id)s AND overlay_id = ANY (%(ids)s::bigint[])
                                LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)))
    SELECT NOT EXISTS (SELECT FROM links
                        WHERE user_id = %(user_id)s AND overlay_id = ANY (%(ids)s::bigint[])) AS done
"""
_ANSWERS = """
    WITH deleted AS (
        DELETE FROM overlay_answers
         WHERE id = ANY (ARRAY(SELECT id FROM overlay_answers
                                WHERE overlay_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_PIXELS = """
    WITH deleted AS (
        DELETE FROM link_pixels
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM link_pixels
                                  WHERE user_id = %(user_id)s AND pixel_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
           AND pixel_id = ANY (%(ids)s::bigint[])
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_ITEMS = """
    WITH deleted AS (
        DELETE FROM channel_items
         WHERE id = ANY (ARRAY(SELECT id FROM channel_items WHERE channel_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
_DELIVERIES = """
    WITH deleted AS (
        DELETE FROM deliveries
         WHERE id = ANY (ARRAY(SELECT id FROM deliveries WHERE webhook_id = ANY (%(ids)s::bigint[]) LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
"""
# Ordered so that no remaining row refers to a deleted one: links before domains.
_OWNED = (
    """
    WITH deleted AS (
        DELETE FROM links
         WHERE id = ANY (ARRAY(SELECT id FROM links WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM qrs
         WHERE id = ANY (ARRAY(SELECT id FROM qrs WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM bios
         WHERE id = ANY (ARRAY(SELECT id FROM bios WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM campaigns
         WHERE id = ANY (ARRAY(SELECT id FROM campaigns WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM channels
         WHERE id = ANY (ARRAY(SELECT id FROM channels WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM splash_pages
         WHERE id = ANY (ARRAY(SELECT id FROM splash_pages WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM overlays
         WHERE id = ANY (ARRAY(SELECT id FROM overlays WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM pixels
         WHERE id = ANY (ARRAY(SELECT id FROM pixels WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM domains
         WHERE id = ANY (ARRAY(SELECT id FROM domains WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    # The rows of an import are deleted before it, because there may be many.
    """
    WITH deleted AS (
        DELETE FROM import_errors
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM import_errors
                                  WHERE import_id IN (SELECT id FROM imports WHERE user_id = %(user_id)s)
                                  LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM import_references
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM import_references
                                  WHERE import_id IN (SELECT id FROM imports WHERE user_id = %(user_id)s)
                                  LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM imports
         WHERE id = ANY (ARRAY(SELECT id FROM imports WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM idempotency_keys
         WHERE user_id = %(user_id)s
           AND key = ANY (ARRAY(SELECT key FROM idempotency_keys WHERE user_id = %(user_id)s LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM outbox
         WHERE id = ANY (ARRAY(SELECT id FROM outbox WHERE user_id = %(user_id)s LIMIT %(limit)s)) RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM events
         WHERE number = ANY (ARRAY(SELECT number FROM events WHERE user_id = %(user_id)s LIMIT %(limit)s))
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM pending_visits
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM pending_visits WHERE user_id = %(user_id)s LIMIT %(limit)s))
           AND user_id = %(user_id)s
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM account_rollups
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM account_rollups WHERE user_id = %(user_id)s LIMIT %(limit)s))
           AND user_id = %(user_id)s
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
    """
    WITH deleted AS (
        DELETE FROM account_days
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM account_days WHERE user_id = %(user_id)s LIMIT %(limit)s))
           AND user_id = %(user_id)s
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM deleted) AS done
    """,
)


def _batch(*statements: str, limit: int) -> Callable[[Any], bool]:
    """Return a handler that runs one batch of the first statement that is not done, and returns True if all are."""

    def handle(argument: Any) -> bool:
        for statement in statements:
            [batch] = database().execute(statement, argument | {"limit": limit}, idempotent=False, prelude=_BY_INDEX)
            if not batch["done"]:
                return False
        return True

    return handle


_TARGETS = (_VISITS, _VISITORS, _BREAKDOWNS, _QUARTERS, _BUSY_DAYS, _FOLDS, _TOTALS)
targets = _batch(*_TARGETS, limit=MAX_STATISTICS)

HANDLERS = {
    "links_deleted": _batch(*_TARGETS, link_blocks.DELETE_EMPTY, limit=MAX_STATISTICS),
    "qrs_deleted": targets,
    "campaigns_deleted": _batch(_CAMPAIGN, limit=MAX_ROWS),
    "splash_pages_deleted": _batch(_SPLASH, limit=MAX_ROWS),
    "overlays_deleted": _batch(_OVERLAY, _ANSWERS, limit=MAX_ROWS),
    "pixels_deleted": _batch(_PIXELS, limit=MAX_ROWS),
    "channels_deleted": _batch(_ITEMS, limit=MAX_ROWS),
    "webhooks_deleted": _batch(_DELIVERIES, limit=MAX_STATISTICS),
    "users_deleted": _batch(*_OWNED, *link_blocks.OWNED, limit=MAX_ROWS),
}
