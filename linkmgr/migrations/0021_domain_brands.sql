-- Domains with a name, a logo and a color of their own, and the result of their last check.

ALTER TABLE domains
    ADD COLUMN brandname   text NOT NULL DEFAULT '',
    ADD COLUMN brandlogo   text NOT NULL DEFAULT '',
    ADD COLUMN brandcolor  text NOT NULL DEFAULT '',
    ADD COLUMN logo        bytea,
    ADD COLUMN logo_digest text GENERATED ALWAYS AS (left(md5(logo), 8)) STORED,
    ADD COLUMN checked     timestamptz,
    ADD COLUMN problem     text NOT NULL DEFAULT '';

CREATE OR REPLACE VIEW live_domains AS
SELECT * FROM domains WHERE EXISTS (SELECT FROM users WHERE users.id = domains.user_id);
