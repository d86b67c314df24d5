"""Statistics over time: clicks from the rollups, and clicks and visitors from the visits.

Those that count clicks return the same columns: a row per bucket and labels, for the labels with
the most clicks, and one row without a bucket, which has the totals and in `labels` the number of
different labels. Buckets are numbered from 1. `edges` are their starts, `cuts` those that divide
UTC days, and `split` these days (periods.py). `tracked_ids` is an array of ids as text, as
selection.py returns it after it has checked their owner, or None for all links and QR codes, also
deleted ones. With `everyone`, the rows of all users are counted. Totals are without the buckets
before the number `first`, which are those of the time before. A link or QR code without a label in
a dimension of rows has the label '-'. The rollups do not store the label 'Unknown', which is what
the other labels of a bucket leave of all its clicks. The sums are `by_label` unless a dimension is
only in a filter, or its labels are `joined`.
"""

from typing import Any

from linkmgr.core.database.statements import Row, replica_rows, rows
from linkmgr.features.statistics.selection import Owner
from linkmgr.visits.dimensions import UNKNOWN


def unlabeled(owner: Owner, *, tracked_ids: str | None, first: int, **query: Any) -> list[Row]:
    """Count the clicks of the rollups without labels. This takes less than half of the time of
    `of_rollups`, because PostgreSQL sets up each part of a statement, executed or not."""
    if tracked_ids is None:
        counted = _unlabeled_of_account(owner, **query)
    else:
        counted = _unlabeled_of_tracked(tracked_ids, **query)
    total = sum(row["clicks"] for row in counted if row["bucket"] >= first)
    return [*counted, {"bucket": None, "a": None, "b": None, "clicks": total, "visitors": None, "labels": 0}]


def _unlabeled_of_account(owner: Owner, **query: Any) -> list[Row]:
    return replica_rows(
        """
        SELECT width_bucket(at, %(edges)s::timestamptz[]) AS bucket, '' AS a, '' AS b,
               sum(visits)::bigint AS clicks
          FROM owners(%(user_id)s, %(everyone)s) AS owner,
               account_counts(owner, '{""}', %(since)s, %(until)s, %(cuts)s, %(bots)s)
         GROUP BY 1
        """,
        **owner._asdict(),
        **query,
    )


def _unlabeled_of_tracked(tracked_ids: str, **query: Any) -> list[Row]:
    return replica_rows(
        """
        SELECT width_bucket(at, %(edges)s::timestamptz[]) AS bucket, '' AS a, '' AS b,
               sum(visits)::bigint AS clicks
          FROM tracked_counts(%(tracked_ids)s::bigint[], '{""}', %(since)s, %(until)s, %(split)s,
                              %(bots)s)
         GROUP BY 1
        """,
        tracked_ids=tracked_ids,
        **query,
    )


def of_rollups(owner: Owner, **query: Any) -> list[Row]:
    return replica_rows(
        """
        WITH stored AS MATERIALIZED (
            SELECT width_bucket(at, %(edges)s::timestamptz[]) AS bucket, is_total, label,
                   sum(visits)::bigint AS clicks
              FROM (SELECT at, dimension = '' AS is_total, label, visits
                      FROM owners(%(user_id)s, %(everyone)s) AS owner,
                           account_counts(owner, %(dimensions)s, %(since)s, %(until)s, %(cuts)s,
                                          %(bots)s)
                     WHERE %(tracked_ids)s::text IS NULL
                     UNION ALL
                    SELECT at, dimension = '' AND NOT %(by_tracked)s,
                           CASE WHEN %(by_tracked)s THEN tracked_id::text ELSE label END, visits
                      FROM tracked_counts(%(tracked_ids)s::bigint[],
                                          CASE WHEN %(by_tracked)s THEN '{""}'
                                               ELSE %(dimensions)s::text[] END,
                                          %(since)s, %(until)s, %(split)s, %(bots)s)) rollups
             GROUP BY 1, 2, 3),
        counted AS MATERIALIZED (
            SELECT bucket, label COLLATE "C" AS label, clicks
              FROM (SELECT bucket, label, clicks FROM stored WHERE NOT is_total
                     UNION ALL
                    SELECT bucket, %(unknown)s, sum(CASE WHEN is_total THEN clicks ELSE -clicks END)
                      FROM stored
                     GROUP BY bucket
                    HAVING sum(CASE WHEN is_total THEN clicks ELSE -clicks END) > 0) complete
             WHERE (%(included)s::text[] IS NULL OR lower(label) = ANY (%(included)s::text[]))
               AND (%(excluded)s::text[] IS NULL OR lower(label) <> ALL (%(excluded)s::text[]))),
        counts AS MATERIALIZED (
            SELECT bucket, label AS a, clicks FROM counted WHERE %(by_label)s
             UNION ALL
            SELECT bucket,
                   coalesce(l.label, CASE WHEN %(joined)s::text IS NULL THEN ''
                                          ELSE '-' END) COLLATE "C",
                   sum(clicks)
              FROM counted
              LEFT JOIN tracked_labels(CASE WHEN NOT %(everyone)s THEN %(user_id)s::bigint END,
                                       ARRAY(SELECT DISTINCT label::bigint FROM counted
                                              WHERE %(joined)s::text IS NOT NULL), %(joined)s) l
                     ON l.tracked_id::text = counted.label
             WHERE NOT %(by_label)s
             GROUP BY 1, 2),
        labels AS (SELECT a, sum(clicks) AS clicks FROM counts GROUP BY a)
        SELECT bucket, a, '' AS b, counts.clicks::bigint, NULL::bigint AS visitors,
               NULL::bigint AS labels, name_a, NULL::json AS name_b
          FROM (SELECT a, CASE WHEN %(named)s
                                 THEN label_name(%(user_id)s, %(named_by)s, a) END AS name_a
                  FROM labels
                 ORDER BY clicks DESC, a
                 LIMIT %(limit)s) top
          JOIN counts USING (a)
         UNION ALL
        SELECT NULL, NULL, NULL,
               coalesce(sum(clicks) FILTER (WHERE bucket >= %(first)s), 0)::bigint, NULL,
               (SELECT count(*) FROM labels), NULL, NULL
          FROM counted
        """,
        unknown=UNKNOWN,
        **owner._asdict(),
        **query,
    )


