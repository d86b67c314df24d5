-- API keys for programs, and the views that confine those with `own_only` or `domains`.
ALTER TABLE users ADD COLUMN key_off boolean NOT NULL DEFAULT false;
DROP VIEW accounts;
CREATE VIEW accounts AS
SELECT u.*,
       CASE WHEN u.admin THEN 'admin' WHEN p.free THEN 'free' ELSE 'pro' END AS status,
       p.id AS planid, p.name AS plan, p.rate, p.api, p.limits, u.xmin::text AS version
  FROM users u,
       LATERAL (SELECT *
                  FROM plans
                 WHERE id = CASE WHEN u.plan_id IS NOT NULL AND (u.expires IS NULL OR u.expires > now()) THEN u.plan_id
                                 ELSE (SELECT min(id) FROM plans WHERE free) END
                 LIMIT 1) p;

ALTER TABLE domains ADD COLUMN key_id bigint;
ALTER TABLE splash_pages ADD COLUMN key_id bigint;
ALTER TABLE overlays ADD COLUMN key_id bigint;
ALTER TABLE pixels ADD COLUMN key_id bigint;
ALTER TABLE campaigns ADD COLUMN key_id bigint;
ALTER TABLE links ADD COLUMN key_id bigint;
ALTER TABLE bios ADD COLUMN key_id bigint;
ALTER TABLE qrs ADD COLUMN key_id bigint;
ALTER TABLE channels ADD COLUMN key_id bigint;
CREATE OR REPLACE VIEW live_domains AS
SELECT * FROM domains WHERE EXISTS (SELECT FROM users WHERE users.id = domains.user_id);

CREATE TABLE api_keys (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id         bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    name            text        NOT NULL,
    prefix          text        NOT NULL,
    digest          bytea       NOT NULL UNIQUE,
    previous_digest bytea       UNIQUE,
    previous_until  timestamptz,
    scopes          text[]      NOT NULL,
    domains         bigint[],
    own_only        boolean     NOT NULL DEFAULT false,
    expires         timestamptz,
    allowed_ips     cidr[],
    created         timestamptz NOT NULL DEFAULT now(),
    key_id          bigint,
    UNIQUE (user_id, id)
);

CREATE TABLE api_key_uses (
    key_id  bigint      PRIMARY KEY REFERENCES api_keys ON DELETE CASCADE,
    at      timestamptz NOT NULL,
    address text        NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION is_key_within(scopes text[], domains bigint[], own_only boolean, expires timestamptz, allowed_ips cidr[],
                              most jsonb) RETURNS boolean LANGUAGE sql STABLE
RETURN scopes <@ ARRAY(SELECT jsonb_array_elements_text(most -> 'scopes'))
       AND (own_only OR NOT (most -> 'own_only')::boolean)
       AND (most -> 'domains' = 'null'
            OR coalesce(domains <@ ARRAY(SELECT jsonb_array_elements(most -> 'domains')::bigint), false))
       AND (most -> 'expires' = 'null' OR coalesce(expires <= (most ->> 'expires')::timestamptz, false))
       AND (most -> 'allowed_ips' = 'null'
            OR coalesce((SELECT bool_and(ip <<= ANY (ARRAY(SELECT jsonb_array_elements_text(most -> 'allowed_ips')::inet)))
                           FROM unnest(allowed_ips) AS ip), false));

-- `usage` becomes `public.usage`.
CREATE OR REPLACE FUNCTION update_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    counter record;
    plan    record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE public.usage u SET total = total - counts.number
          FROM (SELECT user_id, count(*) AS number FROM deleted GROUP BY user_id) counts
         WHERE u.user_id = counts.user_id AND kind = TG_TABLE_NAME;
        RETURN NULL;
    END IF;
    FOR counter IN
        INSERT INTO public.usage AS u (user_id, kind, total)
        SELECT user_id, TG_TABLE_NAME, count(*) FROM inserted GROUP BY user_id
        ON CONFLICT (user_id, kind) DO UPDATE SET total = u.total + excluded.total
        RETURNING u.user_id, u.total
    LOOP
        CONTINUE WHEN TG_NARGS = 0;
        SELECT (limits -> TG_ARGV[0] ->> 'enabled') = '1' AS enabled,
               CASE json_typeof(limits -> TG_ARGV[0]) WHEN 'object'
                    THEN coalesce((limits -> TG_ARGV[0] ->> 'count')::bigint, 0)
                    ELSE (limits ->> TG_ARGV[0])::bigint END AS count
          INTO plan FROM accounts WHERE id = counter.user_id AND NOT admin;
        IF NOT plan.enabled THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'plan_feature',
                MESSAGE = 'feature', DETAIL = replace(TG_TABLE_NAME, '_', ' ');
        ELSIF plan.count > 0 AND counter.total > plan.count THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'plan_limit',
                MESSAGE = 'limit', DETAIL = plan.count || ' ' || replace(TG_TABLE_NAME, '_', ' ');
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- Confined keys: those with `own_only` or `domains`. Their requests use connections whose search path begins with the
-- schema `confined`. It has a view in place of each table with rows of users, so every statement, trigger and function
-- sees and changes only the rows that the key may use. The settings linkmgr.key_id, linkmgr.own_only and
-- linkmgr.domains ('' means all) describe the key; without them a statement fails.
--
-- Views have no system columns, so `xmin`, which versions are read from, is a column.
CREATE FUNCTION is_row_of_key(key_id bigint) RETURNS boolean LANGUAGE sql STABLE
RETURN NOT current_setting('linkmgr.own_only')::boolean OR key_id = current_setting('linkmgr.key_id')::bigint;

CREATE FUNCTION key_domains() RETURNS bigint[] LANGUAGE sql STABLE
RETURN nullif(current_setting('linkmgr.domains'), '')::bigint[];

-- Create the views of confined keys. Each upgrade calls this after its migrations, because views do not get the columns
-- that are added to their tables. A migration that drops a column or changes its type drops the schema first, and calls
-- this at its end.
CREATE FUNCTION create_confined_views() RETURNS void LANGUAGE plpgsql SET client_min_messages = warning AS $$
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
    CREATE VIEW confined.account_rollups AS SELECT * FROM public.account_rollups WHERE false;
    CREATE VIEW confined.account_days AS SELECT * FROM public.account_days WHERE false;
    EXECUTE 'CREATE VIEW confined.usage AS ' || totals;
END $$;
