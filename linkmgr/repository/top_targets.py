"""The links and QR codes of an account with the most clicks."""

from linkmgr.db.statements import Row, replica_rows


def read(user_id: int, *, since: str, since_day: str, busiest: str | None, limit: int) -> list[Row]:
    """Count the clicks from `since` on of the targets that have most, and return them with their names. Deleted targets
    have no name. Visits of bots are not counted.

    An account has a row for each target on each day that it was visited, which may be millions. With the start of the
    `busiest` day, only the targets with the most clicks on this day are compared. Their numbers are exact, but a target
    that has most of its clicks on other days may be missing.
    """
    return replica_rows(
        """
        WITH candidates AS MATERIALIZED (
            SELECT label::bigint AS id, EXISTS (SELECT FROM busy_days WHERE target_id = label::bigint) AS busy
              FROM (SELECT label
                      FROM account_rollups
                     WHERE user_id = %(user_id)s AND dimension = 'target' AND NOT bot
                       AND at >= %(busiest)s::timestamptz AND at < %(busiest)s::timestamptz + interval '24 hours'
                     GROUP BY label
                     ORDER BY sum(visits) DESC, label
                     LIMIT %(limit)s + 2) compared),
        stored AS (
            SELECT label, visits
              FROM current_account_days
             WHERE user_id = %(user_id)s AND dimension = 'target' AND NOT bot AND day >= %(since_day)s::date
               AND %(busiest)s::text IS NULL
             UNION ALL
            SELECT label, visits
              FROM current_account_rollups
             WHERE user_id = %(user_id)s AND dimension = 'target' AND NOT bot AND at >= %(since)s::timestamptz
               AND at < %(since_day)s::date::timestamp AT TIME ZONE 'UTC' AND %(busiest)s::text IS NULL
             UNION ALL
            SELECT id::text, visits
              FROM candidates,
                   LATERAL (SELECT visits FROM busy_days
                             WHERE busy AND target_id = id AND day >= %(since_day)s::date AND NOT bot
                             UNION ALL
                            SELECT visits FROM target_quarters
                             WHERE target_id = id AND at >= %(since)s::timestamptz AND NOT bot
                               AND at < CASE WHEN busy THEN %(since_day)s::date::timestamp AT TIME ZONE 'UTC'
                                             ELSE 'infinity' END
                             UNION ALL
                            SELECT 1 FROM pending_visits
                             WHERE target_id = id AND at >= %(since)s::timestamptz AND NOT bot) counted)
        SELECT 'target' AS dimension, label, clicks, link_id,
               CASE WHEN link_id IS NOT NULL THEN coalesce(host || '/', '') || alias
                    WHEN qr_name IS NOT NULL THEN 'QR code ' || qr_name END AS name
          FROM (SELECT label, sum(visits)::bigint AS clicks
                  FROM stored
                 GROUP BY label
                 ORDER BY clicks DESC, label
                 LIMIT %(limit)s) ranked
          LEFT JOIN LATERAL (
               SELECT l.id AS link_id, alias, host
                 FROM links l
                 LEFT JOIN domains d ON d.id = l.domain_id
                WHERE l.user_id = %(user_id)s AND l.id = label::bigint) link ON true
          LEFT JOIN LATERAL (
               SELECT q.name AS qr_name FROM qrs q WHERE q.user_id = %(user_id)s AND q.id = label::bigint) qr ON true
         ORDER BY clicks DESC, label
        """,
        user_id=user_id,
        since=since,
        since_day=since_day,
        busiest=busiest,
        limit=limit,
    )
