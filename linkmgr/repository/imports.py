"""Imports: their state and their files."""

from typing import Any

import orjson
import psycopg2

from linkmgr.db.statements import run
from linkmgr.errors import AppError, not_found
from linkmgr.repository.tables import Table

CHUNK_BYTES = 1 << 20
MAX_UNFINISHED = 3  # of a user
MAX_KEPT = 1000  # of a user that have ended


_IMPORTS = Table(
    "imports",
    "import",
    """
    id, state, source, name, on_conflict, size, rows_read AS read, made, updated, skipped, failed,
    greatest(visits - visits_refused, 0) AS visits,
    CASE WHEN state = 'running' AND import_part(imports) > 0
         THEN ceil(extract(epoch FROM now() - started) * (1 / import_part(imports) - 1))::bigint END AS seconds_left,
    (100 * import_part(imports))::integer AS percent, message, created, started, finished, version::text
    """,
)
index, read = _IMPORTS.index, _IMPORTS.read


# --- creation, in a transaction


def _lock(user_id: int) -> None:
    """Lock the row of the user, so that concurrent requests count each other's imports."""
    run("SELECT FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE", user_id=user_id)


def add(user_id: int, *, state: str, source: str, on_conflict: str, **members: Any) -> int:
    """Store an import and return its id."""
    _lock(user_id)
    _delete_oldest(user_id)
    values = {"name": "", "mapping": {}, "address": "", "token": None, "size": None} | members
    added = run(
        """
        INSERT INTO imports (user_id, state, source, on_conflict, name, mapping, address, token, size)
        SELECT %(user_id)s, %(state)s, %(source)s, %(on_conflict)s, %(name)s, %(mapping)s::jsonb, %(address)s,
               %(token)s, %(size)s::bigint
         WHERE (SELECT count(*) FROM imports
                 WHERE user_id = %(user_id)s AND state IN ('queued', 'running', 'paused')) < %(max_unfinished)s
        RETURNING id
        """,
        **(values | {"mapping": orjson.dumps(values["mapping"]).decode()}),
        user_id=user_id,
        state=state,
        source=source,
        on_conflict=on_conflict,
        max_unfinished=MAX_UNFINISHED,
    )
    if added is None:
        raise AppError("imports_full", number=MAX_UNFINISHED)
    return int(added["id"])


def _delete_oldest(user_id: int) -> None:
    """Delete imports that have ended, except the newest ones. Their jobs delete the rows that failed."""
    run(
        """
        WITH deleted AS (
            DELETE FROM imports
             WHERE id IN (SELECT id FROM imports WHERE user_id = %(user_id)s AND finished IS NOT NULL
                           ORDER BY id DESC OFFSET %(max_kept)s)
            RETURNING user_id, id)
        INSERT INTO jobs (kind, argument)
        SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id) FROM deleted
        """,
        user_id=user_id,
        max_kept=MAX_KEPT,
    )


def add_chunk(user_id: int, import_id: int, number: int, data: bytes) -> None:
    run(
        """
        INSERT INTO import_chunks (user_id, import_id, number, data)
        VALUES (%(user_id)s, %(import_id)s, %(number)s, %(data)s)
        """,
        user_id=user_id,
        import_id=import_id,
        number=number,
        data=psycopg2.Binary(data),
    )


def delete_drafts(user_id: int) -> None:
    """Delete the files that the user uploaded in the console and did not import."""
    run("DELETE FROM imports WHERE user_id = %(user_id)s AND state = 'draft'", user_id=user_id)


def delete_expired(limit: int) -> int:
    """Delete drafts that are older than a day. Cancel imports that have waited for their users for a week. Return the
    number of drafts."""
    deleted = run(
        """
        WITH deleted AS (
            DELETE FROM imports
             WHERE id = ANY (ARRAY(SELECT id FROM imports
                                    WHERE state = 'draft' AND created < now() - interval '1 day' LIMIT %(limit)s))
            RETURNING 1),
        cancelled AS (
            UPDATE imports SET state = 'cancelled', finished = now(), token = NULL
             WHERE state = 'paused' AND coalesce(started, created) < now() - interval '7 days'
            RETURNING user_id, id),
        cleaned AS (
            INSERT INTO jobs (kind, argument)
            SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id) FROM cancelled)
        SELECT count(*) AS number FROM deleted
        """,
        limit=limit,
    )
    return int(deleted["number"]) if deleted else 0


