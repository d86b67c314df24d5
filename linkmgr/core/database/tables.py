"""Shared by the rows of all resources: batches, names that are unique over all users, versions, locks, and what jobs
delete."""

from collections.abc import Callable, Iterator
from typing import Any

from psycopg2 import IntegrityError

from linkmgr.core.database.jobs import Handler
from linkmgr.core.database.statements import UNSYNCED, Row, database, rows, run, run_one

BATCH = 500  # rows of an export in memory at a time
Batch = Callable[[int, int], list[Row]]  # of a user, behind an id


def in_batches(batch: Batch, user_id: int, after: int = 0) -> Iterator[list[Row]]:
    """A batch is a statement of its own: an export of any size keeps no transaction open. Rows that are added meanwhile
    may be missing."""
    while stored := batch(user_id, after):
        after = stored[-1]["id"]
        yield stored


def batch_of(table: str) -> Batch:
    """Return the function `batch` of a table whose rows are exported as they are stored."""
    statement = f"""
        SELECT *, created AS date FROM {table} WHERE user_id = %(user_id)s AND id > %(after)s ORDER BY id LIMIT {BATCH}
    """  # noqa: S608 - the same for several tables
    return lambda user_id, after: rows(statement, user_id=user_id, after=after)


# --- names that are unique over all users: aliases, campaign slugs and domains. Those of a deleted user are available
# at once, although background jobs delete the rows later.

# Statements by violated constraint. Each releases the names whose owner was deleted, and returns a row if it did. The
# tables are of the schema `public`, because restricted keys do not see rows of deleted users.
_RELEASES = {
    "alias_taken": """
        WITH holders AS (
            -- An update of only the domain brings no alias: the link keeps its own.
            SELECT link_id, bio_id
              FROM aliases
             WHERE domain_id = 0
               AND (alias = ANY (%(aliases)s::text[])
                    OR alias = (SELECT alias FROM links WHERE id = %(link_id)s::bigint))),
        links_deleted AS (
            DELETE FROM public.links
             WHERE id IN (SELECT link_id FROM holders) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1),
        binned_deleted AS (
            DELETE FROM public.binned_links
             WHERE id IN (SELECT link_id FROM holders) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1),
        bios_deleted AS (
            DELETE FROM public.bios
             WHERE id IN (SELECT bio_id FROM holders) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1)
        SELECT 1 FROM links_deleted UNION ALL SELECT 1 FROM binned_deleted UNION ALL SELECT 1 FROM bios_deleted
    """,
    "campaign_slug_taken": """
        UPDATE public.campaigns SET slug = NULL
         WHERE slug = %(slug)s AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
        RETURNING 1
    """,
    # Rename the domain instead of deleting it: links may still refer to it.
    "domain_taken": """
        UPDATE public.domains SET host = id || '.invalid'
         WHERE host = split_part(%(domain)s, '://', 2) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
        RETURNING 1
    """,
}


def release(constraint: str | None, **params: Any) -> bool:
    """Release the names that violate a constraint if their owner was deleted. Return False if there are none."""
    statement = _RELEASES.get(constraint or "")
    return statement is not None and run(statement, **params) is not None


def release_name(violation: IntegrityError, params: Row) -> bool:
    own = {"aliases": [params.get("alias")], "link_id": params.get("link_id")}
    return release(violation.diag.constraint_name, **params | own)


# --- versions of the rows that updates and deletes change: random numbers, which the triggers `change_version` set

# The rows of a deleted user are deleted in this order, so that no remaining row refers to a deleted one:
# links first, domains last.
TABLES = (
    "links",
    "binned_links",
    "bios",
    "campaigns",
    "channels",
    "imports",
    "api_keys",
    "overlays",
    "pixels",
    "qrs",
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
    """Return the version of a row, or None if there is none. Until the transaction ends, no other transaction changes
    the row."""
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


# --- the jobs that the triggers `enqueue_cleanup` enqueue after a delete. They delete dependent rows and clear
# references, in batches. Each statement handles at most `limit` rows, finds them by an index and returns `done`: True
# if no row remains. Updates skip locked rows, which a later batch handles.

MAX_STATISTICS = 5000
MAX_ROWS = 500

# For the last rows of a link the planner would choose a sequential scan, because it estimates the average number of
# rows of a link.
BY_INDEX = f"{UNSYNCED}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "

# One month per batch: a ctid is unique only within a partition, and the bounds of `at` exclude the other partitions.
_VISITS = """
    WITH month AS MATERIALIZED (
        SELECT date_trunc('month', at) AS since FROM visits WHERE tracked_id = ANY (%(ids)s::bigint[]) LIMIT 1),
    deleted AS (
        DELETE FROM visits
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM visits
                                  WHERE tracked_id = ANY (%(ids)s::bigint[])
                                    AND at >= (SELECT since FROM month)
                                    AND at < (SELECT since + interval '1 month' FROM month)
                                  LIMIT %(limit)s))
           AND tracked_id = ANY (%(ids)s::bigint[])
           AND at >= (SELECT since FROM month) AND at < (SELECT since + interval '1 month' FROM month)
        RETURNING 1)
    SELECT NOT EXISTS (SELECT FROM month) AS done
"""


def deletion(table: str, condition: str, selected: str = "") -> str:
    return f"""
        WITH deleted AS (
            DELETE FROM {table}
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE {condition} {selected} LIMIT %(limit)s))
               AND {condition}
            RETURNING 1)
        SELECT count(*) AS number, count(*) = 0 AS done FROM deleted
    """  # noqa: S608 - the same for several tables


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
    deletion(table, "user_id = %(user_id)s")
    for table in ("missing_paths", *TABLES, "idempotency_keys", "outbox", "events", "account_rollups", "visit_minutes")
]


def _batch(*statements: str, limit: int) -> Handler:
    def handle(argument: Any) -> bool:
        for statement in statements:
            [batch] = database().execute(statement, argument | {"limit": limit}, idempotent=False, prelude=BY_INDEX)
            if not batch["done"]:
                return False
        return True

    return Handler(handle)


tracked = _batch(*_OF_TRACKED, limit=MAX_STATISTICS)

HANDLERS = {
    "links_deleted": tracked,
    "binned_links_deleted": tracked,
    "qrs_deleted": tracked,
    "campaigns_deleted": _batch(_clear("campaign", "campaign = NULL"), limit=MAX_ROWS),
    "splash_pages_deleted": _batch(_clear("splash_id", "splash_id = NULL, type = 'direct'"), limit=MAX_ROWS),
    "overlays_deleted": _batch(
        _clear("overlay_id", "overlay_id = NULL, type = 'direct'"),
        deletion("overlay_answers", "overlay_id = ANY (%(ids)s::bigint[])"),
        limit=MAX_ROWS,
    ),
    "imports_deleted": _batch(deletion("import_rows", "import_id = ANY (%(ids)s::bigint[])"), limit=MAX_STATISTICS),
    "channels_deleted": _batch(deletion("channel_items", "channel_id = ANY (%(ids)s::bigint[])"), limit=MAX_ROWS),
    "webhooks_deleted": _batch(deletion("deliveries", "webhook_id = ANY (%(ids)s::bigint[])"), limit=MAX_STATISTICS),
    "users_deleted": _batch(*_OWNED, limit=MAX_ROWS),
}
