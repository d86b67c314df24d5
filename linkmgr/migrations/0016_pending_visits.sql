-- Store visits faster: the trigger queues them for the rollups, and a function counts many of them at once. The
-- previous version's statements fire the trigger as well. Its job calls roll_up(visits[]), which queues
-- them too. Nothing here reads or changes the rows of a large table.

DROP INDEX target_breakdowns_target_id_dimension_total_label_idx;
ALTER TABLE target_breakdowns SET (fillfactor = 70);

-- Visits that are stored and not yet in the rollups.
CREATE TABLE pending_visits (
    user_id   bigint      NOT NULL,
    target_id bigint      NOT NULL,
    at        timestamptz NOT NULL,
    country   text        NOT NULL,
    referrer  text        NOT NULL,
    browser   text        NOT NULL,
    os        text        NOT NULL,
    bot       boolean     NOT NULL,
    device    text        NOT NULL,
    city      text        NOT NULL,
    language  text        NOT NULL
);
CREATE INDEX ON pending_visits (target_id);

-- Pending visits as rows of rollups, with the labels under which roll_up_pending() counts them. `visit` identifies the
-- visit.
CREATE VIEW pending_rollups AS
SELECT p.ctid AS visit, user_id, target_id, dimension, date_bin('15 minutes', at, 'epoch') AS at,
       CASE WHEN dimension NOT IN ('referrer', 'browser', 'os', 'city') OR bot AND dimension = 'browser'
              OR label IN ('Unknown', 'Direct, email and other')
              OR EXISTS (SELECT FROM target_breakdowns b
                          WHERE b.target_id = p.target_id AND b.dimension = labels.dimension AND b.label = labels.label)
            THEN label ELSE 'Other' END AS label,
       bot, 1::bigint AS visits
  FROM pending_visits p,
       LATERAL (VALUES ('', ''), ('target', target_id::text), ('country', country), ('city', city),
                       ('referrer', referrer), ('browser', browser), ('os', os), ('device', device),
                       ('language', language)) AS labels (dimension, label);

-- The rollups of targets and accounts with the pending visits.
CREATE VIEW current_target_quarters AS
SELECT target_id, at, bot, visits, labels FROM target_quarters
 UNION ALL
SELECT target_id, date_bin('15 minutes', at, 'epoch'), bot, 1,
       (SELECT jsonb_object_agg(dimension, jsonb_build_object(label, 1))
          FROM pending_rollups
         WHERE visit = p.ctid AND dimension NOT IN ('', 'target'))
  FROM pending_visits p;

CREATE VIEW current_account_rollups AS
SELECT user_id, dimension, at, label, bot, visits FROM account_rollups
 UNION ALL
SELECT user_id, dimension, at, label, bot, visits FROM pending_rollups;

CREATE VIEW current_account_days AS
SELECT user_id, dimension, day, label, bot, visits FROM account_days
 UNION ALL
SELECT user_id, dimension, (at AT TIME ZONE 'UTC')::date, label, bot, visits FROM pending_rollups;

-- Days (UTC) of the targets that have many visits, in addition to their quarters of an hour.
CREATE TABLE busy_days (
    target_id bigint  NOT NULL,
    day       date    NOT NULL,
    bot       boolean NOT NULL,
    visits    bigint  NOT NULL,
    labels    jsonb   NOT NULL,
    PRIMARY KEY (target_id, day, bot)
) WITH (fillfactor = 80);

CREATE OR REPLACE VIEW target_rollups AS
SELECT target_id, '' AS dimension, at, '' AS label, bot, visits FROM current_target_quarters
 UNION ALL
SELECT target_id, 'country', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'country')
 UNION ALL
SELECT target_id, 'city', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'city')
 UNION ALL
SELECT target_id, 'referrer', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'referrer')
 UNION ALL
SELECT target_id, 'browser', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'browser')
 UNION ALL
SELECT target_id, 'os', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'os')
 UNION ALL
SELECT target_id, 'device', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'device')
 UNION ALL
SELECT target_id, 'language', at, key, bot, value::bigint
  FROM current_target_quarters, jsonb_each_text(labels -> 'language');

CREATE OR REPLACE FUNCTION roll_up_inserted() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    WITH owners AS MATERIALIZED (
        SELECT target_id, coalesce((SELECT user_id FROM links WHERE id = target_id),
                                   (SELECT user_id FROM qrs WHERE id = target_id)) AS user_id
          FROM (SELECT DISTINCT target_id FROM inserted) targets)
    INSERT INTO pending_visits (user_id, target_id, at, country, referrer, browser, os, bot, device, city, language)
    SELECT user_id, target_id, at, country, referrer, browser, os, bot, device, city, language
      FROM inserted JOIN owners USING (target_id)
     WHERE user_id IS NOT NULL;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION roll_up(batch visits[]) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    WITH owners AS MATERIALIZED (
        SELECT target_id, coalesce((SELECT user_id FROM links WHERE id = target_id),
                                   (SELECT user_id FROM qrs WHERE id = target_id)) AS user_id
          FROM (SELECT DISTINCT target_id FROM unnest(batch)) targets)
    INSERT INTO pending_visits (user_id, target_id, at, country, referrer, browser, os, bot, device, city, language)
    SELECT user_id, target_id, at, country, referrer, browser, os, bot, device, city, language
      FROM unnest(batch) JOIN owners USING (target_id)
     WHERE user_id IS NOT NULL;
