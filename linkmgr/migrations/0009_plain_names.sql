-- Give database objects descriptive names. Nothing here reads or changes rows. The views `hits` and `tallies` and the
-- column usage.step remain for the previous version; the next migration drops them. Jobs that delete statistics fail in
-- the previous version and are retried: reload the service soon after the upgrade.

ALTER FUNCTION keep_usage RENAME TO update_usage;
ALTER FUNCTION keep_link_alias RENAME TO sync_link_alias;
ALTER FUNCTION keep_bio_alias RENAME TO sync_bio_alias;

ALTER TRIGGER clean_up ON users RENAME TO enqueue_cleanup;
ALTER TRIGGER new_aim ON domains RENAME TO redirects_on_insert;
ALTER TRIGGER other_aim ON domains RENAME TO redirects_on_update;
ALTER TRIGGER add ON domains RENAME TO add_usage;
ALTER TRIGGER remove ON domains RENAME TO subtract_usage;
ALTER TRIGGER add ON splash_pages RENAME TO add_usage;
ALTER TRIGGER remove ON splash_pages RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON splash_pages RENAME TO enqueue_cleanup;
ALTER TRIGGER add ON overlays RENAME TO add_usage;
ALTER TRIGGER remove ON overlays RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON overlays RENAME TO enqueue_cleanup;
ALTER TRIGGER new_overlay ON overlay_answers RENAME TO overlay_on_insert;
ALTER TRIGGER add ON pixels RENAME TO add_usage;
ALTER TRIGGER remove ON pixels RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON pixels RENAME TO enqueue_cleanup;
ALTER TRIGGER add ON campaigns RENAME TO add_usage;
ALTER TRIGGER remove ON campaigns RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON campaigns RENAME TO enqueue_cleanup;
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
ALTER TRIGGER alias_insert ON links RENAME TO alias_on_insert;
ALTER TRIGGER alias_update ON links RENAME TO alias_on_update;
ALTER TRIGGER alias_delete ON links RENAME TO alias_on_delete;
ALTER TRIGGER add ON links RENAME TO add_usage;
ALTER TRIGGER remove ON links RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON links RENAME TO enqueue_cleanup;
ALTER TRIGGER new_pixel ON link_pixels RENAME TO pixel_on_insert;
ALTER TRIGGER new_custom ON bios RENAME TO custom_alias_on_insert;
ALTER TRIGGER other_custom ON bios RENAME TO custom_alias_on_update;
ALTER TRIGGER alias_insert ON bios RENAME TO alias_on_insert;
ALTER TRIGGER alias_update ON bios RENAME TO alias_on_update;
ALTER TRIGGER alias_delete ON bios RENAME TO alias_on_delete;
ALTER TRIGGER add ON bios RENAME TO add_usage;
ALTER TRIGGER remove ON bios RENAME TO subtract_usage;
ALTER TRIGGER aim ON qrs RENAME TO link_on_insert_or_update;
ALTER TRIGGER add ON qrs RENAME TO add_usage;
ALTER TRIGGER remove ON qrs RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON qrs RENAME TO enqueue_cleanup;
ALTER TRIGGER add ON channels RENAME TO add_usage;
ALTER TRIGGER remove ON channels RENAME TO subtract_usage;
ALTER TRIGGER clean_up ON channels RENAME TO enqueue_cleanup;
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
CREATE VIEW tallies AS SELECT * FROM target_breakdowns;

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
