"""Conversions: visitors of a link who reached an aim on the page of its target."""

from collections.abc import Iterator
from typing import Any

import orjson

from linkmgr.db.statements import Row, rows, run, run_unsynced
from linkmgr.fields.dimensions import OTHER
from linkmgr.repository.tables import BATCH

DAYS = 30  # after the last visit
MAX_NAME, MAX_NAMES = 50, 20  # characters; different names of a link, beyond which they are OTHER
MAX_VALUE = 1_000_000_000


def add(link_id: int, visitor: str, *, user_id: int | None = None, name: str, value: float) -> Row:
    """Count a visitor, once for a link, who came by it in the last days. Return `counted`, and `exists` of the link,
    which with `user_id` must be of this user. Then the row is on disk."""
    write = run_unsynced if user_id is None else run
    result = write(
        """
        WITH RECURSIVE link AS (
            SELECT id, user_id FROM links WHERE id = %(link_id)s AND user_id = coalesce(%(user_id)s::bigint, user_id)),
        names AS (
            (SELECT name FROM conversions WHERE tracked_id = %(link_id)s ORDER BY name LIMIT 1)
             UNION ALL
            SELECT (SELECT c.name FROM conversions c
                     WHERE c.tracked_id = %(link_id)s AND c.name > names.name
                     ORDER BY c.name LIMIT 1)
              FROM names
             WHERE names.name IS NOT NULL),
        added AS (
            INSERT INTO conversions (tracked_id, visitor, user_id, variant, name, value)
            SELECT tracked_id, visitor, user_id, coalesce(variant, 'Unknown'),
                   CASE WHEN %(name)s::text IN (SELECT name FROM names)
                          OR (SELECT count(name) FROM names) < %(max_names)s::integer THEN %(name)s ELSE %(other)s END,
                   %(value)s::numeric
              FROM link
              JOIN visitors ON tracked_id = id
             WHERE visitor = decode(%(visitor)s, 'hex') AND seen >= timezone('UTC', now())::date - %(days)s::integer
            ON CONFLICT DO NOTHING
            RETURNING 1)
        SELECT EXISTS (SELECT FROM link) AS exists, EXISTS (SELECT FROM added) AS counted
        """,
        link_id=link_id,
        visitor=visitor,
        user_id=user_id,
        name=name,
        value=value,
        max_names=MAX_NAMES,
        other=OTHER,
        days=DAYS,
    )
    assert result
    return result


def of_link(user_id: int, link_id: int) -> list[Row]:
    """Return the visits, visitors, conversions and their value of each variant of a link, and last of all together,
    without a name."""
    return rows(
        """
        WITH link AS (
            SELECT id, variants FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s),
        figures AS MATERIALIZED (
            SELECT variant, count(*) AS conversions, sum(value) AS value
              FROM conversions
             WHERE tracked_id = (SELECT id FROM link)
             GROUP BY variant)
        SELECT v.*, coalesce(CASE WHEN name IS NULL THEN r.visits
                                  ELSE (labels -> 'variant' ->> name)::bigint END, 0) AS visits,
               coalesce(CASE WHEN name IS NULL THEN t.visitors
                             ELSE (variant_visitors -> 'variant' ->> name)::bigint END, 0) AS visitors,
               conversions, value
          FROM link
         CROSS JOIN LATERAL (SELECT * FROM jsonb_to_recordset(variants) AS variant (name text, url text, weight integer)
                              UNION ALL
                             SELECT NULL, NULL, NULL) v
         CROSS JOIN LATERAL (SELECT coalesce(sum(conversions), 0)::bigint AS conversions,
                                    coalesce(sum(value), 0)::float8 AS value
                               FROM figures
                              WHERE name IS NULL OR variant = name) sums
          LEFT JOIN totals t ON t.tracked_id = id
          LEFT JOIN tracked_rollups r ON r.tracked_id = id AND unit = 'all' AND NOT bot
        """,
        user_id=user_id,
        link_id=link_id,
    )


def exported(user_id: int) -> Iterator[list[Row]]:
    place: Row = {"time": "-infinity", "target": 0, "visitor": ""}
    while stored := _after(user_id, **place):
        place = {name: stored[-1][name] for name in place}
        yield stored


def _after(user_id: int, **place: Any) -> list[Row]:
    return rows(
        """
        SELECT tracked_id AS target, to_char(at, 'YYYY-MM-DD HH24:MI:SS.US') AS time, encode(visitor, 'hex') AS visitor,
               variant, name, value::float8
          FROM conversions
         WHERE user_id = %(user_id)s AND at >= %(time)s::timestamptz
           AND (at, tracked_id, visitor)
               > (%(time)s::timestamptz, %(target)s::bigint, decode(%(visitor)s::text, 'hex'))
         ORDER BY at, tracked_id, visitor
         LIMIT %(limit)s
        """,
        user_id=user_id,
        limit=BATCH,
        **place,
    )


def restore(user_id: int, sent: list[Row]) -> None:
    """Store conversions of an exported account: of visitors of links that the user has, and at most MAX_NAMES names."""
    run(
        """
        INSERT INTO conversions (tracked_id, visitor, user_id, at, variant, name, value)
        SELECT target, v.visitor, user_id, least(to_timestamp(at), now()), sent.variant,
               CASE WHEN rank + (SELECT count(DISTINCT c.name) FROM conversions c WHERE c.tracked_id = target)
                         <= %(max_names)s::integer
                      OR sent.name IN (SELECT c.name FROM conversions c WHERE c.tracked_id = target)
                    THEN sent.name ELSE %(other)s END, value
          FROM (SELECT *, decode(visitor, 'hex') AS digest,
                       dense_rank() OVER (PARTITION BY target ORDER BY name) AS rank
                  FROM json_to_recordset(%(sent)s) AS sent (target bigint, visitor text, at float8, variant text,
                                                            name text, value numeric)) sent
          JOIN links ON user_id = %(user_id)s AND id = target
          JOIN visitors v ON v.tracked_id = target AND v.visitor = digest
        ON CONFLICT DO NOTHING
        """,
        user_id=user_id,
        sent=orjson.dumps(sent).decode(),
        max_names=MAX_NAMES,
        other=OTHER,
    )
