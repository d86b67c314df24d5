"""The jobs that the triggers `enqueue_cleanup` enqueue after a delete. They delete dependent rows
and clear references, in batches. Each statement handles at most `limit` rows, finds them by an
index and returns `done`: True if no row remains. Updates skip locked rows, which a later batch
handles."""

from typing import Any

from linkmgr.core.database.jobs import Handler
from linkmgr.core.database.statements import database
from linkmgr.core.database.tables import BY_INDEX, TABLES, deletion

MAX_STATISTICS = 5000
MAX_ROWS = 500

# One month per batch: a ctid is unique only within a partition, and the bounds of `at` exclude the
# other partitions.
_VISITS = """
    WITH month AS MATERIALIZED (
        SELECT date_trunc('month', at) AS since FROM visits
         WHERE tracked_id = ANY (%(ids)s::bigint[]) LIMIT 1),
    deleted AS (
        DELETE FROM visits
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM visits
                                  WHERE tracked_id = ANY (%(ids)s::bigint[])
                                    AND at >= (SELECT since FROM month)
                                    AND at < (SELECT since + interval '1 month' FROM month)
                                  LIMIT %(limit)s))
           AND tracked_id = ANY (%(ids)s::bigint[])
           AND at >= (SELECT since FROM month)
           AND at < (SELECT since + interval '1 month' FROM month)
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM month) AS done
"""


def _clear(column: str, values: str) -> str:
    return f"""
        WITH cleared AS (
            UPDATE links SET {values}
             WHERE id = ANY (ARRAY(SELECT id FROM links
                                    WHERE user_id = %(user_id)s AND {column} = ANY (%(ids)s::bigint[])
                                    LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)))
        SELECT NOT EXISTS (SELECT FROM links
                            WHERE user_id = %(user_id)s AND {column} = ANY (%(ids)s::bigint[])) AS done
    """  # noqa: S608 - the same for several tables


_TRACKED = "tracked_id = ANY (%(ids)s::bigint[])"
_OF_TRACKED = (
    _VISITS,
    *(deletion(table, _TRACKED) for table in ("visitors", "conversions", "tracked_rollups", "totals")),
    *(deletion(table, "link_id = ANY (%(ids)s::bigint[])") for table in ("taken_clicks", "link_checks")),
)
_OWNED = [
    *(deletion(table, "user_id = -%(user_id)s::bigint") for table in ("outbox", "events")),  # the activity
    *(
        deletion(table, "user_id = %(user_id)s")
        for table in (
            "missing_paths",
            *TABLES,
            "idempotency_keys",
            "outbox",
            "events",
            "account_totals",
            "account_targets",
            "account_labels",
            "visit_minutes",
        )
    ),
]


def _batch(*statements: str, limit: int) -> Handler:
    def handle(argument: Any) -> bool:
        for statement in statements:
            [batch] = database().execute(
                statement, argument | {"limit": limit}, idempotent=False, prelude=BY_INDEX
            )
            if not batch["done"]:
                return False
        return True

    return Handler(handle)


tracked = _batch(*_OF_TRACKED, limit=MAX_STATISTICS)

HANDLERS = {
    "links_deleted": tracked,
    "binned_links_deleted": tracked,
    "kept_qrs_deleted": tracked,
    "campaigns_deleted": _batch(_clear("campaign", "campaign = NULL"), limit=MAX_ROWS),
    "splash_pages_deleted": _batch(_clear("splash_id", "splash_id = NULL, type = 'direct'"), limit=MAX_ROWS),
    "overlays_deleted": _batch(
        _clear("overlay_id", "overlay_id = NULL, type = 'direct'"),
        deletion("overlay_answers", "overlay_id = ANY (%(ids)s::bigint[])"),
        limit=MAX_ROWS,
    ),
    "imports_deleted": _batch(
        deletion("import_rows", "import_id = ANY (%(ids)s::bigint[])"), limit=MAX_STATISTICS
    ),
    "channels_deleted": _batch(
        deletion("channel_items", "channel_id = ANY (%(ids)s::bigint[])"), limit=MAX_ROWS
    ),
    "webhooks_deleted": _batch(
        deletion("deliveries", "webhook_id = ANY (%(ids)s::bigint[])"), limit=MAX_STATISTICS
    ),
    "users_deleted": _batch(*_OWNED, limit=MAX_ROWS),
}
