-- Corrections of events. Links that expire at the same time are announced in batches.
ALTER TABLE expiry_clock ADD COLUMN link_id bigint NOT NULL DEFAULT 0;
CREATE INDEX ON links (expires, id) WHERE expires IS NOT NULL;
DROP INDEX links_user_id_expires_idx;

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
    WHEN (NEW.expires <= now()) EXECUTE FUNCTION record_past_expiry();

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
