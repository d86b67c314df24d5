"""The job of an import: its stage, its position and its counts."""

from typing import Any

import orjson

from linkmgr.db.statements import Row, row, run


def details(user_id: int, import_id: int) -> Row | None:
    """Return what the job needs to continue, or None if there is no such import or no such user any more."""
    return row(
        """
        SELECT id, state, stage, source, on_conflict, mapping, address, token, size, cursor, batch, found,
               waiting_bytes, failures, problem, missing, cut, visits, rows_read, bytes_read, failed, first_id
          FROM imports
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND EXISTS (SELECT FROM users WHERE id = %(user_id)s)
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


def restart(user_id: int, import_id: int, batch: int) -> None:
    """Read the file from its start. Its rows have been deleted."""
    run(
        """
        UPDATE imports SET batch = batch + 1, found = 0, waiting_bytes = 0, bytes_read = 0
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s
        """,
        user_id=user_id,
        import_id=import_id,
        batch=batch,
    )


def save_read(user_id: int, import_id: int, *, cursor: Any, is_last: bool, problem: str = "", **numbers: int) -> None:
    """Count rows that were read. With the last ones, delete the file and the token."""
    run(
        """
        WITH saved AS (
            UPDATE imports
               SET state = 'running', started = coalesce(started, now()), batch = batch + 1, failures = 0,
                   failing_since = NULL, cursor = %(cursor)s::jsonb, found = found + %(found)s,
                   waiting_bytes = waiting_bytes + %(bytes)s, bytes_read = greatest(bytes_read, %(bytes_read)s),
                   missing = %(missing)s, problem = %(problem)s,
                   stage = CASE WHEN %(is_last)s THEN 'store' ELSE 'read' END,
                   token = CASE WHEN NOT %(is_last)s THEN token END
             WHERE user_id = %(user_id)s AND id = %(import_id)s)
        DELETE FROM import_chunks WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND %(is_last)s
        """,
        user_id=user_id,
        import_id=import_id,
        cursor=None if cursor is None else orjson.dumps(cursor).decode(),
        is_last=is_last,
        problem=problem,
        **numbers,
    )


def save_failure(user_id: int, import_id: int, batch: int, *, failures: int) -> float:
    """Count requests that the service did not answer. Return the hours in which it has not answered any."""
    record = run(
        """
        UPDATE imports SET failures = failures + %(failures)s, failing_since = coalesce(failing_since, now())
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s AND state IN ('queued', 'running')
        RETURNING (extract(epoch FROM now() - failing_since) / 3600)::float8 AS hours
        """,
        user_id=user_id,
        import_id=import_id,
        batch=batch,
        failures=failures,
    )
    return float(record["hours"]) if record else 0


def pause(user_id: int, import_id: int, batch: int, message: str) -> None:
    """Let the import wait until the user continues it."""
    run(
        """
        UPDATE imports SET state = 'paused', failures = 0, failing_since = NULL, message = %(message)s
         WHERE user_id = %(user_id)s AND id = %(import_id)s AND batch = %(batch)s AND state IN ('queued', 'running')
        """,
        user_id=user_id,
        import_id=import_id,
        batch=batch,
        message=message,
    )


def save_stored(user_id: int, import_id: int, **counts: int) -> None:
    """Count rows that were stored."""
    run(
        """
        UPDATE imports
           SET state = 'running', started = coalesce(started, now()), batch = batch + 1,
               rows_read = rows_read + %(read)s, made = made + %(made)s, updated = updated + %(updated)s,
               skipped = skipped + %(skipped)s, failed = failed + %(failed)s, cut = cut + %(cut)s,
               error_bytes = error_bytes + %(error_bytes)s, visits = visits + %(visits)s,
               visits_refused = visits_refused + %(refused)s
         WHERE user_id = %(user_id)s AND id = %(import_id)s
        """,
        user_id=user_id,
        import_id=import_id,
        **counts,
    )


def end(user_id: int, import_id: int, batch: int, state: str, message: str = "") -> None:
    """Change the state of an import that has not ended, unless another process has stored the batch with this number.
    Delete its file and its token."""
    run(
        """
        WITH ended AS (
            UPDATE imports
               SET state = %(state)s, message = %(message)s, started = coalesce(started, now()), finished = now(),
                   token = NULL
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
