-- Statistics over time: rollups of visits, which a trigger counts where visits are stored, and the statistics of each
-- target, computed there too. The previous version's statements fire the trigger as well. Nothing here reads or changes
-- the rows of a large table: a job counts the visits that there are.

ALTER TABLE visits
    ADD bot boolean NOT NULL DEFAULT false,
    ADD device text NOT NULL DEFAULT 'Unknown',
    ADD city text NOT NULL DEFAULT 'Unknown',
    ADD language text NOT NULL DEFAULT 'Unknown',
    ADD rolled boolean NOT NULL DEFAULT false;
ALTER TABLE visits ALTER rolled SET DEFAULT true;
ALTER TABLE totals ADD statistics json;

CREATE OR REPLACE FUNCTION create_partition(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    month     timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
    partition text      := to_char(month, '"visits_"YYYY_MM');
BEGIN
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock('visits'::regclass::oid::bigint);
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE visits INCLUDING DEFAULTS)', partition);
    EXECUTE format('ALTER TABLE visits ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   partition, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
END $$;

CREATE TABLE target_quarters (
    target_id bigint      NOT NULL,
    at        timestamptz NOT NULL,
    bot       boolean     NOT NULL,
    visits    bigint      NOT NULL,
    labels    jsonb       NOT NULL,
    PRIMARY KEY (target_id, at, bot)
) WITH (fillfactor = 80);

CREATE TABLE target_folds (
    target_id bigint  NOT NULL,
    day       date    NOT NULL,
    bot       boolean NOT NULL,
    visits    bigint  NOT NULL,
    labels    jsonb   NOT NULL,
    PRIMARY KEY (target_id, day, bot)
);

CREATE VIEW target_rollups AS
SELECT target_id, '' AS dimension, at, '' AS label, bot, visits FROM target_quarters
 UNION ALL
SELECT target_id, 'country', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'country')
 UNION ALL
SELECT target_id, 'city', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'city')
 UNION ALL
SELECT target_id, 'referrer', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'referrer')
 UNION ALL
SELECT target_id, 'browser', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'browser')
 UNION ALL
SELECT target_id, 'os', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'os')
 UNION ALL
SELECT target_id, 'device', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'device')
 UNION ALL
SELECT target_id, 'language', at, key, bot, value::bigint FROM target_quarters, jsonb_each_text(labels -> 'language');

CREATE VIEW target_days AS
SELECT target_id, '' AS dimension, day, '' AS label, bot, visits FROM target_folds
 UNION ALL
SELECT target_id, 'country', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'country')
 UNION ALL
SELECT target_id, 'city', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'city')
 UNION ALL
SELECT target_id, 'referrer', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'referrer')
 UNION ALL
SELECT target_id, 'browser', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'browser')
 UNION ALL
SELECT target_id, 'os', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'os')
 UNION ALL
SELECT target_id, 'device', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'device')
 UNION ALL
SELECT target_id, 'language', day, key, bot, value::bigint FROM target_folds, jsonb_each_text(labels -> 'language');

CREATE TABLE account_rollups (
    user_id   bigint      NOT NULL,
    dimension text        NOT NULL,
    at        timestamptz NOT NULL,
    label     text        NOT NULL,
    bot       boolean     NOT NULL,
    visits    bigint      NOT NULL,
    PRIMARY KEY (user_id, dimension, at, label, bot)
) WITH (fillfactor = 80);

CREATE TABLE account_days (
    user_id   bigint  NOT NULL,
    dimension text    NOT NULL,
    day       date    NOT NULL,
    label     text    NOT NULL,
    bot       boolean NOT NULL,
    visits    bigint  NOT NULL,
    PRIMARY KEY (user_id, dimension, day, label, bot)
) WITH (fillfactor = 80);

CREATE FUNCTION add_labels(one jsonb, other jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
RETURN (SELECT json_object_agg(dimension, labels)::jsonb  -- faster than jsonb_object_agg()
          FROM (SELECT dimension, json_object_agg(label, visits) AS labels
                  FROM (SELECT dimensions.key AS dimension, labels.key AS label, sum(labels.value::bigint) AS visits
                          FROM (VALUES (one), (other)) AS objects (object),
                               jsonb_each(object) AS dimensions,
                               jsonb_each_text(dimensions.value) AS labels
                         GROUP BY 1, 2) summed
                 GROUP BY dimension) per_dimension);

CREATE FUNCTION roll_up(batch visits[]) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    WITH owners AS MATERIALIZED (
        SELECT target_id, coalesce((SELECT user_id FROM links WHERE id = target_id),
                                   (SELECT user_id FROM qrs WHERE id = target_id)) AS user_id
          FROM (SELECT DISTINCT target_id FROM unnest(batch)) targets),
    labels AS (
        SELECT user_id, target_id, quarter, bot, count(*) AS visits,
               CASE GROUPING(country, city, referrer, browser, os, device, language)
                    WHEN 63 THEN 'country' WHEN 95 THEN 'city' WHEN 111 THEN 'referrer' WHEN 119 THEN 'browser'
                    WHEN 123 THEN 'os' WHEN 125 THEN 'device' WHEN 126 THEN 'language' ELSE '' END AS dimension,
               coalesce(country, city, referrer, browser, os, device, language, '') AS label
          FROM (SELECT v.*, date_bin('15 minutes', at, 'epoch') AS quarter FROM unnest(batch) AS v) quarters
          JOIN owners USING (target_id)
         WHERE user_id IS NOT NULL
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
                 GROUP BY target_id, quarter, bot, dimension) per_dimension
         GROUP BY target_id, quarter, bot
         ORDER BY target_id, quarter, bot
        ON CONFLICT (target_id, at, bot) DO UPDATE
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
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits)
    INSERT INTO account_days AS r (user_id, dimension, day, label, bot, visits)
    SELECT user_id, dimension, (quarter AT TIME ZONE 'UTC')::date AS day, label, bot, sum(visits)
      FROM account
     GROUP BY user_id, dimension, day, label, bot
     ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (user_id, dimension, day, label, bot) DO UPDATE SET visits = r.visits + excluded.visits;
END $$;

CREATE FUNCTION roll_up_inserted() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    batch visits[];
BEGIN
    FOR batch IN
        SELECT array_agg(visit)
          FROM (SELECT v::visits AS visit, row_number() OVER () / 10000 AS number FROM inserted v) numbered
         GROUP BY number
    LOOP
        PERFORM roll_up(batch);
    END LOOP;
    UPDATE totals SET statistics = (SELECT data FROM statistics s WHERE s.target_id = totals.target_id)
     WHERE target_id = ANY (ARRAY(SELECT target_id FROM inserted WHERE NOT bot));
    RETURN NULL;
END $$;
CREATE TRIGGER roll_up AFTER INSERT ON visits REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION roll_up_inserted();

INSERT INTO jobs (kind, argument) VALUES ('fill_rollups', '{}');
