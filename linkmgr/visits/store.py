import re

from linkmgr.core.database.statements import Row, database, row, run
from linkmgr.visits.dimensions import DIMENSIONS, OTHER, TOPS, UNKNOWN

# Statistics of a link or a QR code without visits.
NO_VISITS: Row = {
    "clicks": 0,
    "uniqueClicks": 0,
    **{member: {} for member in TOPS},
    "socialCount": {"facebook": 0, "twitter": 0, "instagram": 0},
}
# Labels of a link or QR code in a dimension. Clients can send any number of referrers and browsers, which would fill
# the disk, so all further labels are counted as OTHER.
MAX_LABELS = 1000
DETAILED_DAYS = 400  # older rollups have only days
FEW = 8  # a day of a link or QR code with fewer visits is raw, see schema.sql
TOTALS = ("clicks", "visitors", "top_labels")  # columns
_LABELS = {
    "dimensions": ["", *(dimension.name for dimension in DIMENSIONS)],
    "unbounded": [dimension.name for dimension in DIMENSIONS if not dimension.labels.is_bounded],
    "tops": [*TOPS.values(), "social", "kind"],
    "other": OTHER,
    "unknown": UNKNOWN,
}
_USER_ID = re.compile(r'"user_id": ?(\d+)')  # quotation marks in labels are escaped
# A connection keeps the plan that it made for small tables, whose scans are cheap by default.
PRELUDE = "SET LOCAL seq_page_cost = 4; SELECT lock_users(%(users)s::bigint[]); "
ADD = """
    WITH spool AS (
        INSERT INTO visit_spools AS s (name, stored)
        SELECT %(spool)s, %(stop)s::bigint
         WHERE %(start)s::bigint = 0 OR EXISTS (SELECT FROM visit_spools WHERE name = %(spool)s)
        ON CONFLICT (name) DO UPDATE SET stored = excluded.stored WHERE s.stored = %(start)s::bigint
        RETURNING name),
    batch AS (
        SELECT user_id, social, visit, (visit).tracked_id, (visit).at, (visit).visitor, (visit).bot,
               row_number() OVER (PARTITION BY user_id, (visit).bot ORDER BY (visit).at) AS number
          FROM read_visits(%(visits)s)),
    plan AS MATERIALIZED (
        SELECT user_id, max_clicks
          FROM (SELECT DISTINCT user_id FROM batch) senders,
               LATERAL (SELECT max_clicks FROM accounts WHERE id = user_id LIMIT 1) a),
    -- NULL as the limit means unlimited: least() and greatest() ignore it.
    month AS (
        INSERT INTO usage_parts AS u (user_id, counted, total, last_added, full_since)
        SELECT user_id,
               CASE WHEN %(imported)s THEN 'imported ' ELSE '' END || CASE WHEN bot THEN 'bots ' ELSE 'visits ' END
                   || to_char(now(), 'YYYY-MM') AS counted,
               least(count(*), max_clicks), least(count(*), max_clicks), CASE WHEN count(*) > max_clicks THEN now() END
          FROM batch JOIN plan USING (user_id)
         WHERE EXISTS (SELECT FROM spool)
         GROUP BY user_id, bot, max_clicks
         ORDER BY user_id, counted
        ON CONFLICT (user_id, counted, part) DO UPDATE
           SET (total, last_added, full_since) = (
               SELECT u.total + added, added,
                      CASE WHEN added < excluded.last_added OR excluded.full_since IS NOT NULL
                           THEN coalesce(u.full_since, now()) END
                 FROM (SELECT greatest(least(excluded.last_added, max_clicks - u.total), 0) AS added
                         FROM accounts WHERE id = u.user_id) remaining)
        RETURNING user_id, counted LIKE '%%bots %%' AS bot, last_added),
    counted AS (
        SELECT batch.* FROM batch JOIN month USING (user_id, bot) WHERE number <= last_added),
    visits_added AS (
        INSERT INTO visits SELECT (visit).* FROM counted RETURNING tracked_id, bot),
    events_added AS (
        INSERT INTO outbox (user_id, type, data)
        SELECT * FROM visit_events(ARRAY(
            SELECT visit FROM counted WHERE EXISTS (SELECT FROM webhooks WHERE active)))),
    -- LIMIT: each visitor is read by the key, also if the plan was made for an empty table.
    arrived AS MATERIALIZED (
        SELECT sent.*, place, v.seen AS seen_before, v.variant AS variant_before
          FROM (SELECT tracked_id, visitor, max(timezone('UTC', at)::date) AS seen,
                       (array_agg((visit).variant ORDER BY at DESC) FILTER (WHERE (visit).variant <> %(unknown)s))[1]
                           AS variant
                  FROM counted
                 WHERE NOT bot AND visitor <> ''
                 GROUP BY tracked_id, visitor) sent
          LEFT JOIN LATERAL (SELECT ctid AS place, seen, variant FROM visitors
                              WHERE tracked_id = sent.tracked_id AND visitor = sent.visitor
                              LIMIT 1) v ON true
         ORDER BY tracked_id, visitor),
    -- Also those stored with another day, whom the purge may be deleting.
    visitors_added AS (
        INSERT INTO visitors (tracked_id, visitor, seen, variant)
        SELECT tracked_id, visitor, seen, variant FROM arrived WHERE seen IS DISTINCT FROM seen_before
        ON CONFLICT DO NOTHING
        RETURNING tracked_id),
    visitors_seen AS (
        UPDATE visitors v
           SET seen = a.seen, variant = coalesce(a.variant, variant_before)
          FROM arrived a
         WHERE v.ctid = place AND seen_before <= a.seen
           AND (seen_before, variant_before) IS DISTINCT FROM (a.seen, coalesce(a.variant, variant_before))),
    seen AS MATERIALIZED (
        SELECT user_id, tracked_id, bot, date_bin('15 minutes', at, 'epoch') AS quarter, dimension, label,
               count(*) AS visits
          FROM counted,
               LATERAL (VALUES ('', ''), ('target', tracked_id::text), ('minute', recent_minute(at)),
                               ('social', CASE WHEN NOT bot THEN social END)
                         UNION ALL
                        SELECT * FROM visit_labels(visit)) AS labels (dimension, label)
         WHERE label <> %(unknown)s
         GROUP BY 1, 2, 3, 4, 5, 6),
    -- The labels of links and QR codes that may have too many. They have at most as many labels as visits.
    crowded AS MATERIALIZED (
        SELECT added.tracked_id, added.bot, dimension, coalesce(labels -> dimension, '{}') AS stored,
               (SELECT count(*) FROM jsonb_object_keys(labels -> dimension)) AS used
          FROM (SELECT tracked_id, bot, sum(visits) AS visits FROM seen WHERE dimension = '' GROUP BY 1, 2) added
          LEFT JOIN LATERAL (SELECT visits, labels || '{}' AS labels FROM tracked_rollups
                              WHERE tracked_id = added.tracked_id AND unit = 'all' AND bot = added.bot
                              LIMIT 1) r ON true,
               unnest(%(unbounded)s::text[]) AS dimension
         WHERE added.visits + coalesce(r.visits, 0) > %(max_labels)s),
    excess AS MATERIALIZED (
        SELECT tracked_id, bot, dimension, label, %(other)s AS other
          FROM (SELECT tracked_id, bot, dimension, label, used,
                       row_number() OVER (PARTITION BY tracked_id, bot, dimension ORDER BY sum(visits) DESC, label)
                           AS rank
                  FROM seen JOIN crowded USING (tracked_id, bot, dimension)
                 WHERE NOT stored ? label
                 GROUP BY tracked_id, bot, dimension, label, used) new
         WHERE rank + used > %(max_labels)s),
    variants_added AS (
        SELECT tracked_id, jsonb_build_object('variant', jsonb_object_agg(variant, visitors))::text AS variant_visitors
          FROM (SELECT arrived.tracked_id, coalesce(other, variant) AS variant, count(*) AS visitors
                  FROM arrived
                  LEFT JOIN excess ON excess.tracked_id = arrived.tracked_id AND label = variant
                                  AND dimension = 'variant' AND NOT bot
                 WHERE variant <> '' AND variant_before IS DISTINCT FROM variant
                 GROUP BY 1, 2) per_variant
         GROUP BY tracked_id),
    labeled AS MATERIALIZED (
        SELECT user_id, tracked_id, bot, quarter, dimension, coalesce(other, label) AS label, visits
          FROM seen LEFT JOIN excess USING (tracked_id, bot, dimension, label)),
    days AS MATERIALIZED (
        SELECT sent.*, raw_place,
               CASE WHEN unit = 'day' OR added + coalesce(visits, 0) >= %(few)s
                         OR (unit IS NULL AND day < (SELECT dropped_until FROM service)) THEN 'day'
                    ELSE 'raw' END AS day_unit,
               (SELECT true FROM links WHERE id = tracked_id) OR (SELECT true FROM qrs WHERE id = tracked_id)
                   OR (SELECT true FROM binned_links WHERE id = tracked_id) AS is_kept
          FROM (SELECT tracked_id, bot, date_trunc('day', at, 'UTC') AS day, count(*) AS added
                  FROM batch GROUP BY 1, 2, 3) sent
          LEFT JOIN LATERAL (SELECT unit, visits, CASE WHEN unit = 'raw' THEN ctid END AS raw_place FROM tracked_rollups
                              WHERE tracked_id = sent.tracked_id AND unit IN ('day', 'raw') AND bot = sent.bot
                                AND at = day
                              LIMIT 1) r ON true),
    summed AS (
        DELETE FROM tracked_rollups r USING days
         WHERE r.ctid = raw_place AND day_unit = 'day'
        RETURNING days.tracked_id AS id, days.bot, day, is_kept),
    account_added AS (
        INSERT INTO account_rollups AS r (user_id, dimension, at, label, bot, visits, quarters)
        SELECT user_id, dimension, date_trunc('day', quarter, 'UTC'), label, bot, sum(visits),
               sum_quarters(array_fill(visits::int, '{1}', ARRAY[quarter_of(quarter)]))
          FROM (SELECT user_id, dimension, quarter, label, bot, sum(visits) AS visits
                  FROM labeled WHERE dimension <> 'social'
                 GROUP BY 1, 2, 3, 4, 5) per_quarter
         GROUP BY 1, 2, 3, 4, 5
         ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE
           SET visits = r.visits + excluded.visits, quarters = add_quarters(r.quarters, excluded.quarters)),
    tracked_added AS (
        INSERT INTO tracked_rollups AS r (tracked_id, unit, bot, at, visits, labels)
        SELECT tracked_id, unit, bot, at, max(visits),
               coalesce(jsonb_object_agg(dimension, labels) FILTER (WHERE dimension <> ''), '{}')
          FROM (SELECT tracked_id, unit, bot, at, dimension, sum(visits) AS visits,
                       jsonb_object_agg(label, visits) AS labels
                  FROM (SELECT tracked_id, unit, bot, at, dimension, label, sum(visits) AS visits
                          FROM (SELECT tracked_id, unit, bot, at, dimension, label, visits
                                  FROM labeled
                                  JOIN days USING (tracked_id, bot),
                                       LATERAL (VALUES ('quarter', quarter), (day_unit, day), ('all', '-infinity')
                                               ) AS units (unit, at)
                                 WHERE day = date_trunc('day', quarter, 'UTC') AND is_kept
                                   AND dimension NOT IN ('target', 'minute')
                                   AND (unit <> 'quarter' OR day_unit = 'day') AND (unit <> 'raw' OR dimension = '')
                                 UNION ALL
                                SELECT id, unit, bot, start, dimension, label, visits
                                  FROM summed,
                                       raw_counts(ARRAY[id], %(dimensions)s, day, day + interval '24 hours', ARRAY[day],
                                                  ARRAY[bot]) AS stored,
                                       LATERAL (VALUES ('quarter', date_bin('15 minutes', stored.at, 'epoch')),
                                                       ('day', day)) AS units (unit, start)
                                 WHERE is_kept) labels
                         GROUP BY 1, 2, 3, 4, 5, 6) per_label
                 GROUP BY 1, 2, 3, 4, 5) per_dimension
         GROUP BY 1, 2, 3, 4
         ORDER BY 1, 2, 3, 4
        ON CONFLICT (tracked_id, unit, bot, at) DO UPDATE
           SET visits = r.visits + excluded.visits, labels = add_labels(r.labels, excluded.labels)
        RETURNING tracked_id, unit, bot, visits, labels),
    tops AS (
        SELECT tracked_id, json_object_agg(dimension, top)::text AS top_labels
          FROM tracked_added, unnest(%(tops)s::text[]) AS dimension,
               LATERAL (WITH stored AS MATERIALIZED (SELECT key COLLATE "C" AS label, value::bigint AS number
                                                       FROM jsonb_each_text(labels -> dimension))
                        SELECT json_object_agg(label, number) AS top
                          FROM (SELECT label, number FROM stored
                                 UNION ALL
                                SELECT %(unknown)s, visits - coalesce(sum(number), 0) FROM stored
                                HAVING visits > coalesce(sum(number), 0) AND dimension <> 'social'
                                 ORDER BY number DESC, label
                                 LIMIT 10) most_frequent) most
         WHERE unit = 'all' AND NOT bot AND top IS NOT NULL
         GROUP BY tracked_id),
    totals_updated AS (
        INSERT INTO totals AS t (tracked_id, clicks, visitors, top_labels, variant_visitors)
        SELECT tracked_id, sum(clicks), sum(visitors), min(top_labels)::json, min(variant_visitors)::jsonb
          FROM (SELECT tracked_id, CASE WHEN bot THEN 0 ELSE 1 END, 0, NULL, NULL FROM visits_added
                 UNION ALL
                SELECT tracked_id, 0, 1, NULL, NULL FROM visitors_added
                 UNION ALL
                SELECT tracked_id, 0, 0, top_labels, NULL FROM tops
                 UNION ALL
                SELECT tracked_id, 0, 0, NULL, variant_visitors
                  FROM variants_added) added (tracked_id, clicks, visitors, top_labels, variant_visitors)
         GROUP BY tracked_id
         ORDER BY tracked_id
        ON CONFLICT (tracked_id) DO UPDATE
           SET clicks = t.clicks + excluded.clicks, visitors = t.visitors + excluded.visitors,
               top_labels = coalesce(excluded.top_labels, t.top_labels),
               variant_visitors = coalesce(add_labels(coalesce(t.variant_visitors, '{}'), excluded.variant_visitors),
                                           t.variant_visitors))
    SELECT EXISTS (SELECT FROM spool) AS stored,
           (SELECT json_agg(refused)
              FROM (SELECT tracked_id, bot, count(*) AS visits
                      FROM batch JOIN month USING (user_id, bot)
                     WHERE number > last_added
                     GROUP BY tracked_id, bot) refused) AS refused
"""


