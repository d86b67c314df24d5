"""Conversions: visitors of a link who reached an aim on the page of its target."""

from collections.abc import Iterator

import orjson

from linkmgr.core.database.statements import Row, rows, run, run_unsynced
from linkmgr.core.database.tables import BATCH
from linkmgr.visits.dimensions import OTHER, UNKNOWN

DAYS = 30  # after the last visit
MAX_NAME, MAX_NAMES = 50, 20  # characters; different names of a link, beyond which they are OTHER
MAX_VALUE = 1_000_000_000


def add(user_id: int | None, sent: list[Row], days: int | None = None) -> Row:
    """Count visitors who came by a link, in the last `days` if given, each once for a link, which
    with `user_id` must be of this user. Return `counted`, and `exists` of a link. With `user_id`,
    the rows are then on disk.

    Each of `sent` has `target`, `visitor`, `name` and `value`, and may have `at` (seconds since the
    epoch) and `variant`. Of the variants, only those that a visitor of the link got are counted by
    name.
    """
    write = run_unsynced if user_id is None else run
    result = write(
        """
        WITH found AS (
            SELECT target, user_id, v.visitor, least(to_timestamp(at), now()) AS at, sent.name,
                   value, coalesce(sent.variant, v.variant) AS variant,
                   variant_visitors -> 'variant' AS variants,
                   coalesce(conversions -> 'name', '{}') AS names
              FROM json_to_recordset(%(sent)s) AS sent (target bigint, visitor text, at float8,
                                                        variant text, name text, value numeric)
              JOIN links ON id = target AND user_id = coalesce(%(user_id)s::bigint, user_id)
              LEFT JOIN totals t ON t.tracked_id = target
              LEFT JOIN visitors v ON v.tracked_id = target
               AND v.visitor = decode(sent.visitor, 'hex')
                                  AND seen >=
                                      coalesce(timezone('UTC', now())::date - %(days)s::integer,
                                               '-infinity')),
        added AS (
            INSERT INTO conversions (tracked_id, visitor, user_id, at, variant, name, value)
            SELECT target, visitor, user_id,
                   at, CASE WHEN variants ? variant THEN variant ELSE %(unknown)s END,
                   CASE WHEN names ? name
                          OR dense_rank() OVER (PARTITION BY target, names ? name ORDER BY name)
                             + (SELECT count(*) FROM jsonb_object_keys(names)) <= %(max_names)s
                        THEN name ELSE %(other)s END,
                   value
              FROM found
             WHERE visitor IS NOT NULL
            ON CONFLICT DO NOTHING
            RETURNING tracked_id, variant, name, value),
        counted AS (
            INSERT INTO totals AS t (tracked_id, clicks, visitors, conversions)
            SELECT tracked_id, 0, 0, sum_labels(jsonb_build_object(
                       'conversions', jsonb_build_object(variant, 1), 'name',
                       jsonb_build_object(name, 1),
                       'value', jsonb_build_object(variant, (value * 100)::bigint)))
              FROM added
             GROUP BY tracked_id
             ORDER BY tracked_id
            ON CONFLICT (tracked_id) DO UPDATE
               SET conversions = add_labels(coalesce(t.conversions, '{}'), excluded.conversions))
        SELECT EXISTS (SELECT FROM found) AS exists, EXISTS (SELECT FROM added) AS counted
        """,
        user_id=user_id,
        sent=orjson.dumps(sent).decode(),
        max_names=MAX_NAMES,
        other=OTHER,
        unknown=UNKNOWN,
        days=days,
    )
    assert result
    return result


def exported(user_id: int) -> Iterator[list[Row]]:
    """Read the conversions of links that are exported too: not of those in the bin."""
    place: Row = {"time": "-infinity", "target": 0, "visitor": ""}
    while stored := rows(
        """
        SELECT tracked_id AS target, to_char(at, 'YYYY-MM-DD HH24:MI:SS.US') AS time,
               encode(visitor, 'hex') AS visitor, variant, name, value::float8
          FROM conversions
         WHERE user_id = %(user_id)s AND at >= %(time)s::timestamptz
           AND EXISTS (SELECT FROM links WHERE links.user_id = %(user_id)s
                          AND links.id = tracked_id)
           AND (at, tracked_id, visitor)
               > (%(time)s::timestamptz, %(target)s::bigint, decode(%(visitor)s::text, 'hex'))
         ORDER BY at, tracked_id, visitor
         LIMIT %(limit)s
        """,
        user_id=user_id,
        limit=BATCH,
        **place,
    ):
        place = {name: stored[-1][name] for name in place}
        yield stored
