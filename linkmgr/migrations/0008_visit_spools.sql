-- Visits are stored through spool files. The table has the number of bytes of each file that are stored.
CREATE TABLE visit_spools (
    name   text   PRIMARY KEY,
    stored bigint NOT NULL
);

CREATE FUNCTION make_month(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    month timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
    part  text := to_char(month, '"visits_"YYYY_MM');
BEGIN
    IF to_regclass(part) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock('visits'::regclass::oid::bigint);
    IF to_regclass(part) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE visits)', part);
    EXECUTE format('ALTER TABLE visits ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   part, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
END $$;

CREATE OR REPLACE FUNCTION make_months() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR ahead IN 0..2 LOOP
        PERFORM make_month(now() + make_interval(months => ahead));
    END LOOP;
END $$;
