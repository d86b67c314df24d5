"""Rollups: sums of visits by quarter of an hour, day and label, and the most frequent labels of links and QR codes.

A visit is pending when it is stored (linkmgr/repository/visits.py), until many of them are counted at once.
"""

from psycopg2.errors import QueryCanceled

from linkmgr.db.statements import UNSYNCED, database

MAX_PENDING = 5000
# Labels of a link or QR code in a dimension. Clients can send any number of referrers and browsers, which would fill
# the disk, so all further labels are counted as OTHER.
MAX_LABELS = 1000
OTHER = "Other"
DETAILED_DAYS = 400  # older rollups have only days

# Another process that counts waits, and then sees the rollups as this one has left them. PostgreSQL does not know how
# many visits there are: it would scan tables, and join thousands of labels by nested loops. Those of LATERAL remain.
_LOCK = "SELECT pg_advisory_xact_lock('tracked_rollups'::regclass::oid::bigint); "
_LOCKED = (
    f"{UNSYNCED}SET LOCAL enable_seqscan = off; SET LOCAL enable_nestloop = off; SET LOCAL work_mem = '64MB'; {_LOCK}"
)
# A reader counts each visit once, because the statement that deletes pending visits adds them to the rollups. A deleted
# link, QR code or user gets no rows.
ROLL_UP = """
    WITH chosen AS MATERIALIZED (
        SELECT ARRAY(SELECT ctid FROM pending_visits LIMIT %(limit)s) AS visits),
    taken AS (
        DELETE FROM pending_visits WHERE ctid = ANY ((SELECT visits FROM chosen)::tid[])
        RETURNING *),
    existing AS MATERIALIZED (
        SELECT tracked_id
          FROM (SELECT DISTINCT tracked_id FROM taken) taken
         WHERE (SELECT true FROM links WHERE id = tracked_id) OR (SELECT true FROM qrs WHERE id = tracked_id)),
    owners AS MATERIALIZED (
        SELECT user_id
          FROM (SELECT DISTINCT user_id FROM taken) taken
         WHERE (SELECT true FROM users WHERE id = user_id)),
    seen AS MATERIALIZED (
        SELECT user_id, tracked_id, bot, quarter, count(*) AS visits,
               CASE GROUPING(country, city, referrer, browser, os, device, language, social)
                    WHEN 127 THEN 'country' WHEN 191 THEN 'city' WHEN 223 THEN 'referrer' WHEN 239 THEN 'browser'
                    WHEN 247 THEN 'os' WHEN 251 THEN 'device' WHEN 253 THEN 'language' WHEN 254 THEN 'social'
                    ELSE '' END AS dimension,
               coalesce(country, city, referrer, browser, os, device, language, social, '') AS label
          FROM (SELECT *, date_bin('15 minutes', at, 'epoch') AS quarter FROM taken) taken
         GROUP BY user_id, tracked_id, bot, quarter, GROUPING SETS (
               (), (country), (city), (referrer), (browser), (os), (device), (language), (social))),
    -- A link or QR code has at most as many labels as visits.
    crowded AS MATERIALIZED (
        SELECT added.tracked_id, added.bot, dimension, coalesce(stored, '{}') || '{}' AS stored,
               (SELECT count(*) FROM jsonb_object_keys(stored)) AS used
          FROM (SELECT tracked_id, bot, sum(visits) AS visits FROM seen WHERE dimension = '' GROUP BY 1, 2) added
          LEFT JOIN LATERAL (SELECT * FROM tracked_rollups
                              WHERE tracked_id = added.tracked_id AND unit = 'all' AND bot = added.bot
                              LIMIT 1) r ON true
         CROSS JOIN LATERAL (VALUES ('country', country), ('city', city), ('referrer', referrer),
                                    ('browser', browser), ('os', os)) AS labels (dimension, stored)
         WHERE added.visits + coalesce(r.visits, 0) > %(max_labels)s),
    excess AS MATERIALIZED (
        SELECT tracked_id, bot, dimension, label, true AS is_other
          FROM (SELECT tracked_id, bot, dimension, label, used,
                       row_number() OVER (PARTITION BY tracked_id, bot, dimension ORDER BY sum(visits) DESC, label)
                           AS rank
                  FROM seen JOIN crowded USING (tracked_id, bot, dimension)
                 WHERE (stored -> label) IS NULL
                 GROUP BY tracked_id, bot, dimension, label, used) new
         WHERE rank + used > %(max_labels)s),
    counted AS (
        SELECT user_id, tracked_id, bot, quarter, dimension, CASE WHEN is_other THEN %(other)s ELSE label END AS label,
               visits
          FROM seen LEFT JOIN excess USING (tracked_id, bot, dimension, label)
         WHERE dimension <> 'social' OR label <> ''),
    account AS MATERIALIZED (
        SELECT user_id, dimension, quarter, label, bot, sum(visits) AS visits
          FROM (SELECT user_id, dimension, quarter, label, bot, visits FROM counted WHERE dimension <> 'social'
                 UNION ALL
                SELECT user_id, 'target', quarter, tracked_id::text, bot, visits FROM counted
                 WHERE dimension = '') labels
          JOIN owners USING (user_id)
         GROUP BY 1, 2, 3, 4, 5),
    account_added AS (
        INSERT INTO account_rollups AS r (user_id, dimension, unit, at, label, bot, visits)
        SELECT user_id, dimension, unit, at, label, bot, sum(visits)
          FROM account,
               LATERAL (VALUES ('quarter', quarter), ('day', date_trunc('day', quarter, 'UTC'))) AS units (unit, at)
         GROUP BY 1, 2, 3, 4, 5, 6
         ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (user_id, dimension, unit, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits),
    -- Only 'all' has networks, and it lacks the labels that no statistics of all time show.
    added AS MATERIALIZED (
        SELECT tracked_id, unit, bot, at, dimension, label, sum(visits) AS n
          FROM existing JOIN counted USING (tracked_id),
               LATERAL (VALUES ('quarter', quarter), ('day', date_trunc('day', quarter, 'UTC')), ('all', '-infinity')
                       ) AS units (unit, at)
         WHERE dimension <> ALL (CASE unit WHEN 'all' THEN '{device,language}'::text[] ELSE '{social}' END)
         GROUP BY 1, 2, 3, 4, 5, 6),
    -- A concatenation is not compressed, which saves decompressing it for each of its labels.
    stored AS MATERIALIZED (
        SELECT tracked_id, unit, bot, at, coalesce(r.visits, 0) + n AS visits,
               country || '{}' AS country, city || '{}' AS city, referrer || '{}' AS referrer,
               browser || '{}' AS browser, os || '{}' AS os, device || '{}' AS device, language || '{}' AS language,
               social || '{}' AS social
          FROM added a
          LEFT JOIN LATERAL (SELECT visits, country, city, referrer, browser, os, device, language, social
                               FROM tracked_rollups
                              WHERE tracked_id = a.tracked_id AND unit = a.unit AND bot = a.bot AND at = a.at
                              LIMIT 1) r ON true
         WHERE dimension = ''),
    changed AS MATERIALIZED (
        SELECT tracked_id, unit, bot, at, visits,
               jsonb_object_agg(label, n + coalesce((country -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'country') AS country,
               jsonb_object_agg(label, n + coalesce((city -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'city') AS city,
               jsonb_object_agg(label, n + coalesce((referrer -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'referrer') AS referrer,
               jsonb_object_agg(label, n + coalesce((browser -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'browser') AS browser,
               jsonb_object_agg(label, n + coalesce((os -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'os') AS os,
               jsonb_object_agg(label, n + coalesce((device -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'device') AS device,
               jsonb_object_agg(label, n + coalesce((language -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'language') AS language,
               jsonb_object_agg(label, n + coalesce((social -> label)::bigint, 0))
                   FILTER (WHERE dimension = 'social') AS social
          FROM added JOIN stored USING (tracked_id, unit, bot, at)
         GROUP BY 1, 2, 3, 4, 5),
    tracked_stored AS (
        INSERT INTO tracked_rollups AS r (tracked_id, unit, bot, at, visits, country, city, referrer, browser, os,
                                          device, language, social)
        SELECT * FROM changed ORDER BY tracked_id, unit, bot, at
        ON CONFLICT (tracked_id, unit, bot, at) DO UPDATE
           SET visits = excluded.visits, country = r.country || excluded.country, city = r.city || excluded.city,
               referrer = r.referrer || excluded.referrer, browser = r.browser || excluded.browser,
               os = r.os || excluded.os, device = r.device || excluded.device,
               language = r.language || excluded.language, social = coalesce(r.social || excluded.social, r.social,
                                                                             excluded.social)),
    tops AS (
        SELECT tracked_id, visits, json_object_agg(dimension, top) AS labels
          FROM (SELECT tracked_id, visits, dimension, json_object_agg(label, number ORDER BY rank) AS top
                  FROM (SELECT tracked_id, changed.visits, dimension, l.key AS label, l.value::bigint AS number,
                               row_number() OVER (PARTITION BY tracked_id, dimension
                                                  ORDER BY l.value::bigint DESC, l.key COLLATE "C") AS rank
                          FROM changed JOIN stored s USING (tracked_id, unit, bot, at),
                               LATERAL (VALUES ('country', s.country, changed.country),
                                               ('referrer', s.referrer, changed.referrer),
                                               ('browser', s.browser, changed.browser), ('os', s.os, changed.os),
                                               ('social', s.social, changed.social)) AS labels (dimension, old, new),
                               jsonb_each_text(coalesce(old || new, old, new)) l
                         WHERE unit = 'all' AND NOT bot) ranked
                 WHERE rank <= 10
                 GROUP BY tracked_id, visits, dimension) per_dimension
         GROUP BY tracked_id, visits),
    -- A visit that is being stored has the row locked. Once it is counted, the next time stores the labels.
    unlocked AS MATERIALIZED (
        SELECT tracked_id FROM totals WHERE tracked_id = ANY (ARRAY(SELECT tracked_id FROM tops))
         ORDER BY tracked_id FOR NO KEY UPDATE SKIP LOCKED),
    totals_updated AS (
        INSERT INTO totals (tracked_id, clicks, visitors, counted, top_labels)
        SELECT tracked_id, 0, 0, visits, labels FROM tops JOIN unlocked USING (tracked_id)
        ON CONFLICT (tracked_id) DO UPDATE SET counted = excluded.counted, top_labels = excluded.top_labels)
    SELECT count(*) AS counted FROM taken
"""
# The quarters of an hour of some users, or of some links and QR codes, that are older than DETAILED_DAYS.
_ACCOUNTS = """
    WITH owners AS MATERIALIZED (
        SELECT id FROM users WHERE id > %(after)s ORDER BY id LIMIT %(ids)s),
    deleted AS (
        DELETE FROM account_rollups
         WHERE ctid = ANY (ARRAY(
                   SELECT old.ctid
                     FROM owners,
                          unnest('{"",country,city,referrer,browser,os,device,language,target}'::text[])
                              AS dimensions (name),
                          LATERAL (SELECT ctid FROM account_rollups
                                    WHERE user_id = owners.id AND dimension = name AND unit = 'quarter'
                                      AND at < date_trunc('day', now() - make_interval(days => %(days)s), 'UTC')
                                    LIMIT %(rows)s) old
                    LIMIT %(rows)s))
           AND unit = 'quarter'
        RETURNING 1)
    SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT max(id) FROM owners) AS last
"""
_TRACKED = """
    WITH tracked AS MATERIALIZED (
        SELECT tracked_id AS id FROM totals WHERE tracked_id > %(after)s ORDER BY tracked_id LIMIT %(ids)s),
    deleted AS (
        DELETE FROM tracked_rollups
         WHERE ctid = ANY (ARRAY(
                   SELECT old.ctid
                     FROM tracked, unnest('{false,true}'::boolean[]) AS kinds (is_bot),
                          LATERAL (SELECT ctid FROM tracked_rollups
                                    WHERE tracked_id = tracked.id AND unit = 'quarter' AND bot = is_bot
                                      AND at < date_trunc('day', now() - make_interval(days => %(days)s), 'UTC')
                                    LIMIT %(rows)s) old
                    LIMIT %(rows)s))
           AND unit = 'quarter'
        RETURNING 1)
    SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT max(id) FROM tracked) AS last
"""
MAX_IDS = 500
MAX_ROWS = 5000
_BY_INDEX = f"{UNSYNCED}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "


def roll_up() -> None:
    """Count the pending visits in the rollups."""
    limit, counted = MAX_PENDING, 1
    while counted:
        params = {"limit": limit, "max_labels": MAX_LABELS, "other": OTHER}
        try:
            [batch] = database().execute(ROLL_UP, params, idempotent=True, prelude=_LOCKED)
            counted = batch["counted"]
        except QueryCanceled:  # timeout
            if limit == 1:
                raise
            limit //= 2


def delete_quarters() -> None:
    """Delete the quarters of an hour that are older than DETAILED_DAYS. Their days remain."""
    for statement in (_TRACKED, _ACCOUNTS):
        after = 0
        while after is not None:
            params = {"after": after, "ids": MAX_IDS, "rows": MAX_ROWS, "days": DETAILED_DAYS}
            [batch] = database().execute(statement, params, idempotent=False, prelude=_BY_INDEX)
            if batch["deleted"] < MAX_ROWS:  # otherwise the same ones may have more
                after = batch["last"]
