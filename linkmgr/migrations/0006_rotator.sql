-- Writes to links wait while the indexes are built, which reads the table twice (below a second for a million links).
CREATE INDEX ON links (campaign_id, hashint8(id)) WHERE campaign_id IS NOT NULL;
CREATE INDEX ON links (campaign_id, expires) WHERE campaign_id IS NOT NULL;