END $$;

-- Compute the statistics of targets. The rows are locked before the statement that reads what it stores, so that no
-- visit is stored meanwhile. Those that are locked because a visit is being stored are skipped: that visit is pending.
CREATE FUNCTION compute_statistics(targets bigint[]) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    locked bigint[] := ARRAY(SELECT target_id FROM totals WHERE target_id = ANY (targets)
                              ORDER BY target_id FOR NO KEY UPDATE SKIP LOCKED);
BEGIN
    UPDATE totals SET statistics = (SELECT data FROM statistics s WHERE s.target_id = totals.target_id)
     WHERE target_id = ANY (locked);
END $$;

-- Wait for other transactions that change rollups.
CREATE FUNCTION lock_rollups() RETURNS void LANGUAGE sql
RETURN pg_advisory_xact_lock('target_quarters'::regclass::oid::bigint);

-- Store the days of a target that has many visits.
CREATE FUNCTION keep_days(target bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_rollups();
    INSERT INTO busy_days (target_id, day, bot, visits, labels)
    SELECT target, day, bot, counts.visits, sums.labels
      FROM (SELECT (at AT TIME ZONE 'UTC')::date AS day, bot, sum(visits) AS visits
              FROM target_quarters
             WHERE target_id = target
             GROUP BY day, bot) counts
      JOIN (SELECT day, bot, json_object_agg(dimension, labels) AS labels
              FROM (SELECT day, bot, dimension, json_object_agg(label, visits) AS labels
                      FROM (SELECT (at AT TIME ZONE 'UTC')::date AS day, bot, dimensions.key AS dimension,
                                   labels.key AS label, sum(labels.value::bigint) AS visits
                              FROM target_quarters,
                                   jsonb_each(target_quarters.labels) AS dimensions,
                                   jsonb_each_text(dimensions.value) AS labels
                             WHERE target_id = target
                             GROUP BY 1, 2, 3, 4) per_label
                     GROUP BY day, bot, dimension) per_dimension
             GROUP BY day, bot) sums USING (day, bot)
     WHERE NOT EXISTS (SELECT FROM busy_days WHERE target_id = target);
END $$;

-- Move pending visits to the rollups, and compute the statistics of their targets. Return the number of visits, and the
-- targets that have enough visits for keep_days(). The statement that deletes the visits adds them to the rollups, so
-- that a reader counts each once. A deleted target or user gets no rows.
CREATE FUNCTION roll_up_pending(max_visits integer, OUT counted integer, OUT popular bigint[])
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    targets bigint[];
BEGIN
    PERFORM lock_rollups();
    WITH taken AS (
        DELETE FROM pending_visits
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM pending_visits LIMIT max_visits))
        RETURNING *, date_bin('15 minutes', at, 'epoch') AS quarter),
    existing AS MATERIALIZED (
        SELECT target_id
          FROM (SELECT DISTINCT target_id FROM taken) taken
         WHERE (SELECT true FROM links WHERE id = target_id) OR (SELECT true FROM qrs WHERE id = target_id)),
    labels AS (
        SELECT user_id, target_id, quarter, bot, count(*) AS visits,
               CASE GROUPING(country, city, referrer, browser, os, device, language)
                    WHEN 63 THEN 'country' WHEN 95 THEN 'city' WHEN 111 THEN 'referrer' WHEN 119 THEN 'browser'
                    WHEN 123 THEN 'os' WHEN 125 THEN 'device' WHEN 126 THEN 'language' ELSE '' END AS dimension,
               coalesce(country, city, referrer, browser, os, device, language, '') AS label
          FROM taken
         WHERE (SELECT true FROM users WHERE id = user_id)
         GROUP BY user_id, target_id, quarter, bot, GROUPING SETS (
               (), (country), (city), (referrer), (browser), (os), (device), (language))),
    -- LIMIT: PostgreSQL must not read the whole table to answer for all labels at once.
    bounded AS MATERIALIZED (
        SELECT user_id, target_id, quarter, bot, dimension, label, sum(visits) AS visits
          FROM (SELECT user_id, target_id, quarter, bot, dimension, visits,
                       CASE WHEN dimension NOT IN ('referrer', 'browser', 'os', 'city')
                              OR bot AND dimension = 'browser' OR label IN ('Unknown', 'Direct, email and other')
                              OR (SELECT true FROM target_breakdowns b
                                   WHERE b.target_id = l.target_id AND b.dimension = l.dimension
                                     AND b.label = l.label
                                   LIMIT 1)
                            THEN label ELSE 'Other' END AS label
                  FROM labels l) capped
         GROUP BY user_id, target_id, quarter, bot, dimension, label
         ORDER BY target_id, quarter, bot, dimension),
    targets_added AS (
        INSERT INTO target_quarters AS t (target_id, at, bot, visits, labels)
        SELECT target_id, quarter, bot, sum(visits) FILTER (WHERE dimension = ''),
               json_object_agg(dimension, labels) FILTER (WHERE dimension <> '')
          FROM (SELECT target_id, quarter, bot, dimension, sum(visits) AS visits,
                       json_object_agg(label, visits) AS labels
                  FROM bounded
                 WHERE target_id IN (SELECT target_id FROM existing)
                 GROUP BY target_id, quarter, bot, dimension) per_dimension
         GROUP BY target_id, quarter, bot
         ORDER BY target_id, quarter, bot
        ON CONFLICT (target_id, at, bot) DO UPDATE
           SET visits = t.visits + excluded.visits, labels = add_labels(t.labels, excluded.labels)),
    busy AS MATERIALIZED (
        SELECT target_id
          FROM existing
         WHERE (SELECT true FROM busy_days b WHERE b.target_id = existing.target_id LIMIT 1)),
    busy_added AS (
        INSERT INTO busy_days AS t (target_id, day, bot, visits, labels)
        SELECT target_id, day, bot, sum(visits) FILTER (WHERE dimension = ''),
               json_object_agg(dimension, labels) FILTER (WHERE dimension <> '')
          FROM (SELECT target_id, day, bot, dimension, sum(visits) AS visits, json_object_agg(label, visits) AS labels
                  FROM (SELECT target_id, (quarter AT TIME ZONE 'UTC')::date AS day, bot, dimension, label,
                               sum(visits) AS visits
                          FROM bounded
                         WHERE target_id IN (SELECT target_id FROM busy)
                         GROUP BY 1, 2, 3, 4, 5) per_label
                 GROUP BY target_id, day, bot, dimension) per_dimension
         GROUP BY target_id, day, bot
        ON CONFLICT (target_id, day, bot) DO UPDATE
           SET visits = t.visits + excluded.visits, labels = add_labels(t.labels, excluded.labels)),
    account AS MATERIALIZED (
        SELECT user_id, dimension, quarter, label, bot, sum(visits) AS visits
          FROM (SELECT user_id, dimension, quarter, label, bot, visits FROM bounded
                 UNION ALL
                SELECT user_id, 'target', quarter, target_id::text, bot, visits FROM bounded
                 WHERE dimension = '') all_dimensions
         GROUP BY user_id, dimension, quarter, label, bot),
    account_added AS (
        INSERT INTO account_rollups AS r (user_id, dimension, at, label, bot, visits)
        SELECT user_id, dimension, quarter, label, bot, visits FROM account ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits),
    days_added AS (
        INSERT INTO account_days AS r (user_id, dimension, day, label, bot, visits)
        SELECT user_id, dimension, (quarter AT TIME ZONE 'UTC')::date AS day, label, bot, sum(visits)
          FROM account
         GROUP BY user_id, dimension, day, label, bot
         ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (user_id, dimension, day, label, bot) DO UPDATE SET visits = r.visits + excluded.visits)
    SELECT count(*), array_agg(DISTINCT target_id) FILTER (WHERE NOT bot) INTO counted, targets FROM taken;
    PERFORM compute_statistics(targets);
    popular := ARRAY(SELECT target_id FROM totals
                      WHERE target_id = ANY (targets) AND clicks >= 1000
                        AND NOT EXISTS (SELECT FROM busy_days b WHERE b.target_id = totals.target_id));
