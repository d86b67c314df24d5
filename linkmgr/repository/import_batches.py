"""Batches of imports: the position, the counts, the rows that failed and the references between rows."""

from typing import Any

import orjson

from linkmgr.db.statements import Row, row, rows, run

MAX_ERRORS = 10_000
_CLEANED = 5000  # references that one statement deletes


def progress(user_id: int, import_id: int) -> Row:
    """Return the numbers of rows and bytes that were read."""
    record = row(
        """
        SELECT rows_read AS read, bytes_read FROM imports WHERE user_id = %(user_id)s AND id = %(import_id)s
        """,
        user_id=user_id,
        import_id=import_id,
    )
    return record or {"read": 0, "bytes_read": 0}


def details(user_id: int, import_id: int) -> Row | None:
    """Return what the job needs to continue, or None if there is no such import."""
    return row(
        """
        SELECT state, source, on_conflict, mapping, address, token, size, position, batch, pending, visits, rows_read,
               failed, first_id
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
    records = rows(
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
    return {record["name"]: record["row_id"] for record in records}


def save_visits(user_id: int, import_id: int, batch: int, number: int) -> None:
    """Count the pending visits of a batch, which have been stored. Another process may have done so already."""
    run(
        """
        UPDATE imports SET visits = visits + %(number)s, pending = NULL
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s AND pending IS NOT NULL
        """,
        user_id=user_id,
        import_id=import_id,
        batch=batch,
        number=number,
    )


def end(user_id: int, import_id: int, batch: int, state: str, message: str = "") -> None:
    """Change the state of an import that has not ended, unless another process has stored the batch with this number.
    Delete its file and its token."""
    run(
        """
        WITH ended AS (
            UPDATE imports
               SET state = %(state)s, message = %(message)s, started = coalesce(started, now()), finished = now(),
                   token = NULL, pending = NULL,
                   bytes_read = CASE %(state)s WHEN 'done' THEN coalesce(size, bytes_read) ELSE bytes_read END
             WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s
               AND state IN ('queued', 'running')
            RETURNING id)
        DELETE FROM import_chunks WHERE user_id = %(user_id)s AND import_id IN (SELECT id FROM ended)
        """,
        user_id=user_id,
        import_id=import_id,
        batch=batch,
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


def count_refused(user_id: int, import_id: int, number: int) -> None:
    """Count pending visits that are beyond the clicks of the plan."""
    run(
        """
        UPDATE imports SET visits_refused = visits_refused + %(number)s
         WHERE user_id = %(user_id)s AND id = %(import_id)s
        """,
        user_id=user_id,
        import_id=import_id,
        number=number,
    )
