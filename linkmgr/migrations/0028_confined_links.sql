CREATE INDEX ON links (user_id, key_id, id) WHERE key_id IS NOT NULL;
CREATE INDEX ON links (user_id, key_id, md5(url)) WHERE key_id IS NOT NULL;

-- `public.domains` instead of `domains`.
CREATE OR REPLACE FUNCTION link_references(owner bigint, link bigint) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT json_build_object(
                   'domain', (SELECT scheme || '://' || host FROM public.domains WHERE id = l.domain_id),
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

-- Return the link of a URL alone that the current key made although another key had shortened the URL, so that it cannot
-- be `plain`. The lock makes concurrent requests wait, and the query sees the link of the one before.
CREATE FUNCTION own_plain_link(owner bigint, target text) RETURNS TABLE (id bigint, alias text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    key bigint := current_setting('linkmgr.key_id');
BEGIN
    PERFORM pg_advisory_xact_lock('public.links'::regclass::oid::integer, hashtext(key || ' ' || target));
    RETURN QUERY
    SELECT id, alias
      FROM links l
     WHERE user_id = owner AND key_id = key AND md5(url) = md5(target) AND url = target
       AND num_nonnulls(campaign_id, domain_id, splash_id, overlay_id, password_hash, expires) = 0
       AND NOT custom AND type = 'direct' AND public
       AND (title, description, metadescription, metaimage) = ('', '', '', '')
       AND (locations, devices, languages, parameters, deeplink) = ('{}', '{}', '{}', '[]', '{}')
       AND NOT EXISTS (SELECT FROM link_pixels p WHERE p.link_id = l.id)
       AND NOT EXISTS (SELECT FROM public.channel_items i WHERE i.user_id = owner AND i.link_id = l.id)
     ORDER BY id
     LIMIT 1;
END $$;

-- Campaigns and channels of links are those that the key may use. The schema `confined_own` is new.
CREATE OR REPLACE FUNCTION create_confined_views() RETURNS void LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE
    name   text;
    filter text;
    totals text;  -- of lists
BEGIN
    DROP SCHEMA IF EXISTS confined CASCADE;
    CREATE SCHEMA confined;
    FOR name, filter IN VALUES
        ('links', 'is_row_of_key(t.key_id) AND (key_domains() IS NULL OR t.domain_id = ANY (key_domains()))'),
        ('domains', 'CASE WHEN key_domains() IS NULL THEN is_row_of_key(t.key_id) ELSE t.id = ANY (key_domains()) END'),
        -- Those have no branded domain.
        ('bios', 'is_row_of_key(t.key_id) AND key_domains() IS NULL'),
        ('qrs', 'is_row_of_key(t.key_id) AND key_domains() IS NULL'),
        ('campaigns', 'is_row_of_key(t.key_id)'),
        ('channels', 'is_row_of_key(t.key_id)'),
        ('overlays', 'is_row_of_key(t.key_id)'),
        ('pixels', 'is_row_of_key(t.key_id)'),
        ('splash_pages', 'is_row_of_key(t.key_id)'),
        ('api_keys', 'is_row_of_key(t.key_id) AND (key_domains() IS NULL OR coalesce(t.domains <@ key_domains(), false))')
    LOOP
        EXECUTE format('CREATE VIEW confined.%1$I AS SELECT t.xmin, t.* FROM public.%1$I t WHERE %2$s WITH CHECK OPTION',
                       name, filter);
        EXECUTE format('ALTER VIEW confined.%I ALTER key_id SET DEFAULT current_setting(''linkmgr.key_id'')::bigint', name);
        totals := concat_ws(' UNION ALL ', totals,
                            format('SELECT user_id, %1$L AS kind, count(*) AS total FROM confined.%1$I GROUP BY user_id',
                                   name));
    END LOOP;
    -- Without CHECK OPTION: the statement that stores a link stores its items, and does not see the link yet.
    CREATE VIEW confined.channel_items AS
    SELECT * FROM public.channel_items i
     WHERE EXISTS (SELECT FROM confined.channels c WHERE c.user_id = i.user_id AND c.id = i.channel_id)
       AND (link_id IS NULL OR EXISTS (SELECT FROM confined.links l WHERE l.user_id = i.user_id AND l.id = i.link_id))
       AND (bio_id IS NULL OR EXISTS (SELECT FROM confined.bios b WHERE b.user_id = i.user_id AND b.id = i.bio_id))
       AND (qr_id IS NULL OR EXISTS (SELECT FROM confined.qrs q WHERE q.user_id = i.user_id AND q.id = i.qr_id));
    CREATE VIEW confined.overlay_answers AS
    SELECT * FROM public.overlay_answers a
     WHERE EXISTS (SELECT FROM confined.overlays o WHERE o.user_id = a.user_id AND o.id = a.overlay_id);
    -- The statistics of the account include those of all links.
    CREATE VIEW confined.current_account_rollups AS SELECT * FROM public.current_account_rollups WHERE false;
    CREATE VIEW confined.current_account_days AS SELECT * FROM public.current_account_days WHERE false;
    EXECUTE 'CREATE VIEW confined.usage AS ' || totals;

    DROP SCHEMA IF EXISTS confined_own CASCADE;
    CREATE SCHEMA confined_own;
    CREATE VIEW confined_own.links AS
    SELECT t.xmin, t.*
      FROM public.links t
     WHERE t.key_id = current_setting('linkmgr.key_id')::bigint
       AND (key_domains() IS NULL OR t.domain_id = ANY (key_domains()))
      WITH CHECK OPTION;
    ALTER VIEW confined_own.links ALTER key_id SET DEFAULT current_setting('linkmgr.key_id')::bigint;
    CREATE VIEW confined_own.usage AS
    SELECT * FROM confined.usage WHERE kind <> 'links'
     UNION ALL
    SELECT user_id, 'links', count(*) FROM confined_own.links GROUP BY user_id;
    FOREACH name IN ARRAY ARRAY['confined', 'confined_own'] LOOP
        -- `public.domains`, because the short URL has the host, also for a key that may not use the domain.
        EXECUTE format($view$
            CREATE VIEW %1$I.link_records AS
            SELECT l.user_id, l.id, l.alias, d.scheme || '://' || d.host AS host, l.url AS longurl, l.title,
                   l.description, coalesce(t.clicks, 0) AS clicks, coalesce(t.visitors, 0) AS uniqueclicks,
                   (SELECT c.id FROM confined.campaigns c WHERE c.user_id = l.user_id AND c.id = l.campaign_id) AS campaign,
                   ARRAY(SELECT channel_id FROM confined.channel_items i
                          WHERE i.user_id = l.user_id AND i.link_id = l.id
                          ORDER BY channel_id) AS channel,
                   l.created AS date
              FROM %1$I.links l
              LEFT JOIN public.domains d ON d.id = l.domain_id
              LEFT JOIN public.totals t ON t.target_id = l.id
            $view$, name);
    END LOOP;
END $$;
