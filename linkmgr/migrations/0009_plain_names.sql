-- Give database objects descriptive names. Nothing here reads or changes the rows of a large table. The views `hits`
-- and `tallies` and the column usage.step remain for the previous version; the next migration drops them. The previous
-- version cannot create partitions any more, which exist for two months ahead.

DROP FUNCTION keep_usage, keep_link_alias, enqueue_cleanup CASCADE;

CREATE FUNCTION update_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    counter record;
    plan    record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE usage SET total = total - counts.number
          FROM (SELECT user_id, count(*) AS number FROM deleted GROUP BY user_id) counts
         WHERE usage.user_id = counts.user_id AND kind = TG_TABLE_NAME;
        RETURN NULL;
    END IF;
    FOR counter IN
        INSERT INTO usage AS u (user_id, kind, total)
        SELECT user_id, TG_TABLE_NAME, count(*) FROM inserted GROUP BY user_id
        ON CONFLICT (user_id, kind) DO UPDATE SET total = u.total + excluded.total
        RETURNING u.user_id, u.total
    LOOP
        CONTINUE WHEN TG_NARGS = 0;
        SELECT (limits -> TG_ARGV[0] ->> 'enabled') = '1' AS enabled,
               CASE json_typeof(limits -> TG_ARGV[0]) WHEN 'object'
                    THEN coalesce((limits -> TG_ARGV[0] ->> 'count')::bigint, 0)
                    ELSE (limits ->> TG_ARGV[0])::bigint END AS count
          INTO plan FROM accounts WHERE id = counter.user_id AND NOT admin;
        IF NOT plan.enabled THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'plan_feature',
                MESSAGE = 'feature', DETAIL = replace(TG_TABLE_NAME, '_', ' ');
        ELSIF plan.count > 0 AND counter.total > plan.count THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'plan_limit',
                MESSAGE = 'limit', DETAIL = plan.count || ' ' || replace(TG_TABLE_NAME, '_', ' ');
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION enqueue_cleanup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        INSERT INTO jobs (kind, argument) SELECT 'users_deleted', jsonb_build_object('user_id', id) FROM deleted;
    ELSE
        INSERT INTO jobs (kind, argument)
        SELECT TG_TABLE_NAME || '_deleted', jsonb_build_object('user_id', user_id, 'ids', jsonb_agg(id))
          FROM (SELECT user_id, id, row_number() OVER (PARTITION BY user_id) / 1000 AS batch FROM deleted) numbered
         GROUP BY user_id, batch;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION sync_link_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO aliases (alias, domain_id, link_id) SELECT alias, coalesce(domain_id, 0), id FROM inserted;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE aliases SET alias = NEW.alias, domain_id = coalesce(NEW.domain_id, 0)
         WHERE alias = OLD.alias AND domain_id = coalesce(OLD.domain_id, 0);
    ELSE
        DELETE FROM aliases WHERE alias = OLD.alias AND domain_id = coalesce(OLD.domain_id, 0);
    END IF;
    RETURN NULL;
END $$;

ALTER FUNCTION keep_bio_alias RENAME TO sync_bio_alias;

CREATE OR REPLACE FUNCTION require_reference() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    referenced integer;
BEGIN
    EXECUTE format('SELECT 1 FROM %I WHERE user_id = $1.user_id AND id = $1.%I FOR KEY SHARE', TG_ARGV[0], TG_ARGV[1])
       INTO referenced USING NEW;
    IF referenced IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_ARGV[2], MESSAGE = 'no such row';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER enqueue_cleanup AFTER DELETE ON users REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON domains REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage('domain');
CREATE TRIGGER subtract_usage AFTER DELETE ON domains REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER add_usage AFTER INSERT ON splash_pages REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage('splash');
CREATE TRIGGER subtract_usage AFTER DELETE ON splash_pages REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON splash_pages REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON overlays REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage('overlay');
CREATE TRIGGER subtract_usage AFTER DELETE ON overlays REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON overlays REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON pixels REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage('pixels');
CREATE TRIGGER subtract_usage AFTER DELETE ON pixels REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON pixels REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON campaigns REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage('bundle');
CREATE TRIGGER subtract_usage AFTER DELETE ON campaigns REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON campaigns REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON links REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage('links');
CREATE TRIGGER subtract_usage AFTER DELETE ON links REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON links REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON bios REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER subtract_usage AFTER DELETE ON bios REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER alias_on_insert AFTER INSERT ON links REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION sync_link_alias();
CREATE TRIGGER alias_on_update AFTER UPDATE OF alias, domain_id ON links FOR EACH ROW
    WHEN ((NEW.alias, NEW.domain_id) IS DISTINCT FROM (OLD.alias, OLD.domain_id)) EXECUTE FUNCTION sync_link_alias();
CREATE TRIGGER alias_on_delete AFTER DELETE ON links FOR EACH ROW EXECUTE FUNCTION sync_link_alias();
CREATE TRIGGER add_usage AFTER INSERT ON qrs REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER subtract_usage AFTER DELETE ON qrs REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON qrs REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER add_usage AFTER INSERT ON channels REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER subtract_usage AFTER DELETE ON channels REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON channels REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();

