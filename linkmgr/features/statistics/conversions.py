"""Conversions among the figures of statistics."""

from typing import Any

from linkmgr.core.database.statements import Row, rows
from linkmgr.features.statistics.query import OF_CONVERSIONS, Query
from linkmgr.features.statistics.selection import Owner


def with_conversions(
    counted: list[Row], owner: Owner, query: Query, *, limit: int, **params: Any
) -> list[Row]:
    """Add the conversions to the counted clicks of the same bucket and labels. Labels without
    clicks follow if there is room."""
    first, second = [*query.dimensions, "", ""][:2]
    label_filter = query.filters.get(OF_CONVERSIONS)
    params |= {
        "included": label_filter and label_filter.included,
        "excluded": label_filter and label_filter.excluded,
    }
    rows = {(row["bucket"], row["a"], row["b"]): row for row in counted}
    labels = {key[1:] for key in rows}
    for row in _count(owner, a=first, b=second, **params):
        key = row["bucket"], row["a"], row["b"]
        if key[1:] in labels or len(labels) <= limit:  # of which one is that of the totals
            labels.add(key[1:])
            rows[key] = rows.get(key, {}) | row
    return list(rows.values())


def _count(owner: Owner, **query: Any) -> list[Row]:
    """Count the conversions and their value, by at most two of: the variant, and dimensions of
    rows."""
    return rows(
        """
        WITH counted AS MATERIALIZED (
            SELECT tracked_id, variant, width_bucket(at, %(edges)s::timestamptz[]) AS bucket,
                   count(*) AS conversions, sum(value) AS value
              FROM (SELECT stored.*
                      FROM owners(%(user_id)s, %(everyone)s) AS owner,
                           LATERAL (SELECT * FROM conversions
                                     WHERE user_id = owner
                                       AND at >= %(since)s::timestamptz
                                       AND at < %(until)s::timestamptz) stored
                     WHERE %(tracked_ids)s::text IS NULL
                     UNION ALL
                    SELECT stored.*
                      FROM unnest(%(tracked_ids)s::bigint[]) AS tracked (id),
                           LATERAL (SELECT * FROM conversions
                                     WHERE tracked_id = tracked.id AND user_id = %(user_id)s
                                       AND at >= %(since)s::timestamptz
                                       AND at < %(until)s::timestamptz) stored) found
             WHERE (%(included)s::text[] IS NULL OR lower(variant) = ANY (%(included)s::text[]))
               AND (%(excluded)s::text[] IS NULL OR lower(variant) <> ALL (%(excluded)s::text[]))
             GROUP BY 1, 2, 3),
        tracked AS (
            SELECT ARRAY(SELECT DISTINCT tracked_id FROM counted) AS ids,
                   CASE WHEN NOT %(everyone)s THEN %(user_id)s::bigint END AS owner)
        SELECT bucket,
               CASE %(a)s WHEN '' THEN '' WHEN 'variant' THEN variant WHEN 'target'
                      THEN counted.tracked_id::text
                          ELSE coalesce(of_a.label, '-') END AS a,
               CASE %(b)s WHEN '' THEN '' WHEN 'variant' THEN variant WHEN 'target'
                      THEN counted.tracked_id::text
                          ELSE coalesce(of_b.label, '-') END AS b,
               sum(conversions)::bigint AS conversions, sum(value)::float8 AS value
          FROM tracked
         CROSS JOIN counted
          LEFT JOIN LATERAL tracked_labels(owner, ids, %(a)s) of_a
            ON of_a.tracked_id = counted.tracked_id
          LEFT JOIN LATERAL tracked_labels(owner, ids, %(b)s) of_b
            ON of_b.tracked_id = counted.tracked_id
         GROUP BY 1, 2, 3
         UNION ALL
        SELECT NULL, NULL, NULL, coalesce(sum(conversions), 0)::bigint,
               coalesce(sum(value), 0)::float8
          FROM counted
        """,
        **owner._asdict(),
        **query,
    )
