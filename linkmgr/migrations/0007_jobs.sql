-- Delete dependent rows in background jobs. The previous version enqueues these jobs, too; the next version runs them.
-- Nothing here reads or changes the rows of a large table.

-- All locks at once, and users last, as in statements that write: in any other order both would wait for each other.
LOCK TABLE domains, links, link_pixels, channel_items, bios, qrs, channels, campaigns, splash_pages, overlays,
           overlay_answers, pixels, users IN ACCESS EXCLUSIVE MODE;

CREATE TABLE jobs (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind     text        NOT NULL,
    argument jsonb       NOT NULL,
    due      timestamptz NOT NULL DEFAULT now(),
    attempts integer     NOT NULL DEFAULT 0,
    created  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON jobs (due, id);
CREATE INDEX ON hits (until);

CREATE FUNCTION enqueue_cleanup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        INSERT INTO jobs (kind, argument) SELECT 'users_deleted', jsonb_build_object('user_id', id) FROM gone;
    ELSE
        INSERT INTO jobs (kind, argument)
        SELECT TG_TABLE_NAME || '_deleted', jsonb_build_object('user_id', user_id, 'ids', jsonb_agg(id))
          FROM (SELECT user_id, id, row_number() OVER (PARTITION BY user_id) / 1000 AS part FROM gone) numbered
         GROUP BY user_id, part;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION require_reference() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found integer;
BEGIN
    EXECUTE format('SELECT 1 FROM %I WHERE user_id = $1.user_id AND id = $1.%I FOR KEY SHARE', TG_ARGV[0], TG_ARGV[1])
       INTO found USING NEW;
    IF found IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_ARGV[2], MESSAGE = 'no such row';
    END IF;
    RETURN NEW;
END $$;

ALTER TABLE domains DROP CONSTRAINT domains_user_id_fkey;
ALTER TABLE splash_pages DROP CONSTRAINT splash_pages_user_id_fkey;
ALTER TABLE overlays DROP CONSTRAINT overlays_user_id_fkey;
ALTER TABLE pixels DROP CONSTRAINT pixels_user_id_fkey;
ALTER TABLE campaigns DROP CONSTRAINT campaigns_user_id_fkey;
ALTER TABLE links DROP CONSTRAINT links_user_id_fkey;
ALTER TABLE bios DROP CONSTRAINT bios_user_id_fkey;
ALTER TABLE qrs DROP CONSTRAINT qrs_user_id_fkey;
ALTER TABLE channels DROP CONSTRAINT channels_user_id_fkey;
ALTER TABLE links DROP CONSTRAINT campaign_unknown, DROP CONSTRAINT splash_unknown, DROP CONSTRAINT overlay_unknown;
ALTER TABLE overlay_answers DROP CONSTRAINT overlay_answers_user_id_overlay_id_fkey;
ALTER TABLE link_pixels DROP CONSTRAINT pixel_unknown;
ALTER TABLE channel_items DROP CONSTRAINT channel_unknown;

CREATE TRIGGER new_overlay BEFORE INSERT ON overlay_answers FOR EACH ROW
    EXECUTE FUNCTION require_reference('overlays', 'overlay_id', 'overlay_unknown');
CREATE TRIGGER new_campaign BEFORE INSERT ON links FOR EACH ROW
    WHEN (NEW.campaign_id IS NOT NULL)
    EXECUTE FUNCTION require_reference('campaigns', 'campaign_id', 'campaign_unknown');
CREATE TRIGGER other_campaign BEFORE UPDATE OF campaign_id ON links FOR EACH ROW
    WHEN (NEW.campaign_id IS NOT NULL AND NEW.campaign_id IS DISTINCT FROM OLD.campaign_id)
    EXECUTE FUNCTION require_reference('campaigns', 'campaign_id', 'campaign_unknown');
CREATE TRIGGER new_splash BEFORE INSERT ON links FOR EACH ROW
    WHEN (NEW.splash_id IS NOT NULL) EXECUTE FUNCTION require_reference('splash_pages', 'splash_id', 'splash_unknown');
CREATE TRIGGER other_splash BEFORE UPDATE OF splash_id ON links FOR EACH ROW
    WHEN (NEW.splash_id IS NOT NULL AND NEW.splash_id IS DISTINCT FROM OLD.splash_id)
    EXECUTE FUNCTION require_reference('splash_pages', 'splash_id', 'splash_unknown');
CREATE TRIGGER new_overlay BEFORE INSERT ON links FOR EACH ROW
    WHEN (NEW.overlay_id IS NOT NULL) EXECUTE FUNCTION require_reference('overlays', 'overlay_id', 'overlay_unknown');
CREATE TRIGGER other_overlay BEFORE UPDATE OF overlay_id ON links FOR EACH ROW
    WHEN (NEW.overlay_id IS NOT NULL AND NEW.overlay_id IS DISTINCT FROM OLD.overlay_id)
    EXECUTE FUNCTION require_reference('overlays', 'overlay_id', 'overlay_unknown');
CREATE TRIGGER new_pixel BEFORE INSERT ON link_pixels FOR EACH ROW
    EXECUTE FUNCTION require_reference('pixels', 'pixel_id', 'pixel_unknown');
CREATE TRIGGER new_channel BEFORE INSERT ON channel_items FOR EACH ROW
    EXECUTE FUNCTION require_reference('channels', 'channel_id', 'channel_unknown');

DROP TRIGGER forget ON links;
DROP TRIGGER forget ON qrs;
DROP FUNCTION forget_target;
CREATE TRIGGER clean_up AFTER DELETE ON users REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON splash_pages REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON overlays REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON pixels REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON campaigns REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON links REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON qrs REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER clean_up AFTER DELETE ON channels REFERENCING OLD TABLE AS gone EXECUTE FUNCTION enqueue_cleanup();

CREATE VIEW live_domains AS
SELECT * FROM domains WHERE EXISTS (SELECT FROM users WHERE users.id = domains.user_id);

CREATE OR REPLACE FUNCTION refuse_branded_redirects() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('domains'::regclass::oid::bigint);
    IF EXISTS (
        SELECT FROM live_domains
         WHERE host IN (host_of(nullif(NEW.redirectroot, OLD.redirectroot)),
                        host_of(nullif(NEW.redirect404, OLD.redirect404))))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'redirect_branded', MESSAGE = 'branded';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION refuse_branded_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM live_domains WHERE host = host_of(NEW.data #>> '{}')) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'link_branded', MESSAGE = 'branded';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE VIEW link_records AS
SELECT l.user_id, l.id, l.alias, d.scheme || '://' || d.host AS host, l.url AS longurl, l.title, l.description,
       coalesce(t.clicks, 0) AS clicks, coalesce(t.visitors, 0) AS uniqueclicks,
       (SELECT c.id FROM campaigns c WHERE c.user_id = l.user_id AND c.id = l.campaign_id) AS campaign,
       ARRAY(SELECT channel_id FROM channel_items i JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
              WHERE i.user_id = l.user_id AND i.link_id = l.id
              ORDER BY channel_id) AS channel,
       l.created AS date
  FROM links l
  LEFT JOIN domains d ON d.id = l.domain_id
  LEFT JOIN totals t ON t.target_id = l.id;

DROP FUNCTION drop_months;

CREATE VIEW months AS
SELECT part, bounds[1]::timestamptz AS since, bounds[2]::timestamptz AS until
  FROM (SELECT oid::regclass AS part,
               regexp_match(pg_get_expr(relpartbound, oid), 'FROM \(''(.+)''\) TO \(''(.+)''\)') AS bounds
          FROM pg_class
         WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'visits'::regclass)) parts;

CREATE FUNCTION drop_month(part regclass, if_empty boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    filled boolean := false;
BEGIN
    EXECUTE format('LOCK TABLE ONLY visits, ONLY %s IN ACCESS EXCLUSIVE MODE', part);
    IF if_empty THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', part) INTO filled;
    END IF;
    IF NOT filled THEN
        EXECUTE format('DROP TABLE %s', part);
    END IF;
    RETURN NOT filled;
END $$;