ALTER TRIGGER new_aim ON domains RENAME TO redirects_on_insert;
ALTER TRIGGER other_aim ON domains RENAME TO redirects_on_update;
ALTER TRIGGER new_overlay ON overlay_answers RENAME TO overlay_on_insert;
ALTER TRIGGER new_campaign ON links RENAME TO campaign_on_insert;
ALTER TRIGGER other_campaign ON links RENAME TO campaign_on_update;
ALTER TRIGGER new_splash ON links RENAME TO splash_on_insert;
ALTER TRIGGER other_splash ON links RENAME TO splash_on_update;
ALTER TRIGGER new_overlay ON links RENAME TO overlay_on_insert;
ALTER TRIGGER other_overlay ON links RENAME TO overlay_on_update;
ALTER TRIGGER new_alias ON links RENAME TO custom_alias_on_insert;
ALTER TRIGGER other_alias ON links RENAME TO custom_alias_on_update;
ALTER TRIGGER new_geo ON links RENAME TO geo_on_insert;
ALTER TRIGGER other_geo ON links RENAME TO geo_on_update;
ALTER TRIGGER new_device ON links RENAME TO device_on_insert;
ALTER TRIGGER other_device ON links RENAME TO device_on_update;
ALTER TRIGGER new_parameters ON links RENAME TO parameters_on_insert;
ALTER TRIGGER other_parameters ON links RENAME TO parameters_on_update;
ALTER TRIGGER new_pixel ON link_pixels RENAME TO pixel_on_insert;
ALTER TRIGGER new_custom ON bios RENAME TO custom_alias_on_insert;
ALTER TRIGGER other_custom ON bios RENAME TO custom_alias_on_update;
ALTER TRIGGER alias_insert ON bios RENAME TO alias_on_insert;
ALTER TRIGGER alias_update ON bios RENAME TO alias_on_update;
ALTER TRIGGER alias_delete ON bios RENAME TO alias_on_delete;
ALTER TRIGGER aim ON qrs RENAME TO link_on_insert_or_update;
ALTER TRIGGER new_channel ON channel_items RENAME TO channel_on_insert;

DROP FUNCTION make_months, make_month, drop_month;
DROP VIEW months;

CREATE FUNCTION create_partition(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
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
    EXECUTE format('CREATE TABLE %I (LIKE visits)', partition);
    EXECUTE format('ALTER TABLE visits ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   partition, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
END $$;

CREATE FUNCTION create_partitions() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR ahead IN 0..2 LOOP
        PERFORM create_partition(now() + make_interval(months => ahead));
    END LOOP;
END $$;

CREATE VIEW partitions AS
SELECT partition, bounds[1]::timestamptz AS since, bounds[2]::timestamptz AS until
  FROM (SELECT oid::regclass AS partition,
               regexp_match(pg_get_expr(relpartbound, oid), 'FROM \(''(.+)''\) TO \(''(.+)''\)') AS bounds
          FROM pg_class
         WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'visits'::regclass)) bounded;

CREATE FUNCTION drop_partition(partition regclass, if_empty boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    has_visits boolean := false;
BEGIN
    EXECUTE format('LOCK TABLE ONLY visits, ONLY %s IN ACCESS EXCLUSIVE MODE', partition);
    IF if_empty THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', partition) INTO has_visits;
    END IF;
    IF NOT has_visits THEN
        EXECUTE format('DROP TABLE %s', partition);
    END IF;
    RETURN NOT has_visits;
END $$;

ALTER TABLE usage ADD last_added bigint NOT NULL DEFAULT 0;

ALTER TABLE tallies RENAME TO target_breakdowns;
ALTER INDEX tallies_target_id_dimension_total_label_idx
    RENAME TO target_breakdowns_target_id_dimension_total_label_idx;
CREATE VIEW tallies AS SELECT ctid, * FROM target_breakdowns;

CREATE OR REPLACE VIEW statistics AS
SELECT target_id,
       json_build_object(
           'clicks', clicks,
           'uniqueClicks', visitors,
           'topCountries', top_labels -> 'country',
           'topReferrers', top_labels -> 'referrer',
           'topBrowsers', top_labels -> 'browser',
           'topOs', top_labels -> 'os',
           'socialCount', json_build_object(
               'facebook', coalesce((top_labels -> 'social' ->> 'facebook')::bigint, 0),
               'twitter', coalesce((top_labels -> 'social' ->> 'twitter')::bigint, 0),
               'instagram', coalesce((top_labels -> 'social' ->> 'instagram')::bigint, 0))) AS data
  FROM totals
 CROSS JOIN LATERAL (
       SELECT json_object_agg(dimension, coalesce(labels, '{}')) AS top_labels
         FROM unnest(ARRAY['country', 'referrer', 'browser', 'os', 'social']) AS dimensions (dimension)
        CROSS JOIN LATERAL (
              SELECT json_object_agg(label, total::text) AS labels
                FROM (SELECT label, total
                        FROM target_breakdowns b
                       WHERE b.target_id = totals.target_id AND b.dimension = dimensions.dimension
                       ORDER BY total DESC, label
                       LIMIT 10) ranked) per_dimension) per_target;

ALTER TABLE hits RENAME TO rate_windows;
ALTER INDEX hits_until_idx RENAME TO rate_windows_until_idx;
CREATE VIEW hits AS SELECT * FROM rate_windows;

-- From PostgreSQL 18 on, NOT NULL is a constraint with a name.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I',
                      conrelid::regclass, conname, regexp_replace(conname, '^(hits|tallies)', conrelid::regclass::text))
          FROM pg_constraint
         WHERE conrelid IN ('target_breakdowns'::regclass, 'rate_windows'::regclass)
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
