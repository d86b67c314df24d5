ALTER TABLE qrs ADD COLUMN logo_source text;

CREATE OR REPLACE VIEW accounts AS
SELECT u.*,
       CASE WHEN u.admin THEN 'admin' WHEN p.free THEN 'free' ELSE 'pro' END AS status,
       p.id AS planid, p.name AS plan, p.rate, p.api, p.limits, u.xmin::text AS version
  FROM users u,
       LATERAL (SELECT *
                  FROM plans
                 WHERE id = CASE WHEN u.plan_id IS NOT NULL AND (u.expires IS NULL OR u.expires > now()) THEN u.plan_id
                                 ELSE (SELECT min(id) FROM plans WHERE free) END
                 LIMIT 1) p;

CREATE OR REPLACE FUNCTION refuse_branded_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.data::text = OLD.data::text THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM live_domains WHERE host = host_of(NEW.data #>> '{}')) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'link_branded', MESSAGE = 'branded';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION link_references(owner bigint, link bigint) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT json_build_object(
                   'domain', (SELECT scheme || '://' || host FROM domains WHERE id = l.domain_id),
                   'type', CASE WHEN splash_id IS NOT NULL
                                THEN coalesce((SELECT to_json(id) FROM splash_pages p
                                                WHERE p.user_id = owner AND p.id = l.splash_id), '"direct"')
                                WHEN overlay_id IS NOT NULL
                                THEN coalesce((SELECT to_json('overlay-' || id) FROM overlays o
                                                WHERE o.user_id = owner AND o.id = l.overlay_id), '"direct"')
                                ELSE to_json(type) END,
                   'campaign', (SELECT id FROM campaigns c WHERE c.user_id = owner AND c.id = l.campaign_id),
                   'pixels', ARRAY(SELECT pixel_id FROM link_pixels
                                     JOIN pixels p ON p.user_id = owner AND p.id = pixel_id
                                    WHERE link_id = link
                                    ORDER BY pixel_id),
                   'channel', ARRAY(SELECT channel_id FROM channel_items i
                                      JOIN channels c ON c.user_id = owner AND c.id = channel_id
                                     WHERE i.user_id = owner AND i.link_id = link
                                     ORDER BY channel_id))
          FROM links l
         WHERE l.user_id = owner AND l.id = link);
END $$;