def enqueue(user_id: int, import_id: int) -> None:
    """Enqueue the job of an import, which begins a draft and cleans up an import that ended."""
    run(
        """
        WITH begun AS (
            UPDATE imports SET state = 'queued'
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND state = 'draft')
        INSERT INTO jobs (kind, argument)
        VALUES ('import', jsonb_build_object('user_id', %(user_id)s::bigint, 'import_id', %(import_id)s::bigint))
        """,
        user_id=user_id,
        import_id=import_id,
    )


def begin(user_id: int, import_id: int, *, on_conflict: str, mapping: dict[str, str]) -> None:
    """Begin a draft."""
    _lock(user_id)
    begun = run(
        """
        WITH unfinished AS MATERIALIZED (
            SELECT count(*) < %(max_unfinished)s AS has_room
              FROM imports
             WHERE user_id = %(user_id)s AND state IN ('queued', 'running', 'paused')),
        begun AS (
            UPDATE imports
               SET state = 'queued', on_conflict = %(on_conflict)s, mapping = %(mapping)s::jsonb,
                   first_id = nextval('tracked_ids')
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND state = 'draft'
               AND (SELECT has_room FROM unfinished)
            RETURNING user_id, id),
        enqueued AS (
            INSERT INTO jobs (kind, argument)
            SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id) FROM begun)
        SELECT has_room, EXISTS (SELECT FROM begun) AS is_begun FROM unfinished
        """,
        user_id=user_id,
        import_id=import_id,
        on_conflict=on_conflict,
        mapping=orjson.dumps(mapping).decode(),
        max_unfinished=MAX_UNFINISHED,
    )
    assert begun
    if not begun["has_room"]:
        raise AppError("imports_full", number=MAX_UNFINISHED)
    if not begun["is_begun"]:
        raise not_found("import")


def resume(user_id: int, import_id: int) -> None:
    """Continue an import that waits for its user."""
    resumed = run(
        """
        WITH resumed AS (
            UPDATE imports SET state = 'running', message = ''
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND state = 'paused'
            RETURNING user_id, id)
        INSERT INTO jobs (kind, argument)
        SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id) FROM resumed
        RETURNING id
        """,
        user_id=user_id,
        import_id=import_id,
    )
    if resumed is None:
        raise AppError("import_not_paused")


# --- cancellation


def delete(user_id: int, import_id: int) -> str:
    """Cancel an import, or delete the record of one that has ended. Return the state that it had."""
    record = run(
        """
        WITH import AS (
            SELECT id, state FROM imports WHERE user_id = %(user_id)s AND id = %(import_id)s FOR UPDATE),
        cancelled AS (
            UPDATE imports
               SET state = 'cancelled', started = coalesce(started, now()), finished = now(), token = NULL
             WHERE id = (SELECT id FROM import WHERE state IN ('queued', 'running', 'paused'))
            RETURNING user_id, id),
        cleaned AS (
            INSERT INTO jobs (kind, argument)
            SELECT 'import', jsonb_build_object('user_id', %(user_id)s::bigint, 'import_id', id)
              FROM import
             WHERE state <> 'draft'),
        chunks_deleted AS (
            DELETE FROM import_chunks WHERE import_id IN (SELECT id FROM cancelled)),
        deleted AS (
            DELETE FROM imports WHERE id = (SELECT id FROM import WHERE state NOT IN ('queued', 'running', 'paused')))
        SELECT state FROM import
        """,
        user_id=user_id,
        import_id=import_id,
    )
    if record is None:
        raise not_found("import")
    return str(record["state"])
