"""Rows of imports: the file, those that wait, those that failed or were skipped, and those to which
others refer."""

from contextlib import suppress

import orjson
from psycopg2.errors import QueryCanceled

from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row, row, rows, run, run_one

CHUNK_BYTES = 1 << 20  # of the file
MAX_ERRORS = 10_000  # of an import that are kept
MAX_SKIPPED = 1000  # of an import that are kept as those that failed are
MAX_ERROR_BYTES = 16 << 20  # of all imports of a user
ERROR_DAYS = 30
_MAX_COLUMNS = 1000  # of the rows that failed; each row of JSON can have other ones
_MAX_BYTES = 1 << 20  # of waiting rows that are read at once
_CLEANED = 5000  # rows that one statement deletes


def add(user_id: int, import_id: int, added: list[Row]) -> None:
    run(
        """
        INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, content)
        SELECT %(user_id)s, %(import_id)s, number, place, file, name, lines, content
          FROM json_to_recordset(%(rows)s) AS added (
               number bigint, place smallint, file text, name text, lines integer, content text)
        """,
        user_id=user_id,
        import_id=import_id,
        rows=orjson.dumps(added).decode(),
    )


def add_chunk(user_id: int, import_id: int, number: int, content: str) -> None:
    row = {"number": -1 - number, "place": -1, "file": "", "name": "", "lines": 0, "content": content}
    add(user_id, import_id, [row])


def chunk(user_id: int, import_id: int, number: int) -> str:
    stored = row(
        """
        SELECT content FROM import_rows
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND number = -1 - %(number)s
        """,
        user_id=user_id,
        import_id=import_id,
        number=number,
    )
    return "" if stored is None else str(stored["content"])


def waiting(user_id: int, import_id: int, *, limit: int) -> list[Row]:
    """Return the next rows that wait: at most `limit` of the same place, with few more rows of the
    source."""
    return rows(
        """
        SELECT number, file, name, lines, content
          FROM (SELECT *, place = first_value(place) OVER following AS is_first,
                       sum(octet_length(content)) OVER following - octet_length(content) AS bytes_before,
                       sum(lines) OVER following - lines AS lines_before
                  FROM (SELECT number, file, name, lines, content, place
                          FROM import_rows
                         WHERE user_id = %(user_id)s AND import_id = %(import_id)s
                           AND content IS NOT NULL
                           AND place >= 0
                         ORDER BY place, number
                         LIMIT %(limit)s) next_rows
                WINDOW following AS (ORDER BY place, number)) numbered
         WHERE is_first AND bytes_before < %(max_bytes)s AND lines_before < %(limit)s
         ORDER BY number
        """,
        user_id=user_id,
        import_id=import_id,
        limit=limit,
        max_bytes=_MAX_BYTES,
    )


def finish(user_id: int, import_id: int, numbers: list[int], kept: list[Row]) -> None:
    """Delete the rows with these numbers, except what is kept of some: `row_id` and `made` of those
    to which others may refer, and `raw`, `code` and `message` of those that failed or were
    skipped."""
    run(
        """
        WITH deleted AS (
            DELETE FROM import_rows
             WHERE user_id = %(user_id)s AND import_id = %(import_id)s
               AND number = ANY (%(deleted)s::bigint[]))
        UPDATE import_rows r
           SET content = NULL, row_id = k.row_id, made = k.made, raw = k.raw, code = k.code,
               message = k.message
          FROM json_to_recordset(%(kept)s) AS k (
               number bigint, row_id bigint, made boolean, raw json, code text, message text)
         WHERE r.user_id = %(user_id)s AND r.import_id = %(import_id)s AND r.number = k.number
        """,
        user_id=user_id,
        import_id=import_id,
        deleted=[*{*numbers} - {row["number"] for row in kept}],
        kept=orjson.dumps(kept).decode(),
    )


