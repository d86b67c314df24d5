"""The clicks of links and QR codes in a period of the console and in the period before, and their labels."""

from linkmgr.db.statements import Row, replica_rows


def read(
    user_id: int, *, target_id: int | None, campaign_id: int | None, limit: int, edges: str, **times: str
) -> list[Row]:
    """Count the visits of a link or QR code, or of the links of a campaign, in each bucket from `previous` on, and from
    `since` on those of the top labels. Visits of bots are not counted.

    The rows of buckets have an empty `dimension`, and the number of the bucket as label. As in
    `statistics.of_targets`, busy targets have whole UTC days, days before `days_before` may be folded, and `split` days
    are counted by quarters of an hour. Labels are not by bucket, so that only the ends of the range split their days,
    in `label_split`. Rows that do not depend on split days are read once, for the buckets and for the labels.
    """
    return replica_rows(
        """
        WITH owned AS MATERIALIZED (
            SELECT id, EXISTS (SELECT FROM busy_days WHERE target_id = id) AS busy
              FROM (SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(target_id)s
                     UNION ALL
                    SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = %(target_id)s
                     UNION ALL
                    SELECT id FROM links WHERE user_id = %(user_id)s AND campaign_id = %(campaign_id)s) targets),
        counted (part, since, since_day, split) AS (
            VALUES ('buckets', %(previous)s::timestamptz, %(previous_day)s::date, %(split)s::date[]),
                   ('labels', %(since)s::timestamptz, %(since_day)s::date, %(label_split)s::date[])),
        spans AS MATERIALIZED (
            SELECT id, 'both' AS part, %(previous)s::timestamptz AS since,
                   CASE WHEN busy THEN least(%(until)s::timestamptz, %(days_before)s::timestamp AT TIME ZONE 'UTC')
                        ELSE %(until)s::timestamptz END AS until
              FROM owned
             UNION ALL
            SELECT id, part, greatest(since, day::timestamp AT TIME ZONE 'UTC'),
                   least(%(until)s::timestamptz, (day + 1)::timestamp AT TIME ZONE 'UTC')
              FROM owned, counted, unnest(split) AS days (day)
             WHERE busy),
        stored AS MATERIALIZED (
            SELECT part <> 'labels' AS in_buckets, part <> 'buckets' AND at >= %(since)s::timestamptz AS in_labels,
                   width_bucket(at, %(edges)s::timestamptz[]) AS bucket, visits, labels
              FROM spans,
                   LATERAL (SELECT * FROM target_quarters
                             WHERE target_id = spans.id AND at >= spans.since AND at < spans.until AND NOT bot
                            OFFSET 0) quarters
             UNION ALL
            SELECT part = 'buckets', part = 'labels', width_bucket(day, %(day_edges)s::date[]), visits, labels
              FROM owned, counted,
                   LATERAL (SELECT * FROM busy_days
                             WHERE target_id = owned.id AND day >= greatest(since_day, %(days_before)s::date)
                               AND day < %(until_day)s::date AND NOT bot
                            OFFSET 0) days
             WHERE busy AND day <> ALL (split)
             UNION ALL
            SELECT true, day >= %(since_day)s::date, width_bucket(day, %(day_edges)s::date[]), visits, labels
              FROM owned,
                   LATERAL (SELECT * FROM target_folds
                             WHERE target_id = owned.id AND day >= %(previous_day)s::date
                               AND day < %(until_day)s::date AND NOT bot
                            OFFSET 0) days),
        counts AS (
            SELECT '' AS dimension, bucket::text AS label, visits
              FROM stored
             WHERE in_buckets
             UNION ALL
            SELECT dimensions.key, labels.key, labels.value::bigint
              FROM stored, jsonb_each(labels) AS dimensions, jsonb_each_text(dimensions.value) AS labels
             WHERE in_labels
             UNION ALL
            SELECT dimension,
                   CASE dimension WHEN '' THEN width_bucket(at, %(edges)s::timestamptz[])::text ELSE label END, visits
              FROM owned JOIN pending_rollups ON target_id = owned.id
             WHERE dimension <> 'target' AND at < %(until)s::timestamptz AND NOT bot
               AND at >= CASE dimension WHEN '' THEN %(previous)s::timestamptz ELSE %(since)s::timestamptz END)
        SELECT dimension, label, clicks::bigint
          FROM (SELECT dimension, label, sum(visits) AS clicks,
                       row_number() OVER (PARTITION BY dimension ORDER BY sum(visits) DESC, label) AS rank
                  FROM counts
                 GROUP BY dimension, label) ranked
         WHERE dimension = '' OR rank <= %(limit)s
         ORDER BY dimension, rank
        """,
        user_id=user_id,
        target_id=target_id,
        campaign_id=campaign_id,
        limit=limit,
        edges=edges,
        **times,
    )
