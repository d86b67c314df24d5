"""Imports: their state, their files and the rows that failed."""

from typing import Any, Unpack

import orjson
import psycopg2

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.web.errors import AppError, not_found

CHUNK_BYTES = 1 << 20
MAX_ERRORS = 10_000
MAX_UNFINISHED = 3  # of a user
_CLEANED = 5000  # references that one statement deletes


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, state, source, name, on_conflict, size, rows_read AS read, made, updated, skipped, failed, visits,
               CASE WHEN state = 'running' AND bytes_read > 0
                    THEN ceil(extract(epoch FROM now() - started) * (size - bytes_read) / bytes_read)::bigint END
                   AS seconds_left,
               message, created, started, finished
          FROM imports
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'imports'",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, import_id: int) -> Row:
    record = row(
        """
        SELECT id, state, source, name, on_conflict, size, rows_read AS read, made, updated, skipped, failed, visits,
               CASE WHEN state = 'running' AND bytes_read > 0
                    THEN ceil(extract(epoch FROM now() - started) * (size - bytes_read) / bytes_read)::bigint END
                   AS seconds_left,
               message, created, started, finished
          FROM imports
         WHERE user_id = %(user_id)s AND id = %(import_id)s
        """,
        user_id=user_id,
        import_id=import_id,
    )
    if record is None:
        raise not_found("import")
    return record


# --- creation, in a transaction


