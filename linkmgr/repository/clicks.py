"""Clicks of links and QR codes over time, without a dimension: the statistics that are read most often."""

from typing import Any

from linkmgr.db.statements import Row, replica_rows


def of_targets(user_id: int, *, targets: str, **query: Any) -> list[Row]:
    """Count the clicks of the targets. Parameters and result are those of `statistics.of_targets`.

    This takes less than half of its time, because PostgreSQL sets up each part of a statement, executed or not.
    """
    counted = replica_rows(
        """
        WITH owned AS MATERIALIZED (
            SELECT id, EXISTS (SELECT FROM busy_days WHERE target_id = id) AS busy
              FROM (SELECT id FROM links WHERE user_id = %(user_id)s AND id = ANY (%(targets)s::bigint[])
                     UNION ALL
                    SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = ANY (%(targets)s::bigint[])) targets)
        SELECT bucket, '' AS a, '' AS b, sum(visits)::bigint AS clicks, NULL AS visitors
          FROM (SELECT width_bucket(at, %(edges)s::timestamptz[]) AS bucket, visits
                  FROM owned,
                       LATERAL (SELECT at, visits FROM target_quarters
                                 WHERE target_id = owned.id AND at >= %(since)s::timestamptz
                                   AND at < CASE WHEN busy
                                                 THEN least(%(until)s::timestamptz,
                                                            %(days_before)s::timestamp AT TIME ZONE 'UTC')
                                                 ELSE %(until)s::timestamptz END
                                   AND bot = ANY (%(bots)s::boolean[])
                                OFFSET 0) quarters
                 UNION ALL
                SELECT width_bucket(at, %(edges)s::timestamptz[]), visits
                  FROM owned, unnest(%(split)s::date[]) AS split (day),
                       LATERAL (SELECT at, visits FROM target_quarters
                                 WHERE target_id = owned.id
                                   AND at >= greatest(%(since)s::timestamptz,
                                                      split.day::timestamp AT TIME ZONE 'UTC')
                                   AND at < least(%(until)s::timestamptz,
                                                  (split.day + 1)::timestamp AT TIME ZONE 'UTC')
                                   AND bot = ANY (%(bots)s::boolean[])
                                OFFSET 0) quarters
                 WHERE busy
                 UNION ALL
                SELECT width_bucket(day, %(day_edges)s::date[]), visits
                  FROM owned,
                       LATERAL (SELECT day, visits FROM busy_days
                                 WHERE target_id = owned.id
                                   AND day >= greatest(%(since_day)s::date, %(days_before)s::date)
                                   AND day < %(until_day)s::date AND bot = ANY (%(bots)s::boolean[])
                                OFFSET 0) days
                 WHERE day <> ALL (%(split)s::date[])
                 UNION ALL
                SELECT width_bucket(day, %(day_edges)s::date[]), visits
                  FROM owned,
                       LATERAL (SELECT day, visits FROM target_folds
                                 WHERE target_id = owned.id AND day >= %(since_day)s::date
                                   AND day < %(until_day)s::date AND bot = ANY (%(bots)s::boolean[])
                                OFFSET 0) days
                 UNION ALL
                SELECT width_bucket(at, %(edges)s::timestamptz[]), 1
                  FROM owned,
                       LATERAL (SELECT at FROM pending_visits
                                 WHERE target_id = owned.id AND at >= %(since)s::timestamptz
                                   AND at < %(until)s::timestamptz AND bot = ANY (%(bots)s::boolean[])
                                OFFSET 0) pending) stored
         GROUP BY bucket
        """,
        user_id=user_id,
        targets=targets,
        **query,
    )
    clicks = sum(row["clicks"] for row in counted)
    return [*counted, {"bucket": None, "clicks": clicks, "visitors": None, "labels": min(len(counted), 1)}]