def references(
    user_id: int,
    import_id: int,
    file: str,
    names: list[str],
    *,
    made: bool = False,
    also_waiting: bool = False,
) -> dict[str, int]:
    """Return the ids of stored rows by their names in the source: with `made`, only of those that
    the import made, and `also_waiting` those that have no id yet."""
    stored = rows(
        """
        SELECT DISTINCT ON (name) name, row_id
          FROM import_rows
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND file = %(file)s
           AND name = ANY (%(names)s::text[]) AND (row_id IS NOT NULL OR %(also_waiting)s)
           AND (made OR NOT %(made)s)
         ORDER BY name, number
        """,
        user_id=user_id,
        import_id=import_id,
        file=file,
        names=names,
        made=made,
        also_waiting=also_waiting,
    )
    return {row["name"]: row["row_id"] for row in stored}


def clear(user_id: int, import_id: int) -> bool:
    """Delete some rows of an import, except those that failed. Return True if there are no more."""
    result = run_one(
        """
        WITH deleted AS (
            DELETE FROM import_rows
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM import_rows
                                      WHERE import_id = %(import_id)s AND code IS NULL
                                      LIMIT %(limit)s))
               AND user_id = %(user_id)s
            RETURNING 1)
        SELECT count(*) AS deleted FROM deleted
        """,
        user_id=user_id,
        import_id=import_id,
        limit=_CLEANED,
    )
    return bool(result["deleted"] < _CLEANED)


def free_space() -> None:
    """Let new rows take the space of those that were deleted. Autovacuum would begin within a
    minute, in which imports write hundreds of megabytes."""
    with suppress(QueryCanceled):  # then autovacuum does it
        transaction.run_without("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) import_rows")


# --- rows that failed


def drop_old_errors(user_id: int, import_id: int) -> None:
    """Delete the failed rows of the user's oldest imports while those of all imports are larger
    than MAX_ERROR_BYTES, except those of this import."""
    run(
        """
        DELETE FROM import_rows
         WHERE user_id = %(user_id)s AND code IS NOT NULL AND import_id <> %(import_id)s
           AND import_id IN (
               SELECT id
                 FROM (SELECT id, sum(sum(octet_length(raw::text) + octet_length(r.message)))
                                  OVER (ORDER BY id = %(import_id)s DESC, id DESC) AS bytes
                         FROM imports i
                         JOIN import_rows r ON r.import_id = id AND code IS NOT NULL
                        WHERE i.user_id = %(user_id)s
                        GROUP BY id) newer
                WHERE bytes > %(max_bytes)s)
        """,
        user_id=user_id,
        import_id=import_id,
        max_bytes=MAX_ERROR_BYTES,
    )


def delete_expired(limit: int) -> int:
    """Delete some failed rows of imports that ended ERROR_DAYS ago, and return their number. The
    LIMIT inside makes PostgreSQL look them up by import: others have many more."""
    deleted = run_one(
        """
        WITH deleted AS (
            DELETE FROM import_rows
             WHERE ctid = ANY (ARRAY(SELECT expired.ctid
                                       FROM imports i,
                                            LATERAL (SELECT ctid FROM import_rows
                                                      WHERE import_id = i.id AND code IS NOT NULL
                                                      LIMIT %(limit)s) expired
                                      WHERE finished < now() - make_interval(days => %(days)s)
                                        AND failed + skipped > 0
                                      LIMIT %(limit)s))
            RETURNING 1)
        SELECT count(*) AS number FROM deleted
        """,
        days=ERROR_DAYS,
        limit=limit,
    )
    return int(deleted["number"])


def errors(user_id: int, import_id: int, *, after: int, limit: int) -> list[Row]:
    return rows(
        """
        SELECT number, raw, code, message
          FROM import_rows
         WHERE user_id = %(user_id)s AND import_id = %(import_id)s AND number > %(after)s
           AND code IS NOT NULL
         ORDER BY number
         LIMIT %(limit)s
        """,
        user_id=user_id,
        import_id=import_id,
        after=after,
        limit=limit,
    )


def error_columns(user_id: int, import_id: int) -> list[str]:
    columns = rows(
        """
        SELECT name
          FROM (SELECT raw FROM import_rows
                 WHERE user_id = %(user_id)s AND import_id = %(import_id)s
                   AND code IS NOT NULL) failed,
               json_object_keys(raw) WITH ORDINALITY AS columns (name, place)
         GROUP BY name
         ORDER BY min(place), name
         LIMIT %(limit)s
        """,
        user_id=user_id,
        import_id=import_id,
        limit=_MAX_COLUMNS,
    )
    return [column["name"] for column in columns]