def add(spool: str, start: int, stop: int, visits: str) -> bool:
    """Store the visits in bytes `start` to `stop` of a spool file, and return True. Skip visits beyond the monthly
    limit of their user. Bots have a counter of their own with the same limit, and change only `visits` and the rollups.

    If the file is not stored up to exactly `start`, store nothing and return False. So the statement can be repeated if
    its outcome is unknown. A file without a row in `visit_spools` is stored up to 0.

    `visits` is a JSON array of objects with tracked_id, user_id, at (seconds since the epoch), visitor (hexadecimal, or
    empty if it must not be recognized), bot, social, which may be null, and a label of each dimension.

    Concurrent statements for the same user wait at the row in `users`. All of them lock rows in the same order, which
    prevents deadlocks.
    """
    [result] = database().execute(ADD, parameters(spool, start, stop, visits), idempotent=True, prelude=PRELUDE)
    return bool(result["stored"])


def add_imported(user_id: int, visits: str) -> list[Row]:
    """Store visits as `add` does, in a transaction that stores them once. They have counters of their own with the same
    limit, so that old visits leave the month to those that happen in it. Return the numbers of those beyond the limit,
    as `visits` by `tracked_id` and `bot`."""
    spool = f"import-{user_id}"
    run("SELECT set_config('seq_page_cost', '4', true)")
    run("SELECT lock_users(ARRAY[%(user_id)s::bigint])", user_id=user_id)
    result = run(ADD, **parameters(spool, 0, 1, visits, imported=True))
    delete_spool(spool)
    return (result and result["refused"]) or []


