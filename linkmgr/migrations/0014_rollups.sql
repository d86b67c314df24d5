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

CREATE TABLE target_rollups (
    target_id bigint      NOT NULL,
    dimension text        NOT NULL,
    at        timestamptz NOT NULL,
    label     text        NOT NULL,
    bot       boolean     NOT NULL,
    visits    bigint      NOT NULL,
    PRIMARY KEY (target_id, dimension, at, label, bot)
) WITH (fillfactor = 90);

CREATE TABLE account_rollups (
    user_id   bigint      NOT NULL,
    dimension text        NOT NULL,
    at        timestamptz NOT NULL,
    label     text        NOT NULL,
    bot       boolean     NOT NULL,
    visits    bigint      NOT NULL,
    PRIMARY KEY (user_id, dimension, at, label, bot)
) WITH (fillfactor = 90);

CREATE TABLE account_days (
    user_id   bigint  NOT NULL,
    dimension text    NOT NULL,
    day       date    NOT NULL,
    label     text    NOT NULL,
    bot       boolean NOT NULL,
    visits    bigint  NOT NULL,
    PRIMARY KEY (user_id, dimension, day, label, bot)
) WITH (fillfactor = 90);

CREATE TABLE target_days (
    target_id bigint  NOT NULL,
    dimension text    NOT NULL,
    day       date    NOT NULL,
    label     text    NOT NULL,
    bot       boolean NOT NULL,
    visits    bigint  NOT NULL,
    PRIMARY KEY (target_id, dimension, day, label, bot)
);

CREATE FUNCTION roll_up_visits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH owned AS MATERIALIZED (
        SELECT v.*, coalesce((SELECT user_id FROM links WHERE links.id = v.target_id),
                             (SELECT user_id FROM qrs WHERE qrs.id = v.target_id)) AS user_id,
               date_bin('15 minutes', v.at, 'epoch') AS quarter
          FROM inserted v),
    labels AS (
        SELECT user_id, target_id, dimension, quarter, label, bot, count(*) AS visits
          FROM owned,
               LATERAL (VALUES ('', ''), ('country', country), ('city', city), ('referrer', referrer),
                               ('browser', browser), ('os', os), ('device', device), ('language', language)
                       ) AS dimensions (dimension, label)
         WHERE user_id IS NOT NULL
         GROUP BY user_id, target_id, dimension, quarter, label, bot),
    bounded AS MATERIALIZED (
        SELECT user_id, target_id, dimension, quarter, bot, visits,
               CASE WHEN dimension IN ('', 'country', 'device', 'language') OR dimension = 'city' AND label = 'Unknown'
                      OR EXISTS (SELECT FROM target_breakdowns b
                                  WHERE b.target_id = l.target_id AND b.dimension = l.dimension AND b.label = l.label)
                    THEN label ELSE 'Other' END AS label
          FROM labels l),
    target_rollups_added AS (
        INSERT INTO target_rollups AS r (target_id, dimension, at, label, bot, visits)
        SELECT target_id, dimension, quarter, label, bot, sum(visits)
          FROM bounded
         GROUP BY target_id, dimension, quarter, label, bot
         ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (target_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits),
    account AS MATERIALIZED (
        SELECT user_id, dimension, quarter, label, bot, sum(visits) AS visits
          FROM (SELECT user_id, dimension, quarter, label, bot, visits FROM bounded
                 UNION ALL
                SELECT user_id, 'target', quarter, target_id::text, bot, visits FROM bounded
                 WHERE dimension = '') all_dimensions
         GROUP BY user_id, dimension, quarter, label, bot),
    account_rollups_added AS (
        INSERT INTO account_rollups AS r (user_id, dimension, at, label, bot, visits)
        SELECT user_id, dimension, quarter, label, bot, visits FROM account ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits)
    INSERT INTO account_days AS r (user_id, dimension, day, label, bot, visits)
    SELECT user_id, dimension, (quarter AT TIME ZONE 'UTC')::date AS day, label, bot, sum(visits)
      FROM account
     GROUP BY user_id, dimension, day, label, bot
     ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (user_id, dimension, day, label, bot) DO UPDATE SET visits = r.visits + excluded.visits;

    UPDATE totals SET statistics = (SELECT data FROM statistics s WHERE s.target_id = totals.target_id)
     WHERE target_id IN (SELECT target_id FROM inserted WHERE NOT bot);
    RETURN NULL;
END $$;
CREATE TRIGGER roll_up AFTER INSERT ON visits REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION roll_up_visits();

INSERT INTO jobs (kind, argument) VALUES ('fill_rollups', '{}');
