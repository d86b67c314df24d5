"""Statements of the console: clicks and labels of a period. Visits of bots are not counted. Times are those of
`periods.as_rollups`."""

from linkmgr.db.statements import Row, replica_rows
from linkmgr.repository import console_queries


def overview(
    user_id: int,
    *,
    subject: str = "",
    row_id: int = 0,
    dimensions: list[str],
    limit: int,
    buckets: dict[str, str],
    labels: dict[str, str],
) -> list[Row]:
    """Count the clicks of a link or QR code, of the MANY newest of a campaign or channel, or else of the account: in
    each of the buckets, and of the top labels. The rows of buckets have an empty `dimension`, and the number of the
    bucket as label. Those with the dimension `total` have all clicks and visitors, which records of links have, and the
    one with the dimension `first` has the time of the first visit in seconds since the epoch, as exactly as it is
    kept."""
    return replica_rows(
        """
        WITH account AS (
            SELECT %(user_id)s::bigint AS id WHERE %(subject)s = ''),
        tracked AS (
            SELECT ARRAY(SELECT id FROM tracked_rows
                          WHERE user_id = %(user_id)s AND id = %(row_id)s AND %(subject)s IN ('link', 'qr')
                          UNION ALL
                        (SELECT id FROM links
                          WHERE user_id = %(user_id)s AND campaign_id = %(row_id)s AND %(subject)s = 'campaign'
                          ORDER BY id DESC LIMIT %(most)s)
                          UNION ALL
                        (SELECT coalesce(link_id, qr_id) FROM channel_items
                          WHERE user_id = %(user_id)s AND channel_id = %(row_id)s AND %(subject)s = 'channel'
                          ORDER BY id DESC LIMIT %(most)s)) AS ids),
        counts AS (
            SELECT '' AS dimension, width_bucket(at, %(edges)s::timestamptz[])::text AS label, visits
              FROM (SELECT at, visits
                      FROM account, account_counts(id, '{""}', %(since)s, %(until)s, %(split)s, '{f}')
                     UNION ALL
                    SELECT at, visits
                      FROM tracked, tracked_counts(ids, '{""}', %(since)s, %(until)s, %(split)s, '{f}')) clicks
             UNION ALL
            SELECT dimension, label, visits
              FROM account,
                   account_counts(id, %(dimensions)s, %(label_since)s, %(label_until)s, %(label_split)s, '{f}')
             UNION ALL
            SELECT dimension, label, visits
              FROM tracked,
                   tracked_counts(ids, %(dimensions)s, %(label_since)s, %(label_until)s, %(label_split)s, '{f}')),
        firsts AS (
            SELECT min(at) FILTER (WHERE unit = 'day') AS day, min(at) FILTER (WHERE unit = 'quarter') AS quarter
              FROM (SELECT unit, (SELECT at FROM account_rollups r
                                   WHERE user_id = id AND dimension = '' AND r.unit = units.unit AND NOT bot
                                   ORDER BY at LIMIT 1) AS at
                      FROM account, (VALUES ('day'), ('quarter')) AS units (unit)
                     UNION ALL
                    SELECT unit, (SELECT at FROM tracked_rollups r
                                   WHERE tracked_id = id AND r.unit = units.unit AND NOT bot
                                   ORDER BY at LIMIT 1)
                      FROM tracked, unnest(ids) AS id, (VALUES ('day'), ('quarter')) AS units (unit)) stored)
        SELECT dimension, label, clicks::bigint
          FROM (SELECT dimension, label, sum(visits) AS clicks,
                       row_number() OVER (PARTITION BY dimension ORDER BY sum(visits) DESC, label) AS rank
                  FROM counts
                 GROUP BY dimension, label) ranked
         WHERE dimension = '' OR rank <= %(limit)s
         UNION ALL
        SELECT 'total', label, coalesce(sum(number), 0)::bigint
          FROM tracked, unnest(ids) AS id,
               LATERAL (SELECT clicks, visitors FROM totals WHERE tracked_id = id OFFSET 0) counted,
               LATERAL (VALUES ('clicks', clicks), ('visitors', visitors)) AS numbers (label, number)
         WHERE %(subject)s IN ('campaign', 'channel', 'qr')
         GROUP BY label
         UNION ALL
        SELECT 'total', 'imported', coalesce(sum(imported_clicks), 0)::bigint
          FROM tracked, links
         WHERE links.user_id = %(user_id)s AND links.id = ANY (ids) AND %(kind)s IN ('campaign', 'channel')
           AND imported_clicks IS NOT NULL
         UNION ALL
        SELECT 'first', '',
               extract(epoch FROM CASE WHEN quarter < day + interval '1 day' THEN quarter ELSE day END)::bigint
          FROM firsts
         WHERE day IS NOT NULL
         ORDER BY dimension, clicks DESC, label
        """,
        user_id=user_id,
        subject=subject,
        row_id=row_id,
        most=console_queries.MANY,
        dimensions=dimensions,
        limit=limit,
        **buckets,
        **{f"label_{name}": value for name, value in labels.items()},
    )


def top_tracked(user_id: int, *, busiest: str | None, limit: int, times: dict[str, str]) -> list[Row]:
    """Count the clicks of the links and QR codes of the account that have most, and return them with their names.
    Deleted ones have no name.

    An account has a row for each of them on each day that it was visited, which may be millions. With the start of the
    `busiest` day, only those with the most clicks on this day are compared. Their numbers are exact, but one that has
    most of its clicks on other days may be missing.
    """
    return replica_rows(
        """
        WITH compared AS MATERIALIZED (
            SELECT ARRAY(SELECT label::bigint
                           FROM account_rollups
                          WHERE user_id = %(user_id)s AND dimension = 'target' AND unit = 'quarter' AND NOT bot
                            AND at >= %(busiest)s::timestamptz
                            AND at < %(busiest)s::timestamptz + interval '24 hours'
                          GROUP BY label
                          ORDER BY sum(visits) DESC, label
                          LIMIT %(limit)s + 2) AS ids),
        account AS (
            SELECT %(user_id)s::bigint AS id WHERE %(busiest)s::text IS NULL),
        counts AS (
            SELECT label::bigint AS id, visits
              FROM account, account_counts(id, '{target}', %(since)s, %(until)s, %(split)s, '{f}')
             UNION ALL
            SELECT tracked_id, visits
              FROM compared, tracked_counts(ids, '{""}', %(since)s, %(until)s, %(split)s, '{f}'))
        SELECT 'target' AS dimension, ranked.id::text AS label, clicks, CASE noun WHEN 'link' THEN t.id END AS link_id,
               CASE noun WHEN 'link' THEN name ELSE 'QR code ' || name END AS name
          FROM (SELECT id, sum(visits)::bigint AS clicks
                  FROM counts
                 GROUP BY id
                 ORDER BY clicks DESC, id
                 LIMIT %(limit)s) ranked
          LEFT JOIN tracked_rows t ON t.user_id = %(user_id)s AND t.id = ranked.id
         ORDER BY clicks DESC, ranked.id
        """,
        user_id=user_id,
        busiest=busiest,
        limit=limit,
        **times,
    )
