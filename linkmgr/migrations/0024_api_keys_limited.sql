-- A limit of keys per user, and corrections of confined keys.
CREATE FUNCTION limit_api_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = NEW.user_id FOR NO KEY UPDATE;
    IF (SELECT count(*) FROM public.api_keys WHERE user_id = NEW.user_id) > 100 THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'keys_full', MESSAGE = 'limit';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER limit_api_keys AFTER INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION limit_api_keys();

-- `domains` becomes `public.domains`.
CREATE OR REPLACE FUNCTION refuse_branded_redirects() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('public.domains'::regclass::oid::bigint);
    IF EXISTS (
        SELECT FROM live_domains
         WHERE host IN (host_of(nullif(NEW.redirectroot, OLD.redirectroot)),
                        host_of(nullif(NEW.redirect404, OLD.redirect404))))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'redirect_branded', MESSAGE = 'branded';
    END IF;
    RETURN NULL;
END $$;

-- The views of the statistics of the account.
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
    CREATE VIEW confined.link_records AS
    SELECT * FROM public.link_records r
     WHERE EXISTS (SELECT FROM confined.links l WHERE l.user_id = r.user_id AND l.id = r.id);
    -- The statistics of the account include those of all links.
    CREATE VIEW confined.current_account_rollups AS SELECT * FROM public.current_account_rollups WHERE false;
    CREATE VIEW confined.current_account_days AS SELECT * FROM public.current_account_days WHERE false;
    EXECUTE 'CREATE VIEW confined.usage AS ' || totals;
END $$;
