-- Corrections of events. Links that expire at the same time are announced in batches.
ALTER TABLE expiry_clock ADD COLUMN link_id bigint NOT NULL DEFAULT 0;
CREATE INDEX ON links (expires, id) WHERE expires IS NOT NULL;
DROP INDEX links_user_id_expires_idx;