def add(user_id: int, *, state: str, source: str, on_conflict: str, **members: Any) -> int:
    """Store an import and return its id. The user's row is locked, so that concurrent requests count each other's."""
    run("SELECT FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE", user_id=user_id)
    values = {"name": "", "mapping": {}, "address": "", "token": None, "size": None} | members
    added = run(
        """
        INSERT INTO imports (user_id, state, source, on_conflict, name, mapping, address, token, size)
        SELECT %(user_id)s, %(state)s, %(source)s, %(on_conflict)s, %(name)s, %(mapping)s::jsonb, %(address)s,
               %(token)s, %(size)s::bigint
         WHERE (SELECT count(*) FROM imports
                 WHERE user_id = %(user_id)s AND state IN ('queued', 'running')) < %(max_unfinished)s
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


def begin(user_id: int, import_id: int, *, on_conflict: str) -> None:
    """Begin a draft with this rule."""
    begun = run(
        """
        WITH begun AS (
            UPDATE imports SET state = 'queued', on_conflict = %(on_conflict)s
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND state = 'draft'
            RETURNING user_id, id)
        INSERT INTO jobs (kind, argument)
        SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id) FROM begun
        RETURNING id
        """,
        user_id=user_id,
        import_id=import_id,
        on_conflict=on_conflict,
    )
    if begun is None:
        raise not_found("import")


# --- the job


def details(user_id: int, import_id: int) -> Row | None:
    """Return what the job needs to continue, or None if there is no such import."""
    return row(
        """
        SELECT state, source, on_conflict, mapping, address, token, size, position, batch, pending, visits, rows_read,
               failed
          FROM imports
         WHERE user_id = %(user_id)s AND id = %(import_id)s
        """,
        user_id=user_id,
        import_id=import_id,
    )


def chunk(user_id: int, import_id: int, number: int) -> bytes:
    record = row(
        """
        SELECT data FROM import_chunks
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND number = %(number)s
        """,
        user_id=user_id,
        import_id=import_id,
        number=number,
    )
    return b"" if record is None else bytes(record["data"])


def lock_batch(user_id: int, import_id: int, batch: int) -> bool:
    """Lock the import until the transaction ends. Return False if it has ended, or if another process has stored the
    batch with this number."""
    locked = run(
        """
        SELECT 1
          FROM imports
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s AND state IN ('queued', 'running')
           FOR NO KEY UPDATE
        """,
        user_id=user_id,
        import_id=import_id,
        batch=batch,
    )
    return locked is not None


def save_batch(user_id: int, import_id: int, *, position: Any, pending: list[Row], **counts: int) -> None:
    """Count a batch and move the position behind it."""
    run(
        """
        UPDATE imports
           SET state = 'running', started = coalesce(started, now()), batch = batch + 1,
               position = coalesce(%(position)s::jsonb, position), pending = %(pending)s::jsonb,
               bytes_read = greatest(bytes_read, %(bytes_read)s), rows_read = rows_read + %(read)s,
               made = made + %(made)s, updated = updated + %(updated)s, skipped = skipped + %(skipped)s,
               failed = failed + %(failed)s
         WHERE user_id = %(user_id)s AND id = %(import_id)s
        """,
        user_id=user_id,
        import_id=import_id,
        position=None if position is None else orjson.dumps(position).decode(),
        pending=orjson.dumps(pending).decode() if pending else None,
        **counts,
    )


def add_errors(user_id: int, import_id: int, errors: list[Row]) -> None:
    """Store rows that failed, while there are fewer than MAX_ERRORS."""
    run(
        """
        INSERT INTO import_errors (user_id, import_id, number, raw, code, message)
        SELECT %(user_id)s, %(import_id)s, number, raw, code, message
          FROM json_to_recordset(%(errors)s) AS errors (number bigint, raw json, code text, message text)
         WHERE (SELECT failed FROM imports WHERE user_id = %(user_id)s AND id = %(import_id)s) < %(max_errors)s
        ON CONFLICT DO NOTHING
        """,
        user_id=user_id,
        import_id=import_id,
        errors=orjson.dumps(errors).decode(),
        max_errors=MAX_ERRORS,
    )


def add_references(user_id: int, import_id: int, kind: str, ids: dict[str, int]) -> None:
    run(
        """
        INSERT INTO import_references (user_id, import_id, kind, name, row_id)
        SELECT %(user_id)s, %(import_id)s, %(kind)s, name, row_id
          FROM unnest(%(names)s::text[], %(ids)s::bigint[]) AS made (name, row_id)
        ON CONFLICT DO NOTHING
        """,
        user_id=user_id,
        import_id=import_id,
        kind=kind,
        names=[*ids],
        ids=[*ids.values()],
    )


def references(user_id: int, import_id: int, kind: str, names: list[str]) -> dict[str, int]:
    """Return the ids of the rows that the import has made, by their names in the source."""
    found = rows(
        """
        SELECT name, row_id
          FROM import_references
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND kind = %(kind)s
           AND name = ANY (%(names)s::text[])
        """,
        user_id=user_id,
        import_id=import_id,
        kind=kind,
        names=names,
    )
    return {record["name"]: record["row_id"] for record in found}


def save_visits(user_id: int, import_id: int, number: int) -> None:
    """Count the pending visits, which have been stored."""
    run(
        """
        UPDATE imports SET visits = visits + %(number)s, pending = NULL
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND pending IS NOT NULL
        """,
        user_id=user_id,
        import_id=import_id,
        number=number,
    )


def end(user_id: int, import_id: int, state: str, message: str = "") -> None:
    """Change the state of an import that has not ended. Delete its file and its token."""
    run(
        """
        WITH ended AS (
            UPDATE imports
               SET state = %(state)s, message = %(message)s, started = coalesce(started, now()), finished = now(),
                   token = NULL, pending = NULL
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND state IN ('draft', 'queued', 'running')
            RETURNING id)
        DELETE FROM import_chunks WHERE user_id = %(user_id)s AND import_id IN (SELECT id FROM ended)
        """,
        user_id=user_id,
        import_id=import_id,
        state=state,
        message=message,
    )


def delete_references(user_id: int, import_id: int) -> bool:
    """Delete some of the references of an import. Return True if there are no more."""
    result = run(
        """
        WITH deleted AS (
            DELETE FROM import_references
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM import_references
                                      WHERE user_id = %(user_id)s AND import_id = %(import_id)s LIMIT %(limit)s))
            RETURNING 1)
        SELECT count(*) AS deleted FROM deleted
        """,
        user_id=user_id,
        import_id=import_id,
        limit=_CLEANED,
    )
    return result is None or result["deleted"] < _CLEANED


# --- cancellation and errors


def delete(user_id: int, import_id: int) -> str:
    """Cancel an import, or delete the record of one that has ended. Return the state that it had."""
    record = run(
        """
        WITH found AS (
            SELECT id, state FROM imports WHERE user_id = %(user_id)s AND id = %(import_id)s FOR UPDATE),
        cancelled AS (
            UPDATE imports
               SET state = 'cancelled', started = coalesce(started, now()), finished = now(), token = NULL,
                   pending = NULL
             WHERE id = (SELECT id FROM found WHERE state IN ('queued', 'running'))
            RETURNING user_id, id),
        cleaned AS (
            INSERT INTO jobs (kind, argument)
            SELECT 'import', jsonb_build_object('user_id', user_id, 'import_id', id) FROM cancelled),
        chunks_deleted AS (
            DELETE FROM import_chunks WHERE import_id IN (SELECT id FROM cancelled)),
        deleted AS (
            DELETE FROM imports WHERE id = (SELECT id FROM found WHERE state NOT IN ('queued', 'running')))
        SELECT state FROM found
        """,
        user_id=user_id,
        import_id=import_id,
    )
    if record is None:
        raise not_found("import")
    return str(record["state"])


def errors(user_id: int, import_id: int, *, after: int, limit: int) -> list[Row]:
    """Return the next rows that failed, in the order of the source."""
    return rows(
        """
        SELECT number, raw, code, message
          FROM import_errors
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND number > %(after)s
         ORDER BY number
         LIMIT %(limit)s
        """,
        user_id=user_id,
        import_id=import_id,
        after=after,
        limit=limit,
    )


def error_columns(user_id: int, import_id: int) -> list[str]:
    """Return the columns of the rows that failed, in the order of the source."""
    columns = rows(
        """
        SELECT name
          FROM import_errors, json_object_keys(raw) WITH ORDINALITY AS columns (name, place)
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s
         GROUP BY name
         ORDER BY min(place), name
        """,
        user_id=user_id,
        import_id=import_id,
    )
    return [column["name"] for column in columns]
