"""Numbers for the pages of the console: all that one page shows, in one statement. Visits of bots are not counted."""

from linkmgr.db.statements import Row, replica_rows


def of_account(user_id: int, *, since: str, previous: str, limit: int) -> list[Row]:
    """Count the clicks of each day from `previous` on, and from `since` on those of the top targets, countries and
    referrers. Both are UTC days. The rows of days have an empty `dimension`."""
    return replica_rows(
        """
        WITH counts AS (
            SELECT dimension, CASE WHEN dimension = '' THEN day::text ELSE label END AS label, sum(visits) AS clicks
              FROM current_account_days
             WHERE user_id = %(user_id)s AND NOT bot
               AND (dimension = '' AND day >= %(previous)s::date
                 OR dimension IN ('target', 'country', 'referrer') AND day >= %(since)s::date)
             GROUP BY 1, 2),
        ranked AS (
            SELECT *, row_number() OVER (PARTITION BY dimension ORDER BY clicks DESC, label) AS rank FROM counts)
        SELECT dimension, label, clicks::bigint, link_id,
               CASE WHEN link_id IS NOT NULL THEN coalesce(host || '/', '') || alias
                    WHEN qr_name IS NOT NULL THEN 'QR code ' || qr_name END AS name
          FROM ranked
          LEFT JOIN LATERAL (
               SELECT l.id AS link_id, alias, host
                 FROM links l
                 LEFT JOIN domains d ON d.id = l.domain_id
                WHERE l.user_id = %(user_id)s
                  AND l.id = CASE WHEN dimension = 'target' THEN label::bigint END) link ON true
          LEFT JOIN LATERAL (
               SELECT q.name AS qr_name FROM qrs q
                WHERE q.user_id = %(user_id)s
                  AND q.id = CASE WHEN dimension = 'target' THEN label::bigint END) qr ON true
         WHERE dimension = '' OR rank <= %(limit)s
         ORDER BY dimension, rank
        """,
        user_id=user_id,
        since=since,
        previous=previous,
        limit=limit,
    )


def of_link(user_id: int, link_id: int, *, edges: str, since: str, previous: str, until: str, limit: int) -> list[Row]:
    """Count the clicks of a link in each bucket from `previous` on, and from `since` on those of its top labels.

    The rows of buckets have an empty `dimension`, and the number of the bucket as label.
    """
    return replica_rows(
        """
        WITH owned AS (
            SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s),
        stored AS MATERIALIZED (
            SELECT at, visits, labels
              FROM owned JOIN current_target_quarters ON target_id = owned.id
             WHERE at >= %(previous)s::timestamptz AND at < %(until)s::timestamptz AND NOT bot
             UNION ALL
            SELECT day::timestamp AT TIME ZONE 'UTC', visits, labels
              FROM owned JOIN target_folds ON target_id = owned.id
             WHERE day >= (%(previous)s::timestamptz AT TIME ZONE 'UTC')::date
               AND day < (%(until)s::timestamptz AT TIME ZONE 'UTC')::date AND NOT bot),
        counts AS (
            SELECT '' AS dimension, width_bucket(at, %(edges)s::timestamptz[])::text AS label, sum(visits) AS clicks
              FROM stored
             GROUP BY 2
             UNION ALL
            SELECT dimensions.key, counted.key, sum(counted.value::bigint)
              FROM stored, jsonb_each(labels) dimensions, jsonb_each_text(dimensions.value) counted
             WHERE at >= %(since)s::timestamptz
             GROUP BY 1, 2)
        SELECT dimension, label, clicks::bigint
          FROM (SELECT *, row_number() OVER (PARTITION BY dimension ORDER BY clicks DESC, label) AS rank
                  FROM counts) ranked
         WHERE dimension = '' OR rank <= %(limit)s
         ORDER BY dimension, rank
        """,
        user_id=user_id,
        link_id=link_id,
        edges=edges,
        since=since,
        previous=previous,
        until=until,
        limit=limit,
    )


def of_links(user_id: int, ids: list[int], *, since: str) -> list[Row]:
    """Return the states of links, and in `days` the clicks of each UTC day from `since` on."""
    return replica_rows(
        """
        SELECT id, password_hash IS NOT NULL AS has_password, coalesce(expires <= now(), false) AS is_expired, type,
               public,
               (SELECT coalesce(jsonb_object_agg(day, clicks), '{}')
                  FROM (SELECT (at AT TIME ZONE 'UTC')::date AS day, sum(visits) AS clicks
                          FROM current_target_quarters
                         WHERE target_id = links.id AND at >= %(since)s::date::timestamp AT TIME ZONE 'UTC' AND NOT bot
                         GROUP BY 1) daily) AS days
          FROM links
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
        """,
        user_id=user_id,
        ids=ids,
        since=since,
    )


def choices(user_id: int, *, limit: int) -> list[Row]:
    """Return the rows that a link can refer to, the newest of each kind."""
    return replica_rows(
        """
        (SELECT 'domain' AS kind, id, scheme || '://' || host AS name FROM domains
          WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
        UNION ALL
        (SELECT 'campaign', id, name FROM campaigns WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
        UNION ALL
        (SELECT 'channel', id, name FROM channels WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
        UNION ALL
        (SELECT 'pixel', id, name FROM pixels WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
        UNION ALL
        (SELECT 'splash', id, name FROM splash_pages WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
        UNION ALL
        (SELECT 'overlay', id, name FROM overlays WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
        """,
        user_id=user_id,
        limit=limit,
    )