def of_visits(owner: Owner, **query: Any) -> list[Row]:
    """Count the clicks, and the visitors if `count_visitors`, by at most two dimensions. This reads
    the visits of the `tracked_ids`, or without them of all that were visited in the range.

    The digest of a visitor is different for each link, so the visitors of each can be counted on
    their own. Visits whose visitor is not known have an empty digest. A dimension of rows, such as
    the campaign, may have several labels for a link, each of which counts its visits.
    """
    return rows(
        """
        WITH owned AS (
            SELECT id FROM unnest(%(tracked_ids)s::bigint[]) AS id
             UNION ALL
            SELECT label::bigint
              FROM owners(%(user_id)s, %(everyone)s) AS owner,
                   LATERAL (SELECT DISTINCT label
                              FROM account_counts(owner, '{target}',
                                                  date_trunc('day', %(since)s::timestamptz, 'UTC'),
                                                  %(until)s, '{}',
                                                  %(bots)s)
                             WHERE %(tracked_ids)s::text IS NULL) visited),
        visited AS MATERIALIZED (
            SELECT owned.id AS tracked, stored.*
              FROM owned,
                   LATERAL (SELECT width_bucket(at, %(edges)s::timestamptz[]) AS bucket,
                                   visit_label(visits, %(a)s) AS a, visit_label(visits, %(b)s) AS b,
                                   CASE WHEN %(count_visitors)s
                                          THEN nullif(visitor, '') END AS visitor,
                                   count(*) AS clicks
                              FROM visits
                             WHERE tracked_id = owned.id
                               AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
                               AND bot = ANY (%(bots)s::boolean[])
                               AND visit_passes(visits, %(filters)s)
                             GROUP BY 1, 2, 3, 4) stored),
        labeled AS (
            SELECT bucket, a, b, clicks, visitor FROM visited WHERE NOT %(joins_a)s
               AND NOT %(joins_b)s
             UNION ALL
            SELECT bucket, CASE WHEN %(joins_a)s THEN coalesce(of_a.label, '-')
                                ELSE a END COLLATE "C",
                   CASE WHEN %(joins_b)s THEN coalesce(of_b.label, '-') ELSE b END COLLATE "C",
                   clicks, visitor
              FROM visited
              LEFT JOIN tracked_labels(CASE WHEN NOT %(everyone)s THEN %(user_id)s::bigint END,
                                       ARRAY(SELECT DISTINCT tracked FROM visited
                                              WHERE %(joins_a)s), %(a)s) of_a
                     ON of_a.tracked_id = tracked
              LEFT JOIN tracked_labels(CASE WHEN NOT %(everyone)s THEN %(user_id)s::bigint END,
                                       ARRAY(SELECT DISTINCT tracked FROM visited
                                              WHERE %(joins_b)s), %(b)s) of_b
                     ON of_b.tracked_id = tracked
             WHERE %(joins_a)s OR %(joins_b)s),
        counts AS MATERIALIZED (
            SELECT bucket, a, b, sum(clicks) AS clicks, count(DISTINCT visitor) AS visitors
              FROM labeled
             GROUP BY bucket, a, b),
        labels AS (SELECT a, b, sum(clicks) AS clicks FROM counts GROUP BY a, b)
        SELECT bucket, a, b, counts.clicks::bigint, visitors, NULL::bigint AS labels, name_a, name_b
          FROM (SELECT a, b, CASE WHEN %(named)s THEN label_name(%(user_id)s, %(a)s, a) END AS name_a,
                       CASE WHEN %(named)s THEN label_name(%(user_id)s, %(b)s, b) END AS name_b
                  FROM labels
                 ORDER BY clicks DESC, a, b
                 LIMIT %(limit)s) top
          JOIN counts USING (a, b)
         UNION ALL
        SELECT NULL, NULL, NULL, coalesce(sum(clicks), 0)::bigint, count(DISTINCT visitor),
               (SELECT count(*) FROM labels), NULL, NULL
          FROM visited
         WHERE bucket >= %(first)s
        """,
        **owner._asdict(),
        **query,
    )


def live(owner: Owner, **query: Any) -> list[Row]:
    """Return each of the last `minutes`, the current one included, with the number of clicks.
    Return no rows if there is no such user."""
    return rows(
        """
        WITH span AS (
            SELECT date_trunc('minute', now()) - make_interval(mins => %(minutes)s - 1) AS first),
        counts AS (
            SELECT minute, visits
              FROM visit_minutes
             WHERE NOT %(everyone)s AND user_id = %(user_id)s AND minute >= (SELECT first FROM span)
               AND bot = ANY (%(bots)s::boolean[])
             UNION ALL
            SELECT minute, visits
              FROM visit_minutes
             WHERE %(everyone)s AND minute >= (SELECT first FROM span)
               AND bot = ANY (%(bots)s::boolean[]))
        SELECT minute AS time, coalesce(sum(visits), 0)::bigint AS clicks
          FROM generate_series((SELECT first FROM span), now(), interval '1 minute') AS minute
          LEFT JOIN counts USING (minute)
         WHERE EXISTS (SELECT FROM users WHERE id = %(user_id)s)
         GROUP BY minute
         ORDER BY minute
        """,
        **owner._asdict(),
        **query,
    )