def parameters(spool: str, start: int, stop: int, visits: str, *, imported: bool = False) -> Row:
    users = list(set(_USER_ID.findall(visits)))  # faster than PostgreSQL reads the JSON once more
    batch: Row = {"spool": spool, "start": start, "stop": stop, "visits": visits, "users": users, "imported": imported}
    return batch | _LABELS | {"max_labels": MAX_LABELS, "few": FEW}


def statistics(totals: Row) -> Row:
    if not totals["clicks"]:
        return NO_VISITS
    tops = totals["top_labels"] or {}
    social = tops.get("social", {})
    return {
        "clicks": totals["clicks"],
        "uniqueClicks": totals["visitors"],
        **{
            name: {label: str(number) for label, number in tops.get(dimension, {}).items()}
            for name, dimension in TOPS.items()
        },
        "socialCount": {network: social.get(network, 0) for network in NO_VISITS["socialCount"]},
    }


def stored_bytes(spool: str) -> int:
    spooled = row("SELECT stored FROM visit_spools WHERE name = %(spool)s", spool=spool)
    return int(spooled["stored"]) if spooled else 0


def delete_spool(spool: str) -> None:
    run("DELETE FROM visit_spools WHERE name = %(spool)s", spool=spool)


def create_partitions_for(visits: str) -> None:
    run(
        """
        SELECT create_partition(month)
          FROM (SELECT DISTINCT date_trunc('month', least(to_timestamp(at), now()), 'UTC') AS month
                  FROM json_to_recordset(%(visits)s) AS visits (at float8)
                 WHERE at IS NOT NULL) months
        """,
        visits=visits,
    )