END $$;

-- Start of the visits of users whose plan kept them for a shorter time before: the purge may have deleted older ones.
CREATE TABLE detailed_since (
    user_id bigint      PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    since   timestamptz NOT NULL
);

CREATE FUNCTION keep_detailed_since() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    plan plans;
BEGIN
    IF TG_TABLE_NAME = 'plans' THEN
        plan := OLD;
    ELSE
        SELECT * INTO plan FROM plans
         WHERE id = CASE WHEN OLD.plan_id IS NOT NULL AND (OLD.expires IS NULL OR OLD.expires > now()) THEN OLD.plan_id
                         ELSE (SELECT min(id) FROM plans WHERE free) END;
    END IF;
    INSERT INTO detailed_since AS d (user_id, since)
    SELECT id, since
      FROM (SELECT now() - make_interval(days => nullif((plan.limits ->> 'retention')::int, 0)) AS since) start,
           accounts
     WHERE (TG_TABLE_NAME = 'plans' AND planid = OLD.id OR TG_TABLE_NAME = 'users' AND id = OLD.id)
       AND registered < since
    ON CONFLICT (user_id) DO UPDATE SET since = greatest(d.since, excluded.since);
    RETURN NULL;
END $$;
CREATE TRIGGER detailed_since_on_update AFTER UPDATE OF plan_id, expires ON users FOR EACH ROW
    WHEN ((OLD.plan_id, OLD.expires) IS DISTINCT FROM (NEW.plan_id, NEW.expires))
    EXECUTE FUNCTION keep_detailed_since();
CREATE TRIGGER detailed_since_on_update AFTER UPDATE OF limits ON plans FOR EACH ROW
    WHEN (OLD.limits ->> 'retention' IS DISTINCT FROM NEW.limits ->> 'retention')
    EXECUTE FUNCTION keep_detailed_since();
