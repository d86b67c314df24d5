-- Redirects, creates and most updates continue. FOR KEY SHARE makes deletes and changes of an alias wait until this
-- step ends (some seconds for a million links), so that no row keeps an alias that its link no longer has.

INSERT INTO aliases (alias, domain_id, bio_id)
SELECT alias, 0, id FROM bios FOR KEY SHARE
ON CONFLICT DO NOTHING;

INSERT INTO aliases (alias, domain_id, link_id)
SELECT alias, coalesce(domain_id, 0), id FROM links FOR KEY SHARE
ON CONFLICT DO NOTHING;

ANALYZE aliases;
