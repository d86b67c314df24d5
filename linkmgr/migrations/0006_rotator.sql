-- Writes to links wait while the indexes are built: up to some seconds for a million links that are in campaigns.
CREATE INDEX ON links (campaign_id, hashint8(id)) WHERE campaign_id IS NOT NULL;
CREATE INDEX ON links (campaign_id, expires) WHERE campaign_id IS NOT NULL;
