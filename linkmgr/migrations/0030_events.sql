-- Corrections of events. Links that expire at the same time are announced in batches.
CREATE INDEX ON links (expires, id) WHERE expires IS NOT NULL;
ALTER TABLE expiry_clock ADD COLUMN link_id bigint NOT NULL DEFAULT 0;

-- Record the expiry of a link that gets one in the past, up to which others are announced already. The transaction does
-- so at its end, while expiry_clock does not change, so that each expiry is recorded exactly once.
CREATE FUNCTION record_past_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    clock record;
BEGIN
    IF has_webhooks(NEW.user_id) THEN
        SELECT announced, link_id INTO clock FROM expiry_clock FOR KEY SHARE;
        IF (NEW.expires, NEW.id) <= (clock.announced, clock.link_id)
           AND ((OLD.expires, OLD.id) > (clock.announced, clock.link_id)) IS NOT FALSE
        THEN
            INSERT INTO outbox (user_id, type, object_id) VALUES (NEW.user_id, 'link.expired', NEW.id);
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER record_past_expiry AFTER INSERT OR UPDATE OF expires ON links
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.expires <= now() + interval '1 minute') EXECUTE FUNCTION record_past_expiry();

CREATE OR REPLACE FUNCTION record_answer_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF has_webhooks(NEW.user_id) THEN
        INSERT INTO outbox (user_id, type, data)
        VALUES (NEW.user_id, 'answer.received',
                jsonb_build_object('id', NEW.id, 'overlay', NEW.overlay_id, 'answer', NEW.answer,
                                   'date', to_char(NEW.created AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')));
    END IF;
    RETURN NULL;
END $$;

-- Record the changes of a statement, for owners with webhooks. Argument: the kind of the rows. A plain link that is
-- left as it was is no change: adding its URL again updates it without changing it. Nor is a new value of
-- `imported_clicks` or `created`, which only imports write, in statements that change nothing else, or of `checked`, which
-- is written with the result of a check.
CREATE OR REPLACE FUNCTION record_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE active) THEN
        RETURN NULL;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO outbox (user_id, type, object_id)
        SELECT user_id, TG_ARGV[0] || '.created', id FROM inserted WHERE has_webhooks(user_id) ORDER BY id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO outbox (user_id, type, object_id, data)
        SELECT user_id, TG_ARGV[0] || '.deleted', id, to_jsonb(d) - '{user_id,key_id,password_hash,logo}'::text[]
          FROM deleted d
         WHERE has_webhooks(user_id)
         ORDER BY id;
    ELSE
        INSERT INTO outbox (user_id, type, object_id)
        SELECT n.user_id, TG_ARGV[0] || '.updated', n.id
          FROM updated n
          JOIN deleted o USING (id),
               LATERAL (SELECT to_jsonb(n) AS after, to_jsonb(o) AS before OFFSET 0) records
         WHERE has_webhooks(n.user_id) AND (after ->> 'plain' IS DISTINCT FROM 'true' OR after <> before)
           AND (after -> 'imported_clicks', after -> 'created', after -> 'checked')
               IS NOT DISTINCT FROM (before -> 'imported_clicks', before -> 'created', before -> 'checked')
         ORDER BY n.id;
    END IF;
    RETURN NULL;
END $$;

-- The version of a domain for If-Match, which checks do not change. The arguments are columns, because confined keys read a
-- view.
CREATE FUNCTION domain_version(redirectroot text, redirect404 text, brandname text, brandlogo text, brandcolor text,
                               logo_digest text) RETURNS text LANGUAGE sql STABLE
RETURN (hashtextextended(row(redirectroot, redirect404, brandname, brandlogo, brandcolor, logo_digest)::text, 0)
        & 9223372036854775807)::text;
