from typing import Any, Unpack

import orjson

from linkmgr.core.database.expiry import older_than
from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import Row, row, rows, run, run_one
from linkmgr.core.errors import AppError, existing, not_found

MAX_UNFINISHED = 3  # of a user
MAX_KEPT = 1000  # of a user that have ended

delete_old_drafts = older_than("imports", "created", "1 day", "state = 'draft'")


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    imports = page(
        """
        SELECT * FROM import_records
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        counted="imports",
        user_id=user_id,
        **paging,
    )
    for listed in imports.rows:
        del listed["user_id"]
    return imports


def read(user_id: int, import_id: int) -> Row:
    stored = row(
        "SELECT * FROM import_records WHERE user_id = %(user_id)s AND id = %(import_id)s",
        user_id=user_id,
        import_id=import_id,
    )
    record = existing(stored, "import")
    del record["user_id"]
    return record


def delete(user_id: int, import_id: int) -> None:
    deleted = run(
        "DELETE FROM imports WHERE user_id = %(user_id)s AND id = %(import_id)s RETURNING id",
        user_id=user_id,
        import_id=import_id,
    )
    existing(deleted, "import")


# --- creation, in a transaction


def add(user_id: int, **members: Any) -> int:
    added = run_one(
        """
        INSERT INTO imports (user_id, state, source, name, address, token, size)
        VALUES (%(user_id)s, 'draft', %(source)s, %(name)s, %(address)s, %(token)s, %(size)s)
        RETURNING id
        """,
        **{"name": "", "address": "", "token": None, "size": None} | members,
        user_id=user_id,
    )
    return int(added["id"])


def next_id() -> int:
    """Return an id below those of new links."""
    return int(run_one("SELECT nextval('tracked_ids') AS id")["id"])


def begin(user_id: int, import_id: int, *, on_conflict: str, mapping: Row, ignored: str = "") -> None:
    """Begin a draft. Delete imports that have ended, except the newest ones. Concurrent requests
    count each other's imports, because the row of the user is locked."""
    run("SELECT FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE", user_id=user_id)
    begun = run_one(
        """
        WITH unfinished AS MATERIALIZED (
            SELECT count(*) < %(max_unfinished)s AS has_room
              FROM imports
             WHERE user_id = %(user_id)s AND state IN ('queued', 'running', 'paused')),
        begun AS (
            UPDATE imports
               SET state = 'queued', on_conflict = %(on_conflict)s, mapping = %(mapping)s::jsonb,
                   ignored = %(ignored)s, first_id = nextval('tracked_ids')
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND state = 'draft'
               AND (SELECT has_room FROM unfinished)
            RETURNING 1),
        deleted AS (
            DELETE FROM imports
             WHERE id IN (SELECT id FROM imports WHERE user_id = %(user_id)s
                             AND finished IS NOT NULL
                           ORDER BY id DESC OFFSET %(max_kept)s))
        SELECT has_room, EXISTS (SELECT FROM begun) AS is_begun FROM unfinished
        """,
        user_id=user_id,
        import_id=import_id,
        on_conflict=on_conflict,
        mapping=orjson.dumps(mapping).decode(),
        ignored=ignored,
        max_unfinished=MAX_UNFINISHED,
        max_kept=MAX_KEPT,
    )
    if not begun["has_room"]:
        raise AppError("imports_full", number=MAX_UNFINISHED)
    if not begun["is_begun"]:
        raise not_found("import")


def enqueue(user_id: int, import_id: int) -> None:
    run(
        """
        INSERT INTO jobs (task, argument)
        VALUES ('import',
                jsonb_build_object('user_id', %(user_id)s::bigint, 'import_id',
                                   %(import_id)s::bigint))
        """,
        user_id=user_id,
        import_id=import_id,
    )


# --- the end


def delete_drafts(user_id: int) -> None:
    run("DELETE FROM imports WHERE user_id = %(user_id)s AND state = 'draft'", user_id=user_id)


def cancel_expired(limit: int) -> int:
    cancelled = run_one(
        """
        WITH cancelled AS (
            UPDATE imports SET state = 'cancelled', finished = now(), token = NULL, cursor = NULL
             WHERE id = ANY (ARRAY(SELECT id FROM imports
                                    WHERE state = 'paused'
                                      AND coalesce(started, created) < now() - interval '7 days'
                                    LIMIT %(limit)s))
            RETURNING user_id, id),
        cleaned AS (
            INSERT INTO jobs (task, argument)
            SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id)
              FROM cancelled),
        events_added AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'import.finished', id FROM cancelled WHERE notes_changes(user_id))
        SELECT count(*) AS number FROM cancelled
        """,
        limit=limit,
    )
    return int(cancelled["number"])


def cancel(user_id: int, import_id: int) -> bool:
    cancelled = run(
        """
        WITH cancelled AS (
            UPDATE imports
               SET state = 'cancelled', started = coalesce(started, now()), finished = now(),
                   token = NULL, cursor = NULL
             WHERE user_id = %(user_id)s AND id = %(import_id)s
               AND state IN ('queued', 'running', 'paused')
            RETURNING user_id, id),
        events_added AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'import.finished', id FROM cancelled WHERE notes_changes(user_id))
        SELECT id FROM cancelled
        """,
        user_id=user_id,
        import_id=import_id,
    )
    return cancelled is not None


def resume(user_id: int, import_id: int) -> None:
    resumed = run(
        """
        UPDATE imports SET state = 'running', message = '', failing_since = NULL
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND state = 'paused'
        RETURNING 1
        """,
        user_id=user_id,
        import_id=import_id,
    )
    if resumed is None:
        raise AppError("import_not_paused")


def undo(user_id: int, import_id: int) -> bool:
    """Enqueue the job that deletes the links of an import that has ended in the last day, unless it
    waits or runs already. Return False for any other import."""
    ended = run(
        """
        WITH ended AS (
            SELECT user_id, id FROM imports
             WHERE user_id = %(user_id)s AND id = %(import_id)s
               AND finished > now() - interval '1 day'),
        enqueued AS (
            INSERT INTO jobs (task, argument)
            SELECT 'import_undo',
                   jsonb_build_object('user_id', user_id, 'import_id', id, 'actor',
                                      nullif(current_setting('linkmgr.actor', true), '')::jsonb)
              FROM ended
            ON CONFLICT DO NOTHING)
        SELECT id FROM ended
        """,
        user_id=user_id,
        import_id=import_id,
    )
    return ended is not None


# --- the job


def unchanged_links(user_id: int, import_id: int, limit: int) -> list[int]:
    """Lock some links that an import made and that have not changed since, nor got a channel since
    its end. Return their ids."""
    links = rows(
        """
        SELECT l.id
          FROM imports i
          JOIN links l ON l.import_id = i.id AND l.updated = l.imported
         WHERE i.user_id = %(user_id)s AND i.id = %(import_id)s
           AND NOT EXISTS (SELECT FROM channel_items c
                            WHERE c.user_id = i.user_id AND c.link_id = l.id AND c.id > i.last_item)
         LIMIT %(limit)s
           FOR UPDATE OF l
        """,
        user_id=user_id,
        import_id=import_id,
        limit=limit,
    )
    return [link["id"] for link in links]


def details(user_id: int, import_id: int) -> Row | None:
    return row(
        """
        SELECT *, extract(epoch FROM now() - failing_since)::float8 AS failing_seconds
          FROM imports
         WHERE user_id = %(user_id)s AND id = %(import_id)s
           AND EXISTS (SELECT FROM users WHERE id = %(user_id)s)
        """,
        user_id=user_id,
        import_id=import_id,
    )


# The values of columns that a batch leaves as they are. Numbers are added.
_UNCHANGED: Row = dict.fromkeys(("state", "stage", "message", "problem", "cursor", "made_of")) | dict.fromkeys(
    ("found", "waiting_bytes", "kept_bytes", "bytes_read", "missing", "rows_read", "made", "updated", "skipped",
     "failed", "cut", "visits"), 0
)  # fmt: skip


def save(user_id: int, import_id: int, batch: int, *, is_failing: bool = False, **changes: Any) -> bool:
    """Store what a batch has changed. Return False if the import has ended, or if another process
    has stored the batch with this number. `is_failing`: the service did not respond, and the batch
    is repeated."""
    if changes.get("cursor") is not None:
        changes["cursor"] = orjson.dumps(changes["cursor"]).decode()
    saved = run(
        """
        WITH saved AS (
            UPDATE imports
               SET state = coalesce(%(state)s::text, state),
                   stage = coalesce(%(stage)s::text, stage),
                   message = coalesce(%(message)s::text, message),
                   problem = coalesce(%(problem)s::text, problem),
                   batch = batch + (NOT %(is_failing)s)::integer,
                   token = CASE WHEN %(stage)s = 'store' OR %(state)s IN ('done', 'failed')
                                THEN NULL ELSE token END,
                   cursor = CASE WHEN %(stage)s = 'store' OR %(state)s IN ('done', 'failed')
                                 THEN NULL ELSE coalesce(%(cursor)s::jsonb, cursor) END,
                   started = CASE WHEN %(is_failing)s THEN started
                                  ELSE coalesce(started, now()) END,
                   finished = CASE WHEN %(state)s::text IN ('done', 'failed') THEN now() END,
                   last_item = CASE WHEN %(state)s::text IN ('done', 'failed')
                                    THEN (SELECT coalesce(max(id), 0) FROM channel_items) END,
                   failing_since = CASE WHEN %(is_failing)s THEN coalesce(failing_since, now()) END,
                   found = found + %(found)s, waiting_bytes = waiting_bytes + %(waiting_bytes)s,
                   staged_bytes = staged_bytes + greatest(0, %(waiting_bytes)s),
                   kept_bytes = kept_bytes + %(kept_bytes)s,
                   bytes_read = bytes_read + %(bytes_read)s, missing = missing + %(missing)s,
                   rows_read = rows_read + %(rows_read)s, made = made + %(made)s,
                   made_of = made_of || CASE WHEN %(made)s > 0 AND %(made_of)s::text IS NOT NULL
                             THEN jsonb_build_object(
                                 %(made_of)s::text,
                                 coalesce((made_of ->> %(made_of)s::text)::bigint, 0) + %(made)s)
                             ELSE '{}' END,
                   changed = changed + %(updated)s, skipped = skipped + %(skipped)s,
                   failed = failed + %(failed)s, cut = cut + %(cut)s, visits = visits + %(visits)s
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s
               AND state IN ('queued', 'running')
            RETURNING user_id, id),
        events_added AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'import.finished', id FROM saved
             WHERE %(state)s IN ('done', 'failed') AND notes_changes(user_id))
        SELECT id FROM saved
        """,
        **(_UNCHANGED | changes),
        user_id=user_id,
        import_id=import_id,
        batch=batch,
        is_failing=is_failing,
    )
    return saved is not None
