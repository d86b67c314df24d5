-- The complete schema of a new installation. PostgreSQL 15 or later; the extensions of the search are optional.
-- Constraints are named after their error code. linkmgr/core/errors.py has the messages.

CREATE TABLE service (
    version      integer     NOT NULL,  -- the service refuses to serve an older one
    announced    timestamptz NOT NULL DEFAULT now(),  -- with `announced_id` the cursor of the expiry events
    announced_id bigint      NOT NULL DEFAULT 0,
    moving_until timestamptz NOT NULL DEFAULT '-infinity',  -- lease of the outbox mover
    checking_until timestamptz NOT NULL DEFAULT '-infinity',  -- lease of the process that checks targets
    checks_until bigint      NOT NULL DEFAULT 0,  -- links up to this id have been added to `link_checks`
    blocks       bigint      NOT NULL DEFAULT 0,  -- changes with the blocked links and hosts
    list_url     text        NOT NULL DEFAULT '',  -- from which blocked hosts were fetched
    list_due     timestamptz NOT NULL DEFAULT '-infinity',  -- the next time
    dropped_until timestamptz NOT NULL DEFAULT '-infinity',  -- the purge may drop earlier visits
    ignorecase   boolean     NOT NULL DEFAULT false,  -- of aliases on our own host: these are the setting of the last start
    widealiases  boolean     NOT NULL DEFAULT false
);
INSERT INTO service (version) VALUES (1);

-- Refuse a write with the error of linkmgr/core/errors.py that has this code.
CREATE FUNCTION refuse(code text, detail text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = code, MESSAGE = code, DETAIL = detail;
END $$;

-- The version of a row, for If-Match: random, so that no restored database gives it again, and below 2^53, for JSON.
CREATE FUNCTION random_version() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (random() * 9007199254740991)::bigint;

-- Argument: the columns that the service changes by itself, and those that are generated, which have no value yet. Without
-- one, the condition of the trigger has compared the rows, which takes less time than to make JSON of both.
CREATE FUNCTION change_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_NARGS = 0 OR to_jsonb(NEW) - TG_ARGV[0]::text[] <> to_jsonb(OLD) - TG_ARGV[0]::text[] THEN
        NEW.version := random_version();
        NEW.updated := now();
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION has_text(searched text, q text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN q IS NULL OR position(lower(q) IN lower(searched)) > 0;

CREATE TABLE jobs (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task     text        NOT NULL,
    argument jsonb       NOT NULL,
    due      timestamptz NOT NULL DEFAULT now(),  -- a process sets it to the end of its lease
    attempts integer     NOT NULL DEFAULT 0,  -- since the last success
    created  timestamptz NOT NULL DEFAULT now(),
    lost     integer     NOT NULL DEFAULT 0,  -- how often in a row it was not put back, with the present process
    holder   text  -- has begun something in its memory: it continues before the end of the lease
);
CREATE INDEX ON jobs (due, id);
CREATE UNIQUE INDEX ON jobs ((argument -> 'import_id')) WHERE task = 'import_undo';  -- a second click adds none

-- Jobs delete large sets of dependent rows, or clear their references, in batches: a job for at most 1000 deleted rows.
-- A link that enters or leaves the bin keeps its dependent rows.
CREATE FUNCTION enqueue_cleanup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        INSERT INTO jobs (task, argument) SELECT 'users_deleted', jsonb_build_object('user_id', id) FROM deleted;
    ELSE
        INSERT INTO jobs (task, argument)
        SELECT TG_TABLE_NAME || '_deleted', jsonb_build_object('user_id', user_id, 'ids', jsonb_agg(id))
          FROM (SELECT user_id, id, row_number() OVER (PARTITION BY user_id) / 1000 AS batch
                  FROM deleted
                 WHERE TG_TABLE_NAME NOT IN ('links', 'binned_links') OR owner_of_link(id) IS NULL) numbered
         GROUP BY user_id, batch;
    END IF;
    RETURN NULL;
END $$;

-- Events, noted in the transaction of the change and moved to `events`, when their record is read. `data` of an
-- update has the previous values. `stored` is the row as it was written, without images and the hash of a
-- password, or NULL if it is large. `actor` is null for the owner's default key.
CREATE TABLE outbox (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id   bigint      NOT NULL,
    type      text        NOT NULL,
    object_id bigint,
    data      jsonb,
    stored    jsonb,
    actor     jsonb       DEFAULT nullif(current_setting('linkmgr.actor', true), '')::jsonb,
    created   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON outbox (user_id, id);

-- The users with events in the outbox, each found by one look into the index.
CREATE VIEW outbox_owners AS
WITH RECURSIVE owners AS (
    SELECT min(user_id) AS user_id FROM outbox
     UNION ALL
    SELECT (SELECT min(o.user_id) FROM outbox o WHERE o.user_id > owners.user_id)
      FROM owners
     WHERE owners.user_id IS NOT NULL)
SELECT user_id FROM owners;

-- In plpgsql, because PostgreSQL before 18 plans a function in SQL anew in each transaction.
CREATE FUNCTION has_webhooks(owner bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM webhooks WHERE user_id = owner AND active);
END $$;

-- The changes of an account are noted for its webhooks and its activity. Most accounts have neither, which one look into
-- the index of `users` tells.
CREATE FUNCTION notes_changes(owner bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT has_events FROM users WHERE id = owner) THEN
        RETURN (SELECT has_activity FROM users WHERE id = owner) OR has_webhooks(owner);
    END IF;
    RETURN false;
END $$;

-- Note that a row was added, changed or deleted, as it is when it moves to the bin. Argument: the first part of the
-- types. Statements that change `imported_clicks`, `source_clicks`, `created` or `checked` change nothing else that
-- counts.
CREATE FUNCTION note_events() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner  CONSTANT bigint := coalesce(NEW.user_id, OLD.user_id);
    named  CONSTANT text[] := '{id,alias,url,title,name,slug,code,type,host,tag,campaign,channel_id,domain_id}';
    before jsonb;
    after  jsonb;
    change text;
    data   jsonb;  -- the previous values, or what names a deleted row
BEGIN
    IF NOT notes_changes(owner) THEN
        RETURN NULL;
    END IF;
    before := CASE WHEN to_jsonb(OLD) ->> 'binned' IS NULL THEN to_jsonb(OLD) END;
    after := CASE WHEN to_jsonb(NEW) ->> 'binned' IS NULL THEN to_jsonb(NEW) END;
    change := CASE WHEN before IS NULL THEN 'created' WHEN after IS NULL THEN 'deleted' ELSE 'updated' END;
    data := (SELECT jsonb_object_agg(key, value) FROM jsonb_each(before)
              WHERE CASE change WHEN 'updated' THEN value <> after -> key AND octet_length(value::text) < 4000
                    ELSE key = ANY (named) END);
    IF coalesce(before, after) IS NOT NULL
       AND (change <> 'updated' OR NOT data ?| '{imported_clicks,source_clicks,created,checked}') THEN
        after := after - 'logo' || CASE WHEN after ->> 'password_hash' <> '' THEN '{"password_hash": ""}'
                                        ELSE '{}' END::jsonb;
        INSERT INTO outbox (user_id, type, object_id, stored, data)
        SELECT owner, TG_ARGV[0] || '.' || change, coalesce(NEW.id, OLD.id),
               CASE WHEN octet_length(after::text) < 20000 THEN after END,
               data - '{version,updated,password_hash}'::text[]
               || CASE WHEN before ? 'domain_id'
                       THEN jsonb_build_object('domain', (SELECT domain FROM domains
                                                           WHERE id = (before ->> 'domain_id')::bigint))
                       ELSE '{}' END;
    END IF;
    RETURN NULL;
END $$;

-- Note for the audit trail, and for administrators, that a row was added, changed or deleted. Arguments:
-- the type, the columns of the data, and the secret columns, of whose changes events have no values. What is about
-- the keys and members of an account with an activity is noted for the negative id of its user too.
CREATE FUNCTION note_audit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    action  text := CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'UPDATE' THEN 'updated' ELSE 'deleted' END;
    before  jsonb := to_jsonb(OLD);
    after   jsonb := to_jsonb(NEW);
    shown   text[] := TG_ARGV[1];
    changes jsonb := (SELECT jsonb_object_agg(key, CASE WHEN key = ANY (shown) THEN jsonb_build_array(before -> key, value)
                                                        ELSE '[]' END)
                        FROM jsonb_each(after)
                       WHERE value <> before -> key AND key = ANY (shown || TG_ARGV[2]::text[]));
BEGIN
    INSERT INTO outbox (user_id, type, data)
    SELECT user_id, TG_ARGV[0],
           (SELECT jsonb_object_agg(key, value) FROM jsonb_each(coalesce(after, before)) WHERE key = ANY (shown))
           || jsonb_build_object('changes', coalesce(changes, '{}'), 'action', action)
      FROM (SELECT user_id FROM auditors
             UNION ALL
            SELECT -id FROM users
             WHERE has_activity AND id = (coalesce(after, before) ->> 'user_id')::bigint
               AND TG_TABLE_NAME IN ('api_keys', 'members')) noted
     WHERE TG_OP <> 'UPDATE' OR changes IS NOT NULL;
    RETURN NULL;
END $$;

CREATE TABLE plans (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     text    NOT NULL CONSTRAINT plan_name_taken UNIQUE,
    free     boolean NOT NULL,
    monthly  numeric NOT NULL DEFAULT 0,
    yearly   numeric NOT NULL DEFAULT 0,
    lifetime numeric NOT NULL DEFAULT 0,
    rate     integer CHECK (rate > 0),  -- requests per minute, in place of the setting RATE_LIMIT
    limits   json    NOT NULL,  -- the object of the specification, returned unchanged
    version  bigint  NOT NULL DEFAULT random_version(),
    updated  timestamptz NOT NULL DEFAULT now(),
    api      boolean GENERATED ALWAYS AS (coalesce(limits -> 'api' ->> 'enabled' = '1', false)) STORED  -- often read
);

INSERT INTO plans (name, free, monthly, yearly, lifetime, rate, limits)
SELECT name, monthly = 0, monthly, 10 * monthly, 30 * monthly, rate, format(
       '{"links": %1$s, "clicks": %2$s, "retention": %3$s, "custom": {"enabled": "%4$s"},
         "team": {"enabled": "%5$s", "count": "0"}, "splash": {"enabled": "1", "count": "%6$s"},
         "overlay": {"enabled": "1", "count": "%6$s"}, "pixels": {"enabled": "1", "count": "%7$s"},
         "domain": {"enabled": "1", "count": "%8$s"}, "multiple": {"enabled": "%4$s"}, "alias": {"enabled": "1"},
         "device": {"enabled": "%4$s"}, "geo": {"enabled": "%4$s"}, "bundle": {"enabled": "1"},
         "parameters": {"enabled": "%4$s"}, "export": {"enabled": "%4$s"}, "api": {"enabled": "1"}}',
       links, clicks, retention, paid, team, pages, pixels, domains)::json
  FROM (VALUES ('Free',      0, NULL, 100, 10000,  90, 0, 0,  1,  3,  1),
               ('Pro',       9,  120,   0,     0, 365, 1, 0, 50, 50, 10),
               ('Business', 29,  600,   0,     0,   0, 1, 1,  0,  0,  0))
       AS offered (name, monthly, rate, links, clicks, retention, paid, team, pages, pixels, domains);

CREATE TRIGGER change_version BEFORE UPDATE ON plans
    FOR EACH ROW EXECUTE FUNCTION change_version('{api}');
CREATE TRIGGER note_audit AFTER INSERT OR DELETE OR UPDATE ON plans FOR EACH ROW
    EXECUTE FUNCTION note_audit('audit.plan', '{id,name,free,monthly,yearly,lifetime,rate,limits}', '{}');

-- A user who is `suspended` with 'access' has no keys and sessions, and with 'all' no pages for visitors either.
CREATE TABLE users (
    id             bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
    username       text        NOT NULL,
    email          text        NOT NULL,
    password_hash  text        NOT NULL,
    admin          boolean     NOT NULL DEFAULT false,
    plan_id        bigint      CONSTRAINT plan_in_use REFERENCES plans,
    expires        timestamptz,
    registered     timestamptz NOT NULL DEFAULT now(),
    key_digest     bytea       NOT NULL CONSTRAINT key_unique UNIQUE,  -- of the API key
    key_ciphertext text        NOT NULL,  -- for display
    key_created    timestamptz NOT NULL DEFAULT now(),
    key_off        boolean     NOT NULL DEFAULT false,
    timezone       text        NOT NULL DEFAULT 'UTC',  -- of the console
    domain         text,  -- of new links in the console, or NULL for our own host
    no_mail        text[]      NOT NULL DEFAULT '{weekly_report}',  -- the e-mail messages that the user does not want
    clickid        boolean     NOT NULL DEFAULT false,  -- of all links
    page_value     numeric(13, 3),  -- the most that a conversion counts which a page reports; NULL: nothing
    detailed_since timestamptz,  -- before it the purge has deleted visits
    purge_from     timestamptz,  -- expired visits are not earlier, or NULL if none have expired yet
    has_events     boolean     NOT NULL DEFAULT false,  -- true since the first webhook or invitation
    has_activity   boolean     NOT NULL DEFAULT false,  -- true since the first invitation: who changed what is kept
    suspended      text        NOT NULL DEFAULT 'no' CHECK (suspended IN ('no', 'access', 'all')),
    version        bigint      NOT NULL DEFAULT random_version(),
    updated        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT administrator_suspended CHECK (NOT admin OR suspended = 'no')
);
CREATE UNIQUE INDEX username_taken ON users (lower(username));
CREATE UNIQUE INDEX email_taken ON users (lower(email));
CREATE INDEX ON users (detailed_since) WHERE detailed_since IS NOT NULL;  -- the latest one of all users
CREATE INDEX ON users (id) WHERE admin;  -- triggers look them up at each sign-in

CREATE TRIGGER change_version BEFORE UPDATE ON users
    FOR EACH ROW EXECUTE FUNCTION change_version('{detailed_since,purge_from,has_events,has_activity}');
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON users
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER note_audit
    AFTER INSERT OR DELETE
       OR UPDATE OF username, email, password_hash, admin, plan_id, expires, key_digest, key_off, suspended ON users
    FOR EACH ROW EXECUTE FUNCTION note_audit(
        'audit.user', '{id,username,email,admin,plan_id,expires,key_off,suspended}', '{password_hash,key_digest}');

-- LIMIT makes PostgreSQL look up the plan that is in force by its key: a join would hash all plans for every request.
CREATE VIEW accounts AS
SELECT u.*,
       CASE WHEN u.admin THEN 'admin' WHEN p.free THEN 'free' ELSE 'pro' END AS status,
       p.id AS planid, p.name AS plan, CASE WHEN NOT u.admin THEN p.rate END AS rate, p.api, p.limits,
       CASE WHEN NOT u.admin THEN nullif((p.limits ->> 'clicks')::bigint, 0) END AS max_clicks  -- in a month
  FROM users u,
       LATERAL (SELECT *
                  FROM plans
                 WHERE id = CASE WHEN u.plan_id IS NOT NULL AND (u.expires IS NULL OR u.expires > now()) THEN u.plan_id
                                 ELSE (SELECT min(id) FROM plans WHERE free) END
                 LIMIT 1) p;

-- The features that the plan of a user lacks, by their names in error messages.
CREATE FUNCTION lacking_features(owner bigint) RETURNS text[] LANGUAGE sql STABLE
RETURN ARRAY(SELECT label
               FROM accounts,
                    (VALUES ('alias', 'custom aliases'), ('device', 'targets by device'),
                            ('geo', 'targets by country'), ('parameters', 'link parameters'),
                            ('export', 'exports')) AS features (name, label)
              WHERE id = owner AND NOT admin AND limits -> name ->> 'enabled' <> '1');

CREATE FUNCTION require_feature(owner bigint, label text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse('plan_feature', label) WHERE label = ANY (lacking_features(owner));
    RETURN true;
END $$;

-- Lock the users of visits. Call this in a statement of its own before visits are added: their statement then sees which
-- days others have summed.
CREATE FUNCTION lock_users(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
END $$;

-- The user whose visits are counted, or all users.
CREATE FUNCTION owners(user_id bigint, everyone boolean) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT user_id WHERE NOT everyone UNION ALL SELECT id FROM users WHERE everyone
$$;

-- The number of rows of a user, in parts: a statement changes the part of its connection, so that the requests of a user
-- do not wait for each other. The foreign key rejects new rows of a deleted user.
CREATE TABLE usage_parts (
    user_id    bigint  NOT NULL REFERENCES users ON DELETE CASCADE,
    counted    text    NOT NULL,  -- the table, or 'qrs' and 'binned_qrs'
    part       integer NOT NULL,
    total      bigint  NOT NULL,
    PRIMARY KEY (user_id, counted, part)
) WITH (fillfactor = 50);

-- The visits that were stored in a month, which plans limit.
CREATE TABLE visit_months (
    user_id    bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    month      date        NOT NULL,
    bot        boolean     NOT NULL,
    imported   boolean     NOT NULL,
    total      bigint      NOT NULL,
    last_added bigint      NOT NULL,  -- by the last statement, fewer than it got once the plan is full
    full_since timestamptz,
    PRIMARY KEY (user_id, month, bot, imported)
) WITH (fillfactor = 50);

CREATE FUNCTION this_month() RETURNS date LANGUAGE sql STABLE
RETURN date_trunc('month', timezone('UTC', now()))::date;

-- Check that a plan allows the rows that were just counted. Creates share a lock if at least 64 more rows are allowed.
-- At most 32 do so at once, because each has locked its part of `usage_parts`, and each adds one row, because it is a
-- single statement. So at least 32 rows are still allowed once they have the lock, and none needs to lock alone as
-- well, which would be a deadlock. Any other create locks alone, so that it sees the rows of all others.
CREATE FUNCTION check_plan(owner bigint, name text, feature text, number bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    label   text := replace(name, '_', ' ');
    allowed json := (SELECT limits -> feature FROM accounts WHERE id = owner AND NOT admin);  -- parses `limits` once
    maximum bigint := CASE json_typeof(allowed) WHEN 'object' THEN allowed ->> 'count' ELSE allowed #>> '{}' END;
    rows    bigint;
    shared  boolean := false;
    alone   boolean := false;
BEGIN
    IF allowed ->> 'enabled' <> '1' THEN
        PERFORM refuse('plan_feature', label);
    ELSIF maximum > 0 THEN
        LOOP
            rows := coalesce((SELECT total FROM public.usage WHERE user_id = owner AND counted = name), 0);
            EXIT WHEN alone OR (shared AND rows <= maximum - 32);
            shared := number = 1 AND rows <= maximum - 64 AND now() = statement_timestamp()
                      AND pg_try_advisory_xact_lock_shared(hashtext(name), hashint8(owner));
            IF NOT shared THEN
                PERFORM pg_advisory_xact_lock(hashtext(name), hashint8(owner));
                alone := true;
            END IF;
        END LOOP;
        IF rows > maximum THEN
            PERFORM refuse('plan_limit', maximum || ' ' || label);
        ELSIF rows = maximum AND has_webhooks(owner) THEN
            INSERT INTO outbox (user_id, type, data)
            VALUES (owner, 'plan.limit_reached', jsonb_build_object('resource', label, 'limit', maximum));
        END IF;
    END IF;
END $$;

-- Count the rows that a statement has added. Argument: what they count as, if not by the name of the table.
CREATE FUNCTION count_added_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.usage_parts AS u (user_id, counted, part, total)
    SELECT user_id, coalesce(TG_ARGV[0], TG_TABLE_NAME), pg_backend_pid() % 32, count(*) FROM changed GROUP BY user_id
    ON CONFLICT (user_id, counted, part) DO UPDATE SET total = u.total + excluded.total;
    RETURN NULL;
END $$;

-- Count the rows that a statement has deleted, unless with their user.
CREATE FUNCTION count_deleted_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.usage_parts AS u (user_id, counted, part, total)
    SELECT user_id, TG_TABLE_NAME, pg_backend_pid() % 32, -count(*)
      FROM changed
     WHERE EXISTS (SELECT FROM users WHERE id = user_id)
     GROUP BY user_id
    ON CONFLICT (user_id, counted, part) DO UPDATE SET total = u.total + excluded.total;
    RETURN NULL;
END $$;

-- Check that a plan allows the rows that a statement has added. It fires after count_rows, by its name.
-- Argument: the member of `limits`.
CREATE FUNCTION require_plan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_plan(user_id, TG_TABLE_NAME, TG_ARGV[0], count(*)) FROM inserted GROUP BY user_id;
    RETURN NULL;
END $$;

-- Browser sessions, and sign-in links, which are sessions that have not begun.
CREATE TABLE sessions (
    digest  bytea       PRIMARY KEY,  -- of the token in the cookie or in the URL
    user_id bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    is_link boolean     NOT NULL DEFAULT false,
    by_link boolean     NOT NULL DEFAULT false,  -- it began with a link, and has set no password
    account_id bigint,  -- of another user, in whose account the person works as a member
    by_admin boolean    NOT NULL DEFAULT false,  -- an administrator made the link
    pending boolean     NOT NULL DEFAULT false,  -- it opens nothing until the one-time code is there
    confirmed timestamptz,  -- when the user last proved to be the one who signed in
    created timestamptz NOT NULL DEFAULT now(),
    used    timestamptz NOT NULL DEFAULT now(),  -- up to ten minutes later
    browser text        NOT NULL DEFAULT '',
    system  text        NOT NULL DEFAULT '',
    place   text        NOT NULL DEFAULT '',  -- the country of the IP address
    id_token text       NOT NULL DEFAULT ''  -- encrypted, of a provider, which asks for it at the sign-out
);
CREATE INDEX ON sessions (user_id);
CREATE INDEX ON sessions (created);
CREATE INDEX ON sessions (created) WHERE is_link OR pending;
CREATE TRIGGER note_audit AFTER INSERT OR UPDATE OF is_link, pending ON sessions FOR EACH ROW
    EXECUTE FUNCTION note_audit(
        'audit.sign_in', '{user_id,is_link,by_link,by_admin,pending,browser,system,place}', '{}');

-- Passkeys, and one-time codes with their recovery codes. One without a `counter` is not in use yet.
CREATE TABLE factors (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    method     text        NOT NULL CHECK (method IN ('passkey', 'codes')),
    name       text        NOT NULL DEFAULT '',  -- of a passkey
    credential bytea       CONSTRAINT passkey_known UNIQUE,  -- the id of a passkey
    public_key bytea,  -- of a passkey
    secret     text,  -- of one-time codes, encrypted
    recovery   bytea[]     NOT NULL DEFAULT '{}',  -- digests of the recovery codes that are left
    counter    bigint,  -- of the last signature of a passkey, or the time step of the last code
    created    timestamptz NOT NULL DEFAULT now(),
    used       timestamptz,
    UNIQUE NULLS NOT DISTINCT (user_id, credential)  -- one secret per user
);
CREATE TRIGGER note_audit AFTER INSERT OR DELETE OR UPDATE OF name, secret, recovery ON factors FOR EACH ROW
    EXECUTE FUNCTION note_audit('audit.factor', '{id,user_id,method,name}', '{secret,recovery}');

CREATE FUNCTION has_codes(owner bigint) RETURNS boolean LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM factors WHERE user_id = owner AND method = 'codes' AND counter IS NOT NULL);

-- The subjects of e-mail messages that users get once, such as a key that expires.
CREATE TABLE mailed (
    user_id bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    about   text        NOT NULL,  -- such as a key with its end, or a limit with its month
    sent    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, about)
);
CREATE INDEX ON mailed (sent);

-- The accounts of users at OpenID Connect providers.
CREATE TABLE identities (
    issuer  text        NOT NULL,
    subject text        NOT NULL,
    user_id bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    name    text        NOT NULL,  -- what the provider calls the person, for display
    created timestamptz NOT NULL DEFAULT now(),
    used    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (issuer, subject),
    UNIQUE (user_id, issuer)
);

-- Note for the audit trail that an account of a user was connected or disconnected.
CREATE FUNCTION note_identity(connected bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (user_id, type, data)
    SELECT a.user_id, 'audit.user',
           jsonb_build_object('id', u.id, 'username', username, 'email', email, 'action', 'updated',
                              'changes', '{"identity": []}'::jsonb)
      FROM users u, auditors a
     WHERE u.id = connected;
END $$;

-- The columns that tables of resources share, for LIKE below.
CREATE TABLE resources (
    id      bigint      GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    user_id bigint      NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    version bigint      NOT NULL DEFAULT random_version(),
    updated timestamptz NOT NULL DEFAULT now(),  -- with the version
    UNIQUE (user_id, id)
);

-- Return true if the user has these rows of a table, and keep them until the transaction ends.
CREATE FUNCTION has_rows(name text, owner bigint, ids bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    has_all boolean := true;
BEGIN
    ids := array_remove(ids, NULL);
    IF ids <> '{}' THEN
        EXECUTE format('SELECT count(*) = cardinality($2)
                          FROM (SELECT FROM %I WHERE user_id = $1 AND id = ANY ($2) FOR KEY SHARE) locked', name)
           INTO has_all USING owner, ids;
    END IF;
    RETURN has_all;
END $$;

CREATE FUNCTION require_rows(name text, owner bigint, ids bigint[], code text) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse(code) WHERE NOT has_rows(name, owner, ids);
    RETURN true;
END $$;

-- Return a user who has fewer than `most` rows of a table. The lock makes concurrent inserts wait for each
-- other.
CREATE FUNCTION require_room(owner bigint, name text, most integer, code text) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = owner FOR NO KEY UPDATE;
    EXECUTE format('SELECT refuse($1) FROM %I WHERE user_id = $2 HAVING count(*) >= $3', name)
      USING code, owner, most;
    RETURN owner;
END $$;

-- Scoped keys: API keys besides the one in `users`.
CREATE TABLE api_keys (
    LIKE resources INCLUDING ALL,
    name            text        NOT NULL,
    prefix          text        NOT NULL,
    digest          bytea       NOT NULL UNIQUE,
    previous_digest bytea       UNIQUE,
    previous_until  timestamptz,  -- until then a replaced key works
    scopes          text[]      NOT NULL,
    domains         bigint[],  -- NULL: no limit; may contain ids of deleted domains
    own_only        boolean     NOT NULL DEFAULT false,
    expires         timestamptz,
    allowed_ips     cidr[],  -- NULL: no limit
    last_used       timestamptz,  -- to the minute
    last_address    text,
    made_by         bigint,  -- the person, who may have been deleted since; NULL is the user
    FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE
);

CREATE TRIGGER change_version BEFORE UPDATE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION change_version('{last_used,last_address}');
CREATE TRIGGER note_audit
    AFTER INSERT OR DELETE OR UPDATE OF name, digest, scopes, domains, own_only, expires, allowed_ips ON api_keys
    FOR EACH ROW EXECUTE FUNCTION note_audit(
        'audit.key', '{id,user_id,name,scopes,domains,own_only,expires,allowed_ips}', '{digest}');

-- The person behind an actor in an account: of a scoped key the one who made it.
CREATE FUNCTION person_of(actor jsonb, owner bigint) RETURNS bigint LANGUAGE sql STABLE
RETURN coalesce((SELECT made_by FROM api_keys WHERE id = (actor ->> 'key')::bigint AND user_id = owner),
                (actor ->> 'user')::bigint, owner);

-- The users who work in the account of `user_id`, and invitations, which have a `digest` and no `member_id` yet.
CREATE TABLE members (
    LIKE resources INCLUDING ALL,
    member_id bigint      REFERENCES users ON DELETE CASCADE,
    email     text        NOT NULL,  -- to which the invitation was sent
    role      text        NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')),
    digest    bytea       UNIQUE,  -- of the token in the URL of the invitation
    joined    timestamptz,
    FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE,
    CHECK ((member_id IS NULL) = (digest IS NOT NULL)),
    CONSTRAINT own_invitation CHECK (member_id <> user_id),
    CONSTRAINT member_already UNIQUE (member_id, user_id)
);
CREATE UNIQUE INDEX invitation_open ON members (user_id, lower(email)) WHERE member_id IS NULL;
CREATE INDEX ON members (created) WHERE member_id IS NULL;

CREATE TRIGGER note_audit AFTER INSERT OR DELETE OR UPDATE OF member_id, role ON members
    FOR EACH ROW EXECUTE FUNCTION note_audit('audit.member', '{id,user_id,member_id,email,role}', '{}');

-- Members, with their names, and invitations.
CREATE VIEW member_records AS
SELECT m.*, m.created AS date, m.member_id AS "user", coalesce(u.username, m.email) AS name,
       CASE WHEN m.member_id IS NOT NULL THEN 'joined' WHEN m.created > now() - interval '7 days' THEN 'invited'
            ELSE 'expired' END AS state
  FROM members m
  LEFT JOIN users u ON u.id = m.member_id;

-- `made_by` is a name here. `has_left`: this person does not work in the account.
CREATE VIEW key_records AS
SELECT k.id, k.user_id, k.created, k.version, k.updated, k.name, k.prefix, k.scopes, coalesce(k.domains, '{}') AS domains,
       k.own_only, k.expires, coalesce(k.allowed_ips::text[], '{}') AS allowed_ips, k.last_used, k.last_address,
       CASE WHEN k.previous_until > now() THEN k.previous_until END AS previous_until, u.username AS made_by,
       k.made_by <> k.user_id
       AND NOT EXISTS (SELECT FROM members m WHERE m.member_id = k.made_by AND m.user_id = k.user_id) AS has_left
  FROM api_keys k
  LEFT JOIN users u ON u.id = coalesce(k.made_by, k.user_id);

-- Return true if a key allows no more than `grantable`, which has null for no limit.
CREATE FUNCTION is_key_within(scopes text[], expires timestamptz, allowed_ips cidr[], grantable jsonb) RETURNS boolean
    LANGUAGE sql STABLE
RETURN scopes <@ ARRAY(SELECT jsonb_array_elements_text(grantable -> 'scopes'))
       AND (grantable -> 'expires' = 'null' OR coalesce(expires <= (grantable ->> 'expires')::timestamptz, false))
       AND (grantable -> 'allowed_ips' = 'null'
            OR coalesce((SELECT bool_and(ip <<= ANY (ARRAY(SELECT jsonb_array_elements_text(grantable -> 'allowed_ips')::inet)))
                           FROM unnest(allowed_ips) AS ip), false));

CREATE TABLE idempotency_keys (
    user_id  bigint      NOT NULL,
    key      text        NOT NULL,
    response text        NOT NULL,  -- encrypted: a hash of the request, status, content type, body
    created  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);
CREATE INDEX ON idempotency_keys (created);

-- Return the response to a request of the last 24 hours.
CREATE FUNCTION stored_response(owner bigint, sent text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT response FROM idempotency_keys
             WHERE user_id = owner AND key = sent AND created > now() - interval '24 hours');
END $$;

-- Lock a key until the transaction ends, and return its response. `claimed`: false if another transaction has the lock. The
-- function is volatile, so that it sees what that transaction had committed before the lock was free.
CREATE FUNCTION claim_idempotency_key(owner bigint, sent text, OUT claimed boolean, OUT response text)
    LANGUAGE plpgsql AS $$
BEGIN
    claimed := pg_try_advisory_xact_lock(hashtextextended(sent, owner));
    IF claimed THEN
        response := stored_response(owner, sent);
    END IF;
END $$;

-- Rate limit counters: requests and attempts in the current window of each bucket. A crash may empty an unlogged table.
CREATE UNLOGGED TABLE rate_windows (
    bucket text        PRIMARY KEY,
    count  integer     NOT NULL,
    until  timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX ON rate_windows (until);

-- The counter of the requests of a user, or of a client without a valid key. It contains the rate of the plan, so that a
-- new rate begins a new window.
CREATE FUNCTION bucket_of(owner bigint, plan_rate integer, client text) RETURNS text LANGUAGE sql STABLE
RETURN coalesce('user:' || owner || coalesce(' at ' || plan_rate, ''), 'address:' || client);

-- Add to a counter, and return it. If it would exceed `maximum`, or `seconds` is null, add nothing and return no row. 0
-- only locks the row. A new window begins in place of one that ends too late, because a setting was shortened or the
-- clock was set back: more than 5 seconds later, since a concurrent statement may have begun later. In plpgsql, because
-- PostgreSQL before 18 plans a function in SQL for each statement that calls it.
CREATE FUNCTION count_in_window(bucket text, amount integer, seconds double precision, maximum integer DEFAULT NULL)
    RETURNS TABLE (count integer, until timestamptz) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF seconds IS NOT NULL AND (amount <= maximum) IS NOT FALSE THEN
        RETURN QUERY
        INSERT INTO rate_windows AS w (bucket, count, until)
        VALUES (count_in_window.bucket, amount, clock_timestamp() + sign(amount) * make_interval(secs => seconds))
        ON CONFLICT ON CONSTRAINT rate_windows_pkey DO UPDATE
           SET count = CASE WHEN w.until BETWEEN clock_timestamp()
                                             AND clock_timestamp() + make_interval(secs => seconds + 5)
                            THEN w.count ELSE 0 END + amount,
               until = CASE WHEN w.until BETWEEN clock_timestamp()
                                             AND clock_timestamp() + make_interval(secs => seconds + 5)
                            THEN w.until ELSE excluded.until END
         WHERE (CASE WHEN w.until BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => seconds + 5)
                     THEN w.count ELSE 0 END + amount <= maximum) IS NOT FALSE
        RETURNING w.count, w.until;
    END IF;
END $$;

-- PNG files, once for each user. Each is deleted with its last use.
CREATE TABLE logos (
    user_id bigint NOT NULL,
    hash    bytea  GENERATED ALWAYS AS (sha256(image)) STORED,
    image   bytea  NOT NULL,
    PRIMARY KEY (user_id, hash)
);

-- Store a logo, and return its hash, or NULL for none. The update locks a stored one, so that it is not deleted
-- meanwhile. Each counts as 4 KiB at least, as in linkmgr/qr/logos.py, so the sum has few rows.
CREATE FUNCTION store_logo(owner bigint, content bytea) RETURNS bytea LANGUAGE plpgsql AS $$
BEGIN
    IF octet_length(content) > 0 THEN
        PERFORM FROM users WHERE id = owner FOR NO KEY UPDATE;
        INSERT INTO logos (user_id, image) VALUES (owner, content)
            ON CONFLICT (user_id, hash) DO UPDATE SET user_id = excluded.user_id;
        PERFORM refuse('logos_full') FROM logos WHERE user_id = owner
         HAVING sum(greatest(octet_length(image), 4 << 10)) > 32 << 20;
        RETURN sha256(content);
    END IF;
    RETURN NULL;
END $$;

-- The second statement sees what the transaction that held the lock has committed.
CREATE FUNCTION delete_logo() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM logos WHERE user_id = OLD.user_id AND hash = OLD.logo_hash FOR UPDATE;
    DELETE FROM logos l
     WHERE user_id = OLD.user_id AND hash = OLD.logo_hash
       AND NOT EXISTS (SELECT FROM public.kept_qrs q WHERE q.user_id = l.user_id AND logo_hash = hash)
       AND NOT EXISTS (SELECT FROM domains d WHERE d.user_id = l.user_id AND logo_hash = hash);
    RETURN NULL;
END $$;

-- Return the host of a URL that linkmgr/core/fields/urls.py has normalized, which may be the first line of a text.
CREATE FUNCTION host_of(url text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN substring(url FROM '^https?://(\[[0-9a-f:]+\]|[^/:?#\s]+)');

-- Return a part of a URL without percent-encoding. Other bytes than ASCII are octal numbers.
CREATE FUNCTION decoded(part text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN (SELECT encode(string_agg(CASE WHEN piece[1] ~ '^%..' THEN decode(substr(piece[1], 2), 'hex')
                                      ELSE convert_to(piece[1], 'UTF8') END, '' ORDER BY n), 'escape')
          FROM regexp_matches(part, '%[0-9A-Fa-f]{2}|[^%]+|%', 'g')
               WITH ORDINALITY AS pieces (piece, n));

-- Return the form in which URLs are equal that servers take for one: with http or https, a default
-- port, a fragment, percent-encoding, `//`, `.` and `..`, or a slash at the end. NULL: no URL.
CREATE FUNCTION normal_form(url text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parts   text[] := regexp_match(left(url, 2048), '^https?://(\[[0-9a-f:]+\]|[^/:?#\s]+)'
                                   '(?::(?:80|443)(?![0-9]))?([^?#\s]*)(?:\?([^#\s]*))?');
    segment text;
    path    text[] := '{}';
BEGIN
    FOREACH segment IN ARRAY string_to_array(coalesce(decoded(parts[2]), ''), '/') LOOP
        path := CASE WHEN segment = '..' THEN trim_array(path, least(1, cardinality(path)))
                     WHEN segment IN ('', '.') THEN path
                     ELSE path || segment END;
    END LOOP;
    RETURN parts[1] || '/' || array_to_string(path, '/') || coalesce('?' || decoded(parts[3]), '');
END $$;

-- Reports of visitors (`kind` 'report'), and decisions of administrators: 'dismiss', or 'link' and 'host' for blocks, which
-- last until they have `ended`. Hosts without `decided_by` are of the list (setting BLOCKLIST_URL).
CREATE TABLE reports (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('report', 'dismiss', 'link', 'host')),
    link_id    bigint,
    host       text        NOT NULL DEFAULT '',  -- that is blocked, or of the reported `url`
    target_hosts text[]    NOT NULL DEFAULT '{}',  -- of all targets when the link was reported
    reason     text        NOT NULL DEFAULT '',  -- of a decision those of its reports
    text       text        NOT NULL DEFAULT '' CHECK (length(text) <= 500),
    reporter   text,  -- a keyed digest of the link and the IP address
    number     integer     NOT NULL DEFAULT 1,  -- of reports that were decided
    created    timestamptz NOT NULL DEFAULT now(),
    decided_by bigint,
    ended      timestamptz,
    ended_by   bigint,
    owner_id   bigint,  -- of a blocked link
    targets    text[]  -- MD5 of the normal forms of its targets, which its owner cannot store again
);
CREATE INDEX ON reports (link_id, id) WHERE kind = 'report';
CREATE INDEX ON reports (created) WHERE kind = 'report';
CREATE INDEX ON reports (id) WHERE decided_by IS NOT NULL;
CREATE UNIQUE INDEX host_blocked ON reports (host) WHERE kind = 'host' AND ended IS NULL;
CREATE UNIQUE INDEX link_blocked ON reports (link_id) WHERE kind = 'link' AND ended IS NULL;
CREATE INDEX ON reports (owner_id) WHERE kind = 'link' AND ended IS NULL;

-- Return the blocked host that one of these hosts is, or is a subdomain of, or NULL.
CREATE FUNCTION blocked_host(hosts text[]) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM reports WHERE kind = 'host' AND ended IS NULL) THEN
        RETURN (SELECT host FROM reports
                 WHERE kind = 'host' AND ended IS NULL
                   AND host = ANY (ARRAY(SELECT array_to_string(labels[n:], '.')
                                           FROM unnest(hosts) AS sent,
                                                LATERAL string_to_array(sent, '.') AS labels,
                                                generate_subscripts(labels, 1) AS n))
                 LIMIT 1);
    END IF;
    RETURN NULL;
END $$;

-- Return true if one of these URLs was a target of a link of this user when it was blocked.
CREATE FUNCTION has_blocked_target(owner bigint, urls text[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM reports
                    WHERE owner_id = owner AND kind = 'link' AND ended IS NULL
                      AND targets && ARRAY(SELECT md5(normal_form(url)) FROM unnest(urls) AS url));
END $$;

-- Return true if a text in `sent` that is not in `stored` is a URL that is blocked for this user.
CREATE FUNCTION has_blocked_url(owner bigint, sent jsonb, stored jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    urls text[] := ARRAY(SELECT url #>> '{}'
                           FROM (SELECT jsonb_path_query(sent, 'strict $.** ? (@.type() == "string")') AS url
                                 EXCEPT
                                 SELECT jsonb_path_query(stored, 'strict $.** ? (@.type() == "string")')) texts);
BEGIN
    RETURN blocked_host(ARRAY(SELECT host_of(url) FROM unnest(urls) AS url)) IS NOT NULL
           OR has_blocked_target(owner, urls);
END $$;

-- Refuse a row with a blocked URL, unless it had it before. Visitors see URLs, whichever columns they are in.
-- As the functions below that check rows, it is volatile: it sees what others have committed meanwhile.
CREATE FUNCTION require_unblocked(owner bigint, sent jsonb, stored jsonb DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse('target_blocked') WHERE has_blocked_url(owner, sent, stored);
    RETURN true;
END $$;

CREATE TABLE domains (
    LIKE resources INCLUDING ALL,
    scheme       text    NOT NULL,
    host         text    NOT NULL CONSTRAINT domain_taken UNIQUE,
    domain       text    GENERATED ALWAYS AS (scheme || '://' || host) STORED,
    redirectroot text    NOT NULL DEFAULT '',
    redirect404  text    NOT NULL DEFAULT '',
    brandname    text    NOT NULL DEFAULT '',
    brandlogo    text    NOT NULL DEFAULT '',
    brandcolor   text    NOT NULL DEFAULT '',
    forwardquery boolean NOT NULL DEFAULT false,  -- of new links
    clickid      boolean NOT NULL DEFAULT false,  -- of all links
    ignorecase   boolean NOT NULL DEFAULT false,  -- of aliases
    widealiases  boolean NOT NULL DEFAULT false,  -- new aliases can have `/`, `.` and letters of any script
    logo_hash    bytea,
    logo_digest  text    GENERATED ALWAYS AS (left(encode(logo_hash, 'hex'), 8)) STORED,
    checked      timestamptz,  -- the last check that the host points to the service
    problem      text    NOT NULL DEFAULT '',  -- that it found
    UNIQUE (user_id, domain),
    FOREIGN KEY (user_id, logo_hash) REFERENCES logos
);
ALTER TABLE users ADD CONSTRAINT domain_unknown FOREIGN KEY (id, domain) REFERENCES domains (user_id, domain)
    ON DELETE SET NULL (domain);
CREATE INDEX ON domains (user_id, logo_hash) WHERE logo_hash IS NOT NULL;

CREATE TRIGGER change_version BEFORE UPDATE ON domains
    FOR EACH ROW EXECUTE FUNCTION change_version('{checked,problem,logo_digest,domain}');
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON domains
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON domains
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER require_plan AFTER INSERT ON domains
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION require_plan('domain');
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON domains
    FOR EACH ROW EXECUTE FUNCTION note_events('domain');
CREATE TRIGGER delete_logo AFTER DELETE OR UPDATE OF logo_hash ON domains FOR EACH ROW
    WHEN (OLD.logo_hash IS NOT NULL) EXECUTE FUNCTION delete_logo();

-- Visits of a domain that found nothing, by path and UTC day. Those of our own host have the user 0 and the domain 0; the
-- statement that deletes a domain deletes its own.
CREATE TABLE missing_paths (
    user_id   bigint NOT NULL,
    domain_id bigint NOT NULL,
    day       date   NOT NULL,
    path      text   NOT NULL,
    visits    bigint NOT NULL,
    PRIMARY KEY (user_id, domain_id, day, path)
);
CREATE INDEX ON missing_paths (day);

-- Those of a deleted user remain in the table until a job deletes them.
CREATE VIEW live_domains AS
SELECT * FROM domains WHERE EXISTS (SELECT FROM users WHERE users.id = domains.user_id);

-- Refuse new redirects of a domain to a branded one, which could lead back. The lock makes concurrent writes
-- wait for each other, so that the later one sees the other domain.
CREATE FUNCTION require_unbranded(redirects text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF '' < ANY (redirects) THEN
        PERFORM pg_advisory_xact_lock('domains'::regclass::oid::bigint);
        PERFORM refuse('redirect_branded') FROM live_domains
          WHERE host IN (SELECT host_of(url) FROM unnest(redirects) AS url);
    END IF;
    RETURN true;
END $$;

-- Return a domain of the user, or NULL.
CREATE FUNCTION own_domain(owner bigint, own_host text) RETURNS domains LANGUAGE plpgsql STABLE AS $$
DECLARE
    own domains;
BEGIN
    IF own_host <> '' THEN
        SELECT * INTO own FROM domains WHERE user_id = owner AND host = own_host;
    END IF;
    RETURN own;
END $$;

-- Return the id of a domain of the user, or null for our own host. Refuse the host of any other domain.
CREATE FUNCTION require_domain(owner bigint, own_host text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    own domains := own_domain(owner, own_host);
BEGIN
    PERFORM refuse('domain_unknown') WHERE own_host <> '' AND own.id IS NULL;
    RETURN own.id;
END $$;

-- Return true if the key of the request may store links on a domain (0 or NULL: our own host). See "Restricted keys".
CREATE FUNCTION is_allowed_domain(domain bigint) RETURNS boolean LANGUAGE sql STABLE
RETURN coalesce(current_setting('linkmgr.domains', true), '') = ''
       OR coalesce(domain = ANY (nullif(current_setting('linkmgr.domains', true), '')::bigint[]), false);

-- Return why these targets are refused, or NULL: one is blocked, or on a branded domain, which could redirect back.
CREATE FUNCTION targets_refusal(owner bigint, targets text[]) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    hosts text[];
BEGIN
    IF targets = '{}' THEN
        RETURN NULL;
    END IF;
    hosts := ARRAY(SELECT host_of(target) FROM unnest(targets) AS target);
    -- One statement for the common case, in which none of the following would find a row
    IF NOT (EXISTS (SELECT FROM domains WHERE host = ANY (hosts))
            OR EXISTS (SELECT FROM reports WHERE kind = 'host' AND ended IS NULL)
            OR EXISTS (SELECT FROM reports WHERE owner_id = owner AND kind = 'link' AND ended IS NULL)) THEN
        RETURN NULL;
    END IF;
    RETURN CASE WHEN blocked_host(hosts) IS NOT NULL OR has_blocked_target(owner, targets) THEN 'target_blocked'
                WHEN EXISTS (SELECT FROM live_domains WHERE host = ANY (hosts)) THEN 'link_branded' END;
END $$;

-- Return why an image for previews is refused, or NULL. It may be on a branded domain.
CREATE FUNCTION image_refusal(url text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN url <> '' AND blocked_host(ARRAY[host_of(url)]) IS NOT NULL THEN 'target_blocked' END;
END $$;

CREATE FUNCTION require_usable_targets(owner bigint, targets text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    refusal text := targets_refusal(owner, targets);
BEGIN
    IF refusal IS NOT NULL THEN
        PERFORM refuse(refusal);
    END IF;
    RETURN true;
END $$;

CREATE TABLE splash_pages (
    LIKE resources INCLUDING ALL,
    name    text        NOT NULL,
    title   text        NOT NULL DEFAULT '',
    message text        NOT NULL DEFAULT '',
    link    text        NOT NULL DEFAULT '',
    counter integer     NOT NULL DEFAULT 5,
    banner  text        NOT NULL DEFAULT ''
);

CREATE TRIGGER change_version BEFORE UPDATE ON splash_pages FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON splash_pages
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON splash_pages
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON splash_pages
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER require_plan AFTER INSERT ON splash_pages
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION require_plan('splash');
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON splash_pages
    FOR EACH ROW EXECUTE FUNCTION note_events('splash');

CREATE TABLE overlays (
    LIKE resources INCLUDING ALL,
    type       text        NOT NULL,
    name       text        NOT NULL,
    message    text        NOT NULL DEFAULT '',
    link       text        NOT NULL DEFAULT '',
    label      text        NOT NULL DEFAULT '',
    position   text        NOT NULL DEFAULT 'bottom',
    color      text        NOT NULL DEFAULT '#ffffff',
    background text        NOT NULL DEFAULT '#1d4ed8'
);

CREATE TRIGGER change_version BEFORE UPDATE ON overlays FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON overlays
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON overlays
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON overlays
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER require_plan AFTER INSERT ON overlays
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION require_plan('overlay');
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON overlays
    FOR EACH ROW EXECUTE FUNCTION note_events('overlay');

CREATE TABLE overlay_answers (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    bigint      NOT NULL,
    overlay_id bigint      NOT NULL,
    answer     json        NOT NULL,
    created    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON overlay_answers (overlay_id, id);

CREATE TABLE utm_templates (
    LIKE resources INCLUDING ALL,
    name         text NOT NULL,
    utm_source   text NOT NULL DEFAULT '',
    utm_medium   text NOT NULL DEFAULT '',
    utm_campaign text NOT NULL DEFAULT '',
    utm_term     text NOT NULL DEFAULT '',
    utm_content  text NOT NULL DEFAULT ''
);

CREATE TRIGGER change_version BEFORE UPDATE ON utm_templates FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON utm_templates
    FOR EACH ROW EXECUTE FUNCTION note_events('utm');

-- The number of rows of a user by table. Members and UTM templates are few, and are counted when they are asked for.
CREATE VIEW usage AS
SELECT user_id, counted, sum(total)::bigint AS total FROM usage_parts GROUP BY user_id, counted
 UNION ALL
SELECT user_id, 'members', count(*) FROM members GROUP BY user_id
 UNION ALL
SELECT user_id, 'utm_templates', count(*) FROM utm_templates GROUP BY user_id;

CREATE TABLE pixels (
    LIKE resources INCLUDING ALL,
    type    text        NOT NULL,
    name    text        NOT NULL,
    tag     text        NOT NULL
);

CREATE TRIGGER change_version BEFORE UPDATE ON pixels FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON pixels
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON pixels
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER require_plan AFTER INSERT ON pixels
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION require_plan('pixels');
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON pixels
    FOR EACH ROW EXECUTE FUNCTION note_events('pixel');

-- If name and slug are both taken, the error names the name, whose constraint is created first.
CREATE TABLE campaigns (
    LIKE resources INCLUDING ALL,
    name    text        NOT NULL,
    CONSTRAINT campaign_name_taken UNIQUE (user_id, name),
    slug    text        CONSTRAINT campaign_slug_taken UNIQUE,
    public  boolean     NOT NULL,
    listorder text      NOT NULL DEFAULT 'newest',  -- of the links on the public list, or oldest
    listsize  integer   NOT NULL DEFAULT 25  -- links of a page
);

CREATE TRIGGER change_version BEFORE UPDATE ON campaigns FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON campaigns
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON campaigns
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON campaigns
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER require_plan AFTER INSERT ON campaigns
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION require_plan('bundle');
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON campaigns
    FOR EACH ROW EXECUTE FUNCTION note_events('campaign');

CREATE TABLE channels (
    LIKE resources INCLUDING ALL,
    name        text        NOT NULL,
    description text        NOT NULL DEFAULT '',
    color       text        NOT NULL,
    starred     boolean     NOT NULL DEFAULT false,
    CONSTRAINT channel_name_taken UNIQUE (user_id, name)
);
CREATE INDEX ON channels (user_id, lower(name));  -- tags of imports

CREATE TRIGGER change_version BEFORE UPDATE ON channels FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON channels
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON channels
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON channels
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON channels
    FOR EACH ROW EXECUTE FUNCTION note_events('channel');

-- There are no foreign keys, because their indexes would slow down every new link. Codes of deleted QR codes have the
-- domain -1: only `owner_id`, who may have been deleted, may store them again, from an export. A link that has moved can
-- keep its old short URLs, which have `until`: visitors of them get the link, and nothing else can have them. They last as
-- long as the link, also those of a domain that was deleted, which nobody reaches.
CREATE TABLE aliases (
    alias     text   NOT NULL,  -- alias_key() of the one that the link has
    domain_id bigint NOT NULL,  -- 0: our own host
    link_id   bigint,
    bio_id    bigint,
    owner_id  bigint,
    until     timestamptz,  -- infinity: as long as the link
    CONSTRAINT alias_taken PRIMARY KEY (alias, domain_id),
    CHECK (num_nonnulls(link_id, bio_id, owner_id) = 1)
);
CREATE INDEX ON aliases (link_id) WHERE until IS NOT NULL;
CREATE INDEX ON aliases (until) WHERE until < 'infinity';  -- the purge
CREATE INDEX ON aliases (domain_id) WHERE until IS NOT NULL;  -- a change of how aliases of a domain are found

-- Return that by which an alias is found and unique on a domain (0 or NULL: our own host): the alias, or the one in lower
-- case if the domain ignores case. Letters of one capital, such as the two small sigmas, are the same.
CREATE FUNCTION alias_key(alias text, domain bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN coalesce((SELECT ignorecase FROM domains d WHERE d.id = alias_key.domain),
                              (SELECT ignorecase FROM service))
                THEN lower(upper(alias)) ELSE alias END;
END $$;

-- Return the row of an alias on a host (NULL: our own), or NULL.
CREATE FUNCTION alias_at(host text, alias text) RETURNS aliases LANGUAGE plpgsql STABLE AS $$
DECLARE
    place bigint := CASE WHEN host IS NULL THEN 0 ELSE (SELECT id FROM domains d WHERE d.host = alias_at.host) END;
    found aliases;
BEGIN
    SELECT * INTO found FROM aliases a WHERE a.alias = alias_key(alias_at.alias, place) AND a.domain_id = place;
    RETURN found;
END $$;

-- Return true if aliases on a domain (NULL: our own host) can have `/`, `.` and letters of any script.
CREATE FUNCTION can_be_wide(domain bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT widealiases FROM domains d WHERE d.id = can_be_wide.domain),
                    (SELECT widealiases FROM service));
END $$;

-- Return the alias in a URL on one of our hosts, whose letters may be percent-encoded, or NULL.
CREATE FUNCTION alias_in(url text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    path CONSTANT text := substring(url FROM '^https?://[^/?#]+/([^?#]*[^/?#])/?$');
BEGIN
    IF path !~ '%' THEN
        RETURN path;
    END IF;
    RETURN (SELECT normalize(convert_from(string_agg(CASE WHEN part[1] ~ '^%' THEN decode(right(part[1], 2), 'hex')
                                                          ELSE convert_to(part[1], 'UTF8') END, '' ORDER BY n), 'UTF8'))
              FROM regexp_matches(path, '%[0-9A-Fa-f]{2}|.', 'g') WITH ORDINALITY AS parts (part, n));
EXCEPTION
    WHEN character_not_in_repertoire OR untranslatable_character THEN RETURN NULL;
END $$;

-- Refuse a change of how aliases of a domain are found while it has links. The lock waits for those that store one, and
-- others wait for it: each of them locks the row of its domain.
CREATE FUNCTION require_no_links(owner bigint, domain bigint, is_changed boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF is_changed THEN
        PERFORM FROM domains d WHERE d.id = require_no_links.domain FOR UPDATE;
        PERFORM refuse('domain_has_links')
          WHERE EXISTS (SELECT FROM public.links WHERE user_id = owner AND domain_id = domain)
             OR EXISTS (SELECT FROM public.binned_links WHERE user_id = owner AND domain_id = domain)
             OR EXISTS (SELECT FROM aliases WHERE domain_id = domain AND until IS NOT NULL);
    END IF;
    RETURN true;
END $$;

-- Store what aliases of our own host can be. Return false if it has some that are found otherwise. The lock waits for
-- those that store one.
CREATE FUNCTION set_own_aliases(ignore boolean, wide boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE service SET widealiases = wide WHERE widealiases <> wide;
    IF ignore <> (SELECT ignorecase FROM service) THEN
        LOCK TABLE aliases IN SHARE ROW EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM aliases WHERE domain_id = 0) THEN
            RETURN false;
        END IF;
        UPDATE service SET ignorecase = ignore;
    END IF;
    RETURN true;
END $$;

-- Store the aliases of new rows. It fires after require_plan, by its name, so that the limit of a plan is
-- reported before a taken alias.
CREATE FUNCTION store_aliases() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_bio CONSTANT boolean := TG_TABLE_NAME = 'bios';
BEGIN
    INSERT INTO aliases (alias, domain_id, link_id, bio_id)
    SELECT alias_key(alias, domain_id), coalesce(domain_id, 0), CASE WHEN NOT is_bio THEN id END,
           CASE WHEN is_bio THEN id END
      FROM inserted;
    RETURN NULL;
END $$;

-- Row by row, because PostgreSQL could plan a join with a transition table as a scan of all aliases. A link can return to
-- an old short URL of its own.
CREATE FUNCTION change_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM aliases
     WHERE alias = alias_key(NEW.alias, NEW.domain_id) AND domain_id = coalesce(NEW.domain_id, 0)
       AND link_id = NEW.id AND until IS NOT NULL AND TG_TABLE_NAME = 'links';
    UPDATE aliases SET alias = alias_key(NEW.alias, NEW.domain_id), domain_id = coalesce(NEW.domain_id, 0)
     WHERE alias = alias_key(OLD.alias, OLD.domain_id) AND domain_id = coalesce(OLD.domain_id, 0);
    RETURN NULL;
END $$;

CREATE FUNCTION delete_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM aliases WHERE alias = alias_key(OLD.alias, OLD.domain_id) AND domain_id = coalesce(OLD.domain_id, 0);
    IF TG_TABLE_NAME <> 'bios' THEN  -- the bin keeps old short URLs
        DELETE FROM aliases WHERE link_id = OLD.id AND until IS NOT NULL AND owner_of_link(link_id) IS NULL;
    END IF;
    RETURN NULL;
END $$;

-- Shared ids of links and QR codes, so that statistics refer to either by one number.
CREATE SEQUENCE tracked_ids;

-- A `url_only` link was created from a URL alone, which then returns the same link to the restricted key that created it,
-- or to all other callers. `geotarget`, `devicetarget` and `languagetarget` map a lower-case name to a URL.
CREATE TABLE links (
    LIKE resources INCLUDING ALL EXCLUDING IDENTITY,
    key_id          bigint,
    campaign        bigint,
    domain_id       bigint,
    alias           text        NOT NULL,
    custom          boolean     NOT NULL DEFAULT false,  -- the user chose the alias
    url_only        boolean     NOT NULL DEFAULT false,
    url             text        NOT NULL,
    title           text        NOT NULL DEFAULT '',  -- in lists: `metatitle` unless the user chose another one
    metatitle       text        NOT NULL DEFAULT '',  -- that visitors see
    description     text        NOT NULL DEFAULT '',
    type            text        NOT NULL DEFAULT 'direct' CHECK (type IN ('direct', 'frame', 'splash', 'overlay')),
    splash_id       bigint,
    overlay_id      bigint,
    pixels          bigint[],  -- NULL: none; may contain ids of deleted pixels
    password_hash   text,
    starts          timestamptz,
    expiry          timestamptz,
    maxclicks       bigint,
    confirmclick    boolean     NOT NULL DEFAULT false,  -- with maxclicks, a page with a button
    expiredurl      text        NOT NULL DEFAULT '',
    geotarget       jsonb       NOT NULL DEFAULT '{}',
    devicetarget    jsonb       NOT NULL DEFAULT '{}',
    languagetarget  jsonb       NOT NULL DEFAULT '{}',
    rules           jsonb       NOT NULL DEFAULT '[]',  -- see linkmgr/visits/rules.py
    parameters      jsonb       NOT NULL DEFAULT '[]',  -- [name, value]
    forwardquery    boolean     NOT NULL DEFAULT false,
    metadescription text        NOT NULL DEFAULT '',
    metaimage       text        NOT NULL DEFAULT '',
    deeplink        jsonb       NOT NULL DEFAULT '{}',
    variants        jsonb       NOT NULL DEFAULT '[]',  -- {name, url, weight}
    experiments     jsonb       NOT NULL DEFAULT '[]',  -- {number, started, ended, variants}, the last ones
    clickid         boolean     NOT NULL DEFAULT false,
    status          text        NOT NULL DEFAULT 'public',  -- or private
    imported_clicks bigint,  -- that another service counted, without those imported as visits
    source_host     text,  -- that an imported link had, if it is not ours
    source_clicks   bigint,  -- that another service counted, at the last import
    blocked         timestamptz,  -- by an administrator
    import_id       bigint,  -- that made the link
    imported        timestamptz,  -- when it did: equal to `updated` until the link changes
    externalid      text        NOT NULL DEFAULT '',  -- in a program of the user
    metadata        jsonb       NOT NULL DEFAULT '{}',  -- of that program
    extrapath       boolean     NOT NULL DEFAULT false,  -- of the short URL is that of the target too
    CONSTRAINT domain_in_use FOREIGN KEY (user_id, domain_id) REFERENCES domains (user_id, id)
);
ALTER TABLE links ALTER id SET DEFAULT nextval('tracked_ids');
-- A link of a URL alone is in no other index than this one, its ids, and that of the search.
CREATE UNIQUE INDEX externalid_taken ON links (user_id, externalid) WHERE externalid <> '';
CREATE UNIQUE INDEX url_only_link ON links (user_id, md5(url), key_id) NULLS NOT DISTINCT WHERE url_only;
CREATE INDEX ON links (campaign, id) WHERE campaign IS NOT NULL;  -- public lists, rotators, deletion
CREATE INDEX ON links (user_id, domain_id) WHERE domain_id IS NOT NULL;  -- deletion, lists of keys with `domains`
CREATE INDEX ON links (user_id, splash_id) WHERE splash_id IS NOT NULL;  -- deletion
CREATE INDEX ON links (user_id, overlay_id) WHERE overlay_id IS NOT NULL;  -- deletion
CREATE INDEX ON links USING gin (pixels) WHERE pixels IS NOT NULL;  -- the number of links in the console
CREATE INDEX ON links (user_id, key_id, id) WHERE key_id IS NOT NULL;  -- lists of keys with `own_only`
CREATE INDEX ON links (user_id, id) INCLUDE (imported_clicks) WHERE imported_clicks IS NOT NULL;  -- order by clicks
CREATE INDEX ON links (import_id, id) WHERE import_id IS NOT NULL;  -- undoing it
CREATE INDEX ON links (user_id, source_host) WHERE source_host IS NOT NULL AND domain_id IS NULL;  -- the page of a domain
CREATE INDEX ON links (expiry, id) WHERE expiry IS NOT NULL;  -- the order in which expired links are announced

CREATE TRIGGER change_version BEFORE UPDATE ON links FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON links
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON links
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON links
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER require_plan AFTER INSERT ON links
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION require_plan('links');
CREATE TRIGGER store_aliases AFTER INSERT ON links
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION store_aliases();
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON links
    FOR EACH ROW EXECUTE FUNCTION note_events('link');
CREATE TRIGGER change_alias AFTER UPDATE ON links FOR EACH ROW
    WHEN ((OLD.alias, OLD.domain_id) IS DISTINCT FROM (NEW.alias, NEW.domain_id)) EXECUTE FUNCTION change_alias();
CREATE TRIGGER delete_alias AFTER DELETE ON links FOR EACH ROW EXECUTE FUNCTION delete_alias();

-- Make a view of one row, the default of each column of `links`, but for `id`: reading it would use up an id. Each
-- upgrade calls this after its migrations.
CREATE FUNCTION create_link_defaults() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('CREATE OR REPLACE VIEW link_defaults AS SELECT %s', string_agg(
                        format('CAST(%s AS %s) AS %I',
                               coalesce(CASE WHEN attname <> 'id' THEN pg_get_expr(adbin, adrelid) END, 'NULL'),
                               format_type(atttypid, atttypmod), attname), ', ' ORDER BY attnum))
               FROM pg_attribute
               LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
              WHERE attrelid = 'links'::regclass AND attnum > 0 AND NOT attisdropped);
END $$;
SELECT create_link_defaults();

-- Return the members of a link that have targets.
CREATE FUNCTION targets_in(link links) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN jsonb_build_array(link.url, link.expiredurl, link.geotarget, link.devicetarget, link.languagetarget,
                             link.deeplink, jsonb_path_query_array(link.variants || link.rules, '$[*].url'));
END $$;

CREATE FUNCTION targets_of(link links) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY(SELECT target #>> '{}'
                   FROM jsonb_path_query(targets_in(link), 'strict $.** ? (@.type() == "string")') AS target);
END $$;

-- Return the blocked host of a target of the link, or NULL.
CREATE FUNCTION blocked_host_of(link links) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN blocked_host(ARRAY(SELECT host_of(target) FROM unnest(targets_of(link)) AS target));
END $$;

-- Return the targets of a link, as {host, longurl}: those that are the first on their hosts come
-- first, and of these `url`.
CREATE FUNCTION listed_targets(link links) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT jsonb_agg(jsonb_build_object('host', host, 'longurl', target)
                             ORDER BY rank > 1, n)
              FROM (SELECT host_of(target) AS host, target, min(n) AS n,
                           row_number() OVER (PARTITION BY host_of(target) ORDER BY min(n)) AS rank
                      FROM unnest(targets_of(link)) WITH ORDINALITY AS targets (target, n)
                     WHERE target <> ''
                     GROUP BY target) targets);
END $$;

-- Return why the targets of a link are refused, or NULL: a new target or image is, or a target of `stored` is on the new
-- host of the link. The host of a stored target may have become a branded domain, or been blocked.
CREATE FUNCTION link_targets_refusal(link links, stored links, new_host text) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    targets text[] := targets_of(stored);
BEGIN
    RETURN coalesce(targets_refusal(link.user_id, ARRAY(SELECT target FROM unnest(targets_of(link)) AS target
                                                         WHERE (target = ANY (targets)) IS NOT TRUE)),
                    CASE WHEN link.metaimage <> stored.metaimage THEN image_refusal(link.metaimage) END,
                    CASE WHEN new_host IN (SELECT host_of(target) FROM unnest(targets) AS target) THEN 'link_branded' END);
END $$;

-- Return true if an array has each element of another one. `@>` also ignores the order in arrays that are elements.
CREATE FUNCTION has_elements(stored jsonb, sent jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN sent = '[]' OR ARRAY(SELECT jsonb_array_elements(stored)) @> ARRAY(SELECT jsonb_array_elements(sent));
END $$;

-- Return the first feature of a link that `stored` does not have and that the plan of the user `lacks`, or NULL.
CREATE FUNCTION denied_feature(link links, stored links, has_alias boolean, lacks text[]) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    rules jsonb := CASE WHEN NOT has_elements(stored.rules, link.rules) THEN link.rules END;
BEGIN
    RETURN CASE
        WHEN lacks = '{}' THEN NULL
        WHEN has_alias AND 'custom aliases' = ANY (lacks) THEN 'custom aliases'
        WHEN 'targets by device' = ANY (lacks)
             AND (NOT link.devicetarget <@ coalesce(stored.devicetarget, '{}')
                  OR rules @? '$[*].when ? (exists (@.device) || exists (@.os) || exists (@.browser))')
             THEN 'targets by device'
        WHEN 'targets by country' = ANY (lacks)
             AND (NOT link.geotarget <@ coalesce(stored.geotarget, '{}')
                  OR rules @? '$[*].when ? (exists (@.country) || exists (@.city))') THEN 'targets by country'
        WHEN 'link parameters' = ANY (lacks) AND NOT has_elements(stored.parameters, link.parameters)
             THEN 'link parameters' END;
END $$;

-- Return the URLs in a JSON value.
CREATE FUNCTION urls_in(sent jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    urls jsonb := jsonb_path_query_array(sent, 'strict $.** ? (@.type() == "string" && @ starts with "http")');
BEGIN
    IF urls = '[]' THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT DISTINCT jsonb_array_elements_text(urls));
END $$;

CREATE FUNCTION ids_in(sent jsonb) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY(SELECT jsonb_array_elements_text(sent)::bigint);
END $$;

-- Return why a link with the members `sent` cannot be stored in place of `stored`, and the feature that the plan lacks, or
-- NULL. The rows that were sent as references are kept until the transaction ends. The domain -1 is not one of the user.
-- Targets are checked if URLs that were sent are `suspect`, or if the link moves to `new_host`.
CREATE FUNCTION link_refusal(link links, stored links, sent jsonb, suspect boolean, new_host text, reserved text[],
                             lacks text[], OUT code text, OUT detail text) LANGUAGE plpgsql AS $$
DECLARE
    owner CONSTANT bigint := link.user_id;
BEGIN
    code := CASE WHEN suspect OR new_host <> '' THEN link_targets_refusal(link, stored, new_host) END;
    code := CASE
        WHEN code IS NOT NULL THEN code
        WHEN link.domain_id = -1 THEN 'domain_unknown'
        WHEN link.alias ~ '[^A-Za-z0-9_-]' AND NOT can_be_wide(link.domain_id)
             AND (link.alias, link.domain_id) IS DISTINCT FROM (stored.alias, stored.domain_id) THEN 'alias_wide'
        WHEN link.domain_id IS NULL AND reserved <> '{}'  -- pages, and all that their words begin
             AND reserved && ARRAY[alias_key(link.alias, NULL), alias_key(split_part(link.alias, '/', 1), NULL),
                                   alias_key(substring(link.alias FROM '^[^/]+/'), NULL)]
             AND (link.alias <> stored.alias OR stored.domain_id IS NOT NULL) THEN 'alias_reserved'
        WHEN sent ? 'campaign' AND NOT has_rows('campaigns', owner, ARRAY[link.campaign]) THEN 'campaign_unknown'
        WHEN sent ? 'splash_id' AND NOT has_rows('splash_pages', owner, ARRAY[link.splash_id]) THEN 'splash_unknown'
        WHEN sent ? 'overlay_id' AND NOT has_rows('overlays', owner, ARRAY[link.overlay_id]) THEN 'overlay_unknown'
        WHEN sent ? 'pixels' AND NOT has_rows('pixels', owner, link.pixels) THEN 'pixel_unknown'
        WHEN sent ?| '{channel,unassign_channel}' AND NOT has_rows('channels', owner, ids_in(sent -> 'channel')
             || (sent ->> 'unassign_channel')::bigint) THEN 'channel_unknown'
        WHEN link.starts >= link.expiry THEN 'starts_late'
        WHEN octet_length(concat(link.geotarget, link.devicetarget, link.languagetarget, link.parameters, link.deeplink,
                                 link.variants, link.rules, link.pixels)) > 64 << 10 THEN 'too_large'  -- as a body
        WHEN NOT is_allowed_domain(link.domain_id) THEN 'domain_needed' END;
    IF code IS NULL AND sent ?| '{alias,devicetarget,geotarget,parameters,rules}' THEN
        detail := denied_feature(link, stored, sent ? 'alias' AND link.alias IS DISTINCT FROM stored.alias,
                                 coalesce(lacks, lacking_features(owner)));
        code := CASE WHEN detail IS NOT NULL THEN 'plan_feature' END;
    END IF;
END $$;

-- Return true if another link of the user has the external id of a link, also one that a restricted key does not see.
CREATE FUNCTION is_externalid_taken(link links) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN link.externalid <> '' AND EXISTS (
        SELECT FROM public.links l
         WHERE l.user_id = link.user_id AND l.externalid = link.externalid AND l.id <> link.id);
END $$;

-- Return NULL if the alias of a link is free on its domain, as those of deleted users are, 'binned' if
-- a link in the bin of its owner has it, or else ''.
CREATE FUNCTION use_of_alias(link links) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT CASE WHEN EXISTS (SELECT FROM binned_links b
                                      WHERE b.user_id = link.user_id AND b.id = link_id)
                        THEN 'binned' ELSE '' END
              FROM aliases a
              JOIN users ON users.id = coalesce(owner_of_link(link_id),
                                                (SELECT user_id FROM bios b WHERE b.id = bio_id))
             WHERE a.alias = alias_key(link.alias, link.domain_id) AND a.domain_id = coalesce(link.domain_id, 0)
               AND a.link_id IS DISTINCT FROM link.id);  -- otherwise an old short URL of its own
END $$;

-- Return variants by what makes them an experiment: their names, which choose the visitors, their targets and shares.
CREATE FUNCTION experiment_of(variants jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
RETURN (SELECT jsonb_agg(jsonb_build_array(name, url, round(weight / total, 9)) ORDER BY name)
          FROM (SELECT *, sum(weight) OVER () AS total
                  FROM jsonb_to_recordset(variants) AS v (name text, url text, weight numeric)) shares);

-- Return the experiments of a link with new variants. Other ones end an experiment and begin the next. The same ones
-- continue one that has ended in the last hour. The last 20 are kept, of which the older have 32 KiB together.
CREATE FUNCTION experiments_with(history jsonb, variants jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    last     CONSTANT jsonb := history -> -1;
    is_same  CONSTANT boolean := coalesce(experiment_of(last -> 'variants') = experiment_of(variants), false);
BEGIN
    IF is_same AND last ->> 'ended' IS NULL THEN
        RETURN history;
    ELSIF is_same AND (last ->> 'ended')::timestamptz > now() - interval '1 hour' THEN
        RETURN (history - -1) || jsonb_set(last, '{ended}', 'null');
    ELSIF last ->> 'ended' IS NULL AND last IS NOT NULL THEN
        history := (history - -1) || jsonb_set(last, '{ended}', to_jsonb(now()));
    END IF;
    IF variants <> '[]' THEN
        history := history || jsonb_build_object('number', coalesce((last ->> 'number')::integer, 0) + 1, 'started', now(),
                                                 'ended', NULL, 'variants', variants);
    END IF;
    WHILE jsonb_array_length(history) > 1
          AND (jsonb_array_length(history) > 20 OR octet_length((history - -1)::text) > 32 << 10) LOOP
        history := history - 0;
    END LOOP;
    RETURN history;
END $$;

-- Return a link with the members that were sent, on a domain of the user, or on -1 if the user does not have it. A title
-- that the user has not chosen is the `metatitle`.
CREATE FUNCTION link_with(stored links, sent jsonb, own domains) RETURNS links LANGUAGE plpgsql STABLE AS $$
DECLARE
    link public.links := jsonb_populate_record(stored, sent);
BEGIN
    IF link.title = '' OR (stored.title = stored.metatitle AND NOT sent ? 'title') THEN
        link.title := link.metatitle;
    END IF;
    IF sent ? 'domain' THEN
        link.domain_id := CASE WHEN sent ->> 'domain' <> '' THEN coalesce(own.id, -1) END;
    END IF;
    link.campaign := nullif(link.campaign, 0);
    link.pixels := nullif(link.pixels, '{}');
    link.maxclicks := nullif(link.maxclicks, 0);
    IF link.variants <> stored.variants AND NOT sent ? 'experiments' THEN
        link.experiments := experiments_with(stored.experiments, link.variants);
    END IF;
    RETURN link;
END $$;

-- Note the expiry of a link that gets one in the past, up to which others are announced already. The row stays locked, so
-- that `announced` does not change until the transaction ends, and each expiry is noted exactly once. Call it after the
-- statement that stores the expiry, whose own event is the first.
CREATE FUNCTION note_past_expiry(owner bigint, link bigint, new_expiry timestamptz, old_expiry timestamptz) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF new_expiry <= now() + interval '1 minute' AND has_webhooks(owner) THEN
        -- MATERIALIZED: the row is locked before it is compared, also if it does not match.
        WITH clock AS MATERIALIZED (SELECT announced, announced_id FROM service FOR KEY SHARE)
        INSERT INTO outbox (user_id, type, object_id)
        SELECT owner, 'link.expired', link
          FROM clock
         WHERE (new_expiry, link) <= (announced, announced_id)
           AND ((old_expiry, link) > (announced, announced_id)) IS NOT FALSE;
    END IF;
END $$;

-- The alias of a link, as it is found, with its domain.
CREATE FUNCTION place_of(link links) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN alias_key(link.alias, link.domain_id) || ' ' || coalesce(link.domain_id, 0);
END $$;

-- Return the record of a link for linkmgr/repository/link_records.py.
CREATE FUNCTION link_record(owner bigint, link bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT to_json(d) FROM (
                SELECT d.*, clicks, visitors, top_labels
                  FROM link_details d LEFT JOIN totals ON tracked_id = id
                 WHERE user_id = owner AND id = link) d);
END $$;

-- Insert links, with their channels, and return the ids and aliases of those that are `url_only` by URL. All requests share
-- the order, so that those with the same links do not deadlock.
CREATE FUNCTION insert_links(accepted links[], channels jsonb[]) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    by_url json;
BEGIN
    WITH added AS (
        INSERT INTO links
        SELECT l.*
          FROM unnest(accepted) AS l
         ORDER BY l.url_only, CASE WHEN l.url_only THEN l.url ELSE lower(upper(l.alias)) END COLLATE "C",
                  l.alias COLLATE "C"
        ON CONFLICT (user_id, md5(url), key_id) WHERE url_only DO UPDATE SET url_only = true
        RETURNING id, url, alias, url_only)
    SELECT json_object_agg(url, json_build_array(id, alias)) INTO by_url FROM added WHERE url_only;
    PERFORM note_past_expiry(user_id, id, expiry, NULL) FROM unnest(accepted);
    IF num_nonnulls(VARIADIC channels) > 0 THEN
        INSERT INTO channel_items (user_id, channel_id, link_id)
        SELECT user_id, channel_id, id
          FROM unnest(accepted) WITH ORDINALITY AS l, unnest(ids_in(channels[ordinality])) AS channel_id;
    END IF;
    RETURN by_url;
END $$;

-- Store new links. Objects in `sent` have members by the names of columns, and `domain` and `channel`. Return the code,
-- detail, id, alias and domain of each, the ids and aliases of those that are `url_only` by URL, and the record of a single
-- one. `spares` are aliases for those without one. Of `many`, also look up what the constraint of aliases and the trigger
-- that counts would refuse, so that the others are stored.
CREATE FUNCTION add_links(owner bigint, sent jsonb, spares text[], many boolean, atomic boolean,
                          OUT results json, OUT by_url json, OUT record json) LANGUAGE plpgsql AS $$
DECLARE
    suspect  CONSTANT boolean := targets_refusal(owner, urls_in(sent)) IS NOT NULL;
    defaults public.links;
    link     public.links;
    accepted public.links[] := '{}';
    channels jsonb[] := '{}';
    answers  json[] := '{}';
    members  jsonb;
    own      domains;
    refusal  record;
    spare    integer := 0;
    taken    text[] := '{}';
    taken_ids text[] := '{}';  -- of links elsewhere
    lacks    text[];
    most     bigint;
    room     bigint;
BEGIN
    IF many THEN
        SELECT lacking_features(id), CASE WHEN NOT admin THEN nullif((limits ->> 'links')::bigint, 0) END
          INTO lacks, most
          FROM accounts WHERE id = owner;
        room := most - coalesce((SELECT total FROM public.usage WHERE user_id = owner AND counted = 'links'), 0);
        taken := ARRAY(SELECT alias FROM aliases
                        WHERE alias = ANY (spares || ARRAY(SELECT lower(generated) FROM unnest(spares) AS generated)));
        spares := ARRAY(SELECT generated FROM unnest(spares) AS generated
                         WHERE generated <> ALL (taken) AND lower(generated) <> ALL (taken));
    END IF;
    SELECT * INTO defaults FROM link_defaults;
    defaults.user_id := owner;
    defaults.key_id := nullif(current_setting('linkmgr.key_id', true), '')::bigint;
    FOR members IN SELECT jsonb_array_elements(sent) LOOP
        own := own_domain(owner, members ->> 'domain');
        link := link_with(defaults, members, own);
        link.id := nextval('tracked_ids');
        link.version := random_version();
        link.created := least(link.created, now());
        IF own.forwardquery AND NOT members ? 'forwardquery' THEN
            link.forwardquery := true;
        END IF;
        refusal := link_refusal(link, defaults, members, suspect, NULL, '{}', lacks);
        IF link.alias IS NULL THEN
            spare := spare + 1;
            link.alias := spares[spare];
        END IF;
        IF many AND refusal.code IS NULL AND members ? 'alias' THEN
            refusal.detail := use_of_alias(link);
            refusal.code := CASE WHEN refusal.detail IS NOT NULL OR place_of(link) = ANY (taken)
                                 THEN 'alias_taken' END;
            taken := taken || place_of(link);
        END IF;
        IF many AND refusal.code IS NULL AND link.externalid <> '' THEN
            refusal.code := CASE WHEN link.externalid = ANY (taken_ids) OR is_externalid_taken(link)
                                 THEN 'externalid_taken' END;
            taken_ids := taken_ids || link.externalid;
        END IF;
        IF room IS NOT NULL AND refusal.code IS NULL AND NOT (link.url_only AND EXISTS (
               SELECT FROM links o
                WHERE o.user_id = owner AND md5(o.url) = md5(link.url) AND o.url_only
                  AND o.key_id IS NOT DISTINCT FROM link.key_id)) THEN
            room := room - 1;
            refusal.code := CASE WHEN room < 0 THEN 'plan_limit' END;
            refusal.detail := most || ' links';
        END IF;
        answers := answers || json_build_array(refusal.code, refusal.detail, link.id, link.alias, own.domain);
        IF refusal.code IS NULL THEN
            accepted := accepted || link;
            channels := channels || (members -> 'channel');
        END IF;
    END LOOP;
    results := array_to_json(answers);
    IF NOT atomic OR cardinality(accepted) = cardinality(answers) THEN
        by_url := insert_links(accepted, channels);
    END IF;
    IF jsonb_array_length(sent) = 1 THEN
        record := CASE WHEN members ? 'channel' OR num_nonnulls(link.domain_id, link.campaign, link.splash_id,
                                                                link.overlay_id, link.pixels) > 0
                       THEN link_record(owner, link.id) ELSE to_json(accepted[1]) END;
    END IF;
END $$;

-- Update links, of which some are `moved` to other targets, and their channels. Old short URLs are `kept_until` a time.
CREATE FUNCTION update_links(owner bigint, accepted links[], moved bigint[], sent jsonb) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    ids     bigint[];  -- whose channels are sent
    olds    public.links[];  -- whose expiry or place is sent, as they were
    changed bigint[];  -- whose own events tell of their new channels too
BEGIN
    -- Check new targets. A new URL begins without results, others keep them until they have been checked.
    IF moved <> '{}' THEN
        UPDATE link_checks SET due = clock_timestamp(), passed = 0 WHERE link_id = ANY (moved);
        UPDATE link_checks
           SET checked = NULL, state = 'unchecked', failed = NULL, broken = 0, reason = '',
               target = '', title = ''
         WHERE link_id IN (SELECT l.id FROM unnest(accepted) AS new
                             JOIN links l ON l.user_id = owner AND l.id = new.id AND l.url <> new.url);
    END IF;
    IF sent ?| '{channel,unassign_channel}' THEN
        ids := ARRAY(SELECT id FROM unnest(accepted));
        changed := ARRAY(SELECT l.id FROM unnest(accepted) AS new
                           JOIN links l ON l.user_id = owner AND l.id = new.id AND l <> new);
    END IF;
    IF sent ?| '{expiry,kept_until}' THEN
        olds := ARRAY(SELECT l FROM unnest(accepted) AS new
                        JOIN public.links l ON l.user_id = owner AND l.id = new.id);
    END IF;
    UPDATE links l
       SET url = new.url, url_only = new.url_only, alias = new.alias, custom = new.custom, domain_id = new.domain_id,
           campaign = new.campaign, type = new.type, splash_id = new.splash_id, overlay_id = new.overlay_id,
           pixels = new.pixels, title = new.title, metatitle = new.metatitle, description = new.description,
           password_hash = new.password_hash, starts = new.starts, expiry = new.expiry, maxclicks = new.maxclicks,
           confirmclick = new.confirmclick, expiredurl = new.expiredurl,
           geotarget = new.geotarget, devicetarget = new.devicetarget,
           languagetarget = new.languagetarget, rules = new.rules, parameters = new.parameters,
           forwardquery = new.forwardquery, metadescription = new.metadescription, metaimage = new.metaimage,
           deeplink = new.deeplink, variants = new.variants, experiments = new.experiments,
           clickid = new.clickid, externalid = new.externalid, metadata = new.metadata, status = new.status,
           extrapath = new.extrapath
      FROM unnest(accepted) AS new
     WHERE l.user_id = owner AND l.id = new.id;
    IF sent ? 'expiry' THEN
        PERFORM note_past_expiry(owner, new.id, new.expiry, old.expiry)
           FROM unnest(accepted) AS new JOIN unnest(olds) AS old ON old.id = new.id;
    END IF;
    IF sent ? 'kept_until' THEN
        INSERT INTO aliases (alias, domain_id, link_id, until)
        SELECT alias_key(old.alias, old.domain_id), coalesce(old.domain_id, 0), id, (sent ->> 'kept_until')::timestamptz
          FROM unnest(accepted) AS new JOIN unnest(olds) AS old USING (id)
         WHERE place_of(old) <> place_of(new);
    END IF;
    IF sent ?| '{channel,unassign_channel}' THEN
        WITH added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT owner, channel_id, id FROM unnest(ids) AS id, unnest(ids_in(sent -> 'channel')) AS channel_id
            ON CONFLICT DO NOTHING
            RETURNING link_id),
        removed AS (
            DELETE FROM channel_items
             WHERE user_id = owner AND link_id = ANY (ids)
               AND (sent -> 'channel' = '[]' OR channel_id = (sent ->> 'unassign_channel')::bigint)
            RETURNING link_id)
        INSERT INTO outbox (user_id, type, object_id)
        SELECT owner, 'link.updated', link_id
          FROM (SELECT link_id FROM added UNION SELECT link_id FROM removed) moved
         WHERE notes_changes(owner) AND link_id <> ALL (changed);
    END IF;
END $$;

-- Write the members that were sent to links, and those that `by_id` has for one of them, if it still has the `version` among
-- these. Return the code, detail, id, alias and domain of each, and the record of a single one. Of `many`,
-- also look up what the constraint of aliases would refuse. The links are locked in the order of their ids, so that two
-- requests do not wait for each other. An alias that several would have belongs to the oldest. A `trial` writes nothing.
CREATE FUNCTION change_links(owner bigint, ids bigint[], sent jsonb, reserved text[], many boolean, atomic boolean,
                             by_id jsonb, trial boolean, OUT results json, OUT record json) LANGUAGE plpgsql AS $$
DECLARE
    suspect  CONSTANT boolean  := targets_refusal(owner, urls_in(sent) || urls_in(by_id)) IS NOT NULL;
    own      CONSTANT domains  := own_domain(owner, sent ->> 'domain');
    channels CONSTANT bigint[] := ids_in(sent -> 'channel');
    lacks    CONSTANT text[]   := CASE WHEN many THEN lacking_features(owner) END;
    stored   public.links;
    link     public.links;
    members  jsonb;
    accepted public.links[] := '{}';
    moved    bigint[] := '{}';  -- that have other targets
    answers  json[] := '{}';
    refusal  record;
    domain   text;
    taken    text[] := '{}';
BEGIN
    FOR stored IN
        SELECT * FROM links WHERE user_id = owner AND id = ANY (ids) ORDER BY id FOR NO KEY UPDATE
    LOOP
        members := sent || coalesce(by_id -> stored.id::text, '{}');
        link := link_with(stored, members, own);
        link.custom := stored.custom OR link.alias <> stored.alias;
        IF stored.url_only THEN  -- a new link of the same URL must not return a changed one
            link.url_only := link = stored AND NOT EXISTS (
                SELECT unnest(channels) EXCEPT
                SELECT channel_id FROM channel_items WHERE user_id = owner AND link_id = link.id);
        END IF;
        refusal := link_refusal(link, stored, members, suspect, own.host, reserved, lacks);
        IF link.version <> stored.version THEN
            refusal.code := 'changed_meanwhile';
        END IF;
        IF refusal.code IS NULL AND sent ? 'kept_until' AND place_of(link) <> place_of(stored) AND 20 <= (
            SELECT count(*) FROM public.aliases
             WHERE link_id = stored.id AND until > now()
               AND (domain_id = 0 OR domain_id IN (SELECT d.id FROM public.domains d))) THEN
            refusal.code := 'short_urls_full';
        END IF;
        IF many AND refusal.code IS NULL AND place_of(link) <> place_of(stored) THEN
            refusal.detail := use_of_alias(link);
            refusal.code := CASE WHEN refusal.detail IS NOT NULL OR place_of(link) = ANY (taken)
                                 THEN 'alias_taken' END;
            taken := taken || place_of(link);
        END IF;
        IF many AND refusal.code IS NULL AND is_externalid_taken(link) THEN
            refusal.code := 'externalid_taken';
        END IF;
        domain := NULL;
        IF link.domain_id IS NOT NULL THEN
            SELECT d.domain INTO domain FROM domains d WHERE id = link.domain_id;
        END IF;
        answers := answers || json_build_array(refusal.code, refusal.detail, link.id, link.alias, domain);
        IF refusal.code IS NULL THEN
            accepted := accepted || link;
            moved := CASE WHEN targets_in(link) <> targets_in(stored) THEN moved || link.id ELSE moved END;
        END IF;
    END LOOP;
    results := array_to_json(answers);
    IF NOT trial AND (NOT atomic OR cardinality(accepted) = cardinality(ids)) THEN
        PERFORM update_links(owner, accepted, moved, sent);
    END IF;
    IF cardinality(ids) = 1 AND accepted <> '{}' THEN
        record := link_record(owner, link.id);
    END IF;
END $$;

CREATE FUNCTION search_text(url text, alias text, title text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(url || chr(10) || alias || chr(10) || title);

-- Create the index of the search unless its extensions are refused: a search then reads all links of its user. Entries
-- of new rows wait in a list, which the jobs empty.
CREATE FUNCTION create_search_index() RETURNS void LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
    IF to_regclass('links_search') IS NULL THEN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
        CREATE EXTENSION IF NOT EXISTS btree_gin;
        CREATE INDEX links_search ON links USING gin (user_id, search_text(url, alias, title) gin_trgm_ops);
        CREATE INDEX titles_search ON link_checks USING gin (user_id, lower(title) gin_trgm_ops) WITH (fastupdate = off)
            WHERE title <> '';
    END IF;
EXCEPTION
    -- PostgreSQL reports a missing extension by the second, and from version 15 on by the third.
    WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN NULL;
END $$;

CREATE FUNCTION search_pattern(q text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '%' || regexp_replace(lower(q), '([\\%_])', '\\\1', 'g') || '%';

-- Return the links that contain a text, or `ascii`, which is the text with its host name as targets have it; those without
-- a title whose page has the text in its own; the link of a short URL; and the one whose external id is the text. EXECUTE
-- plans for each text: short and frequent ones are found faster without the index.
CREATE FUNCTION search_links(owner bigint, q text, ascii text DEFAULT NULL, short_host text DEFAULT NULL,
                             short_alias text DEFAULT NULL)
RETURNS TABLE (total bigint, ids bigint[]) LANGUAGE plpgsql STABLE AS $$
DECLARE
    named bigint[] := ARRAY[(alias_at(short_host, short_alias)).link_id,
                            (SELECT id FROM links WHERE user_id = owner AND externalid = q AND externalid <> '')];
    titled bigint[];  -- a second statement, which then knows their number
BEGIN
    EXECUTE 'SELECT array_agg(link_id) FROM link_checks WHERE user_id = $1 AND title <> '''' AND lower(title) LIKE $2'
       INTO titled USING owner, search_pattern(q);
    RETURN QUERY EXECUTE
        'WITH matched AS NOT MATERIALIZED (
             SELECT id, title,
                    search_text(url, alias, title) LIKE $2
                    OR ($3 IS NOT NULL AND search_text(url, alias, title) LIKE $3) AS has_text
               FROM links
              WHERE user_id = $1)
         SELECT count(*), array_agg(id)
           FROM (SELECT id FROM matched WHERE has_text
                  UNION ALL
                 SELECT id FROM unnest($4) AS other JOIN matched ON id = other
                  WHERE NOT has_text AND (title = '''' OR id = ANY ($5))) found'
        USING owner, search_pattern(q), search_pattern(ascii),
              ARRAY(SELECT unnest(titled) UNION SELECT unnest(named)), named;
END $$;

-- The ids of the newest links of all users that have a text, or `ascii`. Planned like those of search_links(): the last
-- links are read for a frequent text, and the index for any other.
CREATE FUNCTION find_links(q text, ascii text, most integer) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE
        'SELECT id FROM links
          WHERE search_text(url, alias, title) LIKE $1 OR search_text(url, alias, title) LIKE $2
          ORDER BY id DESC LIMIT $3'
        USING search_pattern(q), search_pattern(ascii), most;
END $$;

-- Deleted links that can be restored: another table, so that no statement that reads links sees them. Their aliases,
-- visits and totals remain.
CREATE TABLE binned_links (
    LIKE links,
    channel_ids bigint[]    NOT NULL,
    binned      timestamptz NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT domain_in_use FOREIGN KEY (user_id, domain_id) REFERENCES domains (user_id, id)
);
CREATE INDEX ON binned_links (user_id, binned, id);
CREATE INDEX ON binned_links (user_id, domain_id) WHERE domain_id IS NOT NULL;  -- deletion of domains
CREATE INDEX ON binned_links (binned);  -- the purge
CREATE INDEX ON binned_links (campaign, id) WHERE campaign IS NOT NULL;  -- statistics of campaigns
CREATE INDEX ON binned_links USING gin (channel_ids);  -- statistics of channels

CREATE TRIGGER change_version BEFORE UPDATE ON binned_links FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION change_version();
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON binned_links
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON binned_links
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON binned_links
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER store_aliases AFTER INSERT ON binned_links
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION store_aliases();
CREATE TRIGGER delete_alias AFTER DELETE ON binned_links FOR EACH ROW EXECUTE FUNCTION delete_alias();

-- Return the owner of a link, also of one in the bin, or NULL.
CREATE FUNCTION owner_of_link(link bigint) RETURNS bigint LANGUAGE sql STABLE
RETURN coalesce((SELECT user_id FROM links WHERE id = link), (SELECT user_id FROM binned_links WHERE id = link));

-- Checks of the targets of links, added by a process some time after the links. A change of `due` revokes a check that
-- has begun.
CREATE TABLE link_checks (
    link_id bigint      PRIMARY KEY,
    user_id bigint      NOT NULL,
    due     timestamptz NOT NULL DEFAULT now(),
    checked timestamptz,
    state   text        NOT NULL DEFAULT 'unchecked' CHECK (state IN ('ok', 'broken', 'unchecked')),
    failed  timestamptz,  -- the first failure since the last success
    broken  integer     NOT NULL DEFAULT 0,  -- failures since the link is broken
    reason  text        NOT NULL DEFAULT '',  -- of the last failure, or why no check is possible
    target  text        NOT NULL DEFAULT '',  -- that has this reason
    title   text        NOT NULL DEFAULT '',  -- of the page, if the link has none
    passed  integer     NOT NULL DEFAULT 0  -- targets of a check that continues with the others
);
CREATE INDEX ON link_checks (due);
CREATE INDEX ON link_checks (user_id, state, link_id);
SELECT create_search_index();

-- Return the title of a link, or else that of its page, or ''. `link_name` in Python makes a name of it and the target.
CREATE FUNCTION link_title(link bigint, title text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(nullif(title, ''), (SELECT c.title FROM link_checks c WHERE link_id = link), '');
END $$;

-- An array takes less time than an object, which lists would make for each of their rows.
CREATE VIEW link_health AS
SELECT link_id, ARRAY[state, reason, target, title, checked::text] AS health FROM link_checks;

CREATE TABLE bios (
    LIKE resources INCLUDING ALL,
    domain_id bigint CHECK (domain_id IS NULL),  -- our own host, for the triggers of links
    alias   text        NOT NULL,
    custom  boolean     NOT NULL DEFAULT false,
    name    text        NOT NULL,
    bio     text        NOT NULL DEFAULT '',
    theme   text        NOT NULL DEFAULT 'light',
    links   json        NOT NULL DEFAULT '[]' CONSTRAINT too_large CHECK (octet_length(links::text) <= 64 << 10)
);

CREATE TRIGGER change_version BEFORE UPDATE ON bios
    FOR EACH ROW EXECUTE FUNCTION change_version('{}');
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON bios
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON bios
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();
CREATE TRIGGER store_aliases AFTER INSERT ON bios
    REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION store_aliases();
CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON bios
    FOR EACH ROW EXECUTE FUNCTION note_events('bio');
CREATE TRIGGER change_alias AFTER UPDATE ON bios FOR EACH ROW
    WHEN (OLD.alias <> NEW.alias) EXECUTE FUNCTION change_alias();
CREATE TRIGGER delete_alias AFTER DELETE ON bios FOR EACH ROW EXECUTE FUNCTION delete_alias();

-- QR codes, also those in the bin. Their URLs, visits, totals, logos and channels remain.
CREATE TABLE kept_qrs (
    LIKE resources INCLUDING ALL EXCLUDING IDENTITY,
    key_id      bigint,
    code        text        NOT NULL CONSTRAINT qrs_code_key UNIQUE,  -- the last part of the URLs
    type        text        NOT NULL,
    data        json        NOT NULL,
    name        text        NOT NULL,
    background  text        NOT NULL,
    foreground  text        NOT NULL,
    logo_hash   bytea,
    logo_source text,  -- the URL or the file name that the user sent
    binned      timestamptz,
    FOREIGN KEY (user_id, logo_hash) REFERENCES logos
);
ALTER TABLE kept_qrs ALTER id SET DEFAULT nextval('tracked_ids');
CREATE INDEX ON kept_qrs (user_id, logo_hash) WHERE logo_hash IS NOT NULL;
CREATE INDEX ON kept_qrs (user_id, binned, id) WHERE binned IS NOT NULL;
CREATE INDEX ON kept_qrs (binned) WHERE binned IS NOT NULL;  -- the purge

-- Those outside the bin. Statements name this view, so that none sees a QR code in the bin that does not want to.
CREATE VIEW qrs AS SELECT * FROM kept_qrs WHERE binned IS NULL;

-- A restored QR code has the version that it had.
CREATE TRIGGER change_version BEFORE UPDATE ON kept_qrs
    FOR EACH ROW EXECUTE FUNCTION change_version('{binned}');
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON kept_qrs
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON kept_qrs
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows('qrs');

-- Count a QR code that was deleted, or has entered or left the bin.
CREATE FUNCTION count_moved_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.usage_parts AS u (user_id, counted, part, total)
    SELECT OLD.user_id, CASE WHEN binned IS NULL THEN 'qrs' ELSE 'binned_qrs' END, pg_backend_pid() % 32, sum(number)
      FROM (SELECT OLD.binned, -1 UNION ALL SELECT NEW.binned, 1 WHERE TG_OP = 'UPDATE') AS moved (binned, number)
     WHERE EXISTS (SELECT FROM users WHERE id = OLD.user_id)
     GROUP BY 2
     ORDER BY 2
    ON CONFLICT (user_id, counted, part) DO UPDATE SET total = u.total + excluded.total;
    RETURN NULL;
END $$;
CREATE TRIGGER count_moved_code AFTER DELETE OR UPDATE OF binned ON kept_qrs
    FOR EACH ROW EXECUTE FUNCTION count_moved_code();

CREATE TRIGGER note_events AFTER INSERT OR UPDATE OR DELETE ON kept_qrs
    FOR EACH ROW EXECUTE FUNCTION note_events('qr');
CREATE TRIGGER delete_logo AFTER DELETE OR UPDATE OF logo_hash ON kept_qrs FOR EACH ROW
    WHEN (OLD.logo_hash IS NOT NULL) EXECUTE FUNCTION delete_logo();

CREATE FUNCTION retire_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO aliases (alias, domain_id, owner_id) VALUES (OLD.code, -1, OLD.user_id) ON CONFLICT DO NOTHING;
    ELSIF EXISTS (SELECT FROM aliases WHERE alias = NEW.code AND domain_id = -1 AND owner_id <> NEW.user_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'unique_violation', CONSTRAINT = 'qrs_code_key', MESSAGE = 'retired';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER retire_code AFTER INSERT OR DELETE ON kept_qrs FOR EACH ROW EXECUTE FUNCTION retire_code();

-- Return why a QR code of a URL is refused, or NULL: it is on a branded domain, where it could lead back to the same QR
-- code. Links do not lead back.
CREATE FUNCTION code_refusal(url text) RETURNS text LANGUAGE sql STABLE
RETURN CASE WHEN EXISTS (
                SELECT FROM live_domains d
                 WHERE host = host_of(url)
                   AND NOT EXISTS (
                       SELECT FROM aliases a
                        WHERE a.domain_id = d.id
                          AND url ~ ('^' || d.scheme || '://[^/:?#]+/')
                          AND a.alias = alias_key(alias_in(url), d.id)))
            THEN 'link_branded' END;

-- An update that keeps the URL is accepted: its host may have become a branded domain since.
CREATE FUNCTION require_code_target(sent json, stored json DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse(refusal) FROM code_refusal(sent #>> '{}') AS refusal
      WHERE sent::text IS DISTINCT FROM stored::text AND refusal IS NOT NULL;
    RETURN true;
END $$;

CREATE TABLE channel_items (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    bigint NOT NULL,
    channel_id bigint NOT NULL,
    link_id    bigint,
    bio_id     bigint,
    qr_id      bigint,
    CHECK (num_nonnulls(link_id, bio_id, qr_id) = 1),
    UNIQUE NULLS NOT DISTINCT (channel_id, link_id, bio_id, qr_id),
    FOREIGN KEY (user_id, link_id) REFERENCES links (user_id, id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, bio_id) REFERENCES bios (user_id, id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, qr_id) REFERENCES kept_qrs (user_id, id) ON DELETE CASCADE
);
CREATE INDEX ON channel_items (channel_id, id);
CREATE INDEX ON channel_items (link_id) WHERE link_id IS NOT NULL;
CREATE INDEX ON channel_items (bio_id) WHERE bio_id IS NOT NULL;
CREATE INDEX ON channel_items (qr_id) WHERE qr_id IS NOT NULL;

-- Channels of many items are looked up once, because a bulk request may send 20,000.
CREATE FUNCTION require_channels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_rows('channels', user_id, array_agg(DISTINCT channel_id), 'channel_unknown')
       FROM inserted
      GROUP BY user_id;
    RETURN NULL;
END $$;
CREATE TRIGGER require_channels AFTER INSERT ON channel_items REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION require_channels();

-- Pages of the statistics of links and campaigns, for all who have the token (features/public_statistics).
CREATE TABLE public_statistics (
    user_id       bigint NOT NULL,
    link_id       bigint,
    campaign_id   bigint,
    token         text   UNIQUE,  -- NULL: the page is not public
    password_hash text,
    period        text   NOT NULL,
    tables        text[] NOT NULL,
    CHECK (num_nonnulls(link_id, campaign_id) = 1),
    UNIQUE NULLS NOT DISTINCT (user_id, link_id, campaign_id),
    FOREIGN KEY (user_id, link_id) REFERENCES links (user_id, id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, campaign_id) REFERENCES campaigns (user_id, id) ON DELETE CASCADE
);
CREATE INDEX ON public_statistics (user_id, campaign_id) WHERE campaign_id IS NOT NULL;  -- deletion

-- Links and QR codes by the id under which their visits are counted. The name of a link is its short URL.
CREATE VIEW tracked_rows AS
SELECT user_id, id, 'link' AS noun,
       coalesce((SELECT host FROM domains WHERE id = domain_id) || '/', '') || alias AS name,
       (SELECT domain FROM domains WHERE id = domain_id) AS domain, alias,
       link_title(id, title) AS title, url
  FROM links
 UNION ALL
SELECT user_id, id, 'QR code', name, NULL, NULL, NULL, NULL FROM qrs;

-- Links, also those in the bin, whose visits still count for their campaigns and domains.
CREATE VIEW kept_links AS
SELECT user_id, id, campaign, domain_id, imported_clicks FROM links
 UNION ALL
SELECT user_id, id, campaign, domain_id, imported_clicks FROM binned_links;

-- Return what a label of statistics stands for: the row of a link or QR code in `tracked_rows`, one `in_bin`, or the
-- name of a campaign or channel. Deleted ones have none.
CREATE FUNCTION label_name(owner bigint, dimension text, label text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN label = '-' THEN NULL
                WHEN dimension = 'target'
                THEN coalesce(
                    (SELECT to_json(r) FROM tracked_rows r WHERE user_id = owner AND id = label::bigint),
                    (SELECT json_build_object('noun', 'link', 'in_bin', true, 'alias', alias, 'url', url,
                                              'name', coalesce(host || '/', '') || alias, 'domain', domain,
                                              'title', link_title(b.id, title))
                       FROM binned_links b LEFT JOIN domains d ON d.id = domain_id
                      WHERE b.user_id = owner AND b.id = label::bigint),
                    (SELECT json_build_object('noun', 'QR code', 'in_bin', true, 'name', name)
                       FROM kept_qrs WHERE user_id = owner AND id = label::bigint))
                WHEN dimension = 'campaign'
                THEN (SELECT json_build_object('name', name) FROM campaigns WHERE user_id = owner AND id = label::bigint)
                WHEN dimension = 'channel'
                THEN (SELECT json_build_object('name', name) FROM channels WHERE user_id = owner AND id = label::bigint)
           END;
END $$;

-- Return the labels of links and QR codes in a dimension that is not one of visits: the ids of their campaigns and
-- channels, or the hosts of their domains, which are empty for our own. Of all users if there is no owner.
CREATE FUNCTION tracked_labels(owner bigint, tracked bigint[], dimension text)
RETURNS TABLE (tracked_id bigint, label text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF dimension = 'campaign' THEN
        RETURN QUERY SELECT l.id, c.id::text
                       FROM kept_links l JOIN campaigns c ON c.user_id = l.user_id AND c.id = campaign
                      WHERE (owner IS NULL OR l.user_id = owner) AND l.id = ANY (tracked);
    ELSIF dimension = 'channel' THEN
        RETURN QUERY SELECT coalesce(link_id, qr_id), c.id::text
                       FROM channel_items i JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                      WHERE (owner IS NULL OR i.user_id = owner) AND (link_id = ANY (tracked) OR qr_id = ANY (tracked))
                      UNION ALL
                     SELECT b.id, c.id::text
                       FROM binned_links b JOIN channels c ON c.user_id = b.user_id AND c.id = ANY (channel_ids)
                      WHERE (owner IS NULL OR b.user_id = owner) AND b.id = ANY (tracked);
    ELSIF dimension = 'domain' THEN
        RETURN QUERY SELECT l.id, coalesce(host, '') FROM kept_links l LEFT JOIN domains d ON d.id = domain_id
                      WHERE (owner IS NULL OR l.user_id = owner) AND l.id = ANY (tracked);
    END IF;
END $$;

-- `kind` is 'click' or 'scan', which may be one of the QR code of a link. IP addresses are not stored: `visitor` is a
-- keyed digest. Labels that are not known are NULL, which statistics name 'Unknown'. Old months are dropped.
CREATE TABLE visits (
    tracked_id bigint      NOT NULL,
    at         timestamptz NOT NULL,
    bot        boolean     NOT NULL DEFAULT false,
    visitor    bytea       NOT NULL,
    country    text,
    referrer   text,
    browser    text,
    os         text,
    device     text,
    city       text,
    language   text,
    utm_source text,
    utm_medium text,
    utm_campaign text,
    variant    text,
    rule       text,
    kind       text
) PARTITION BY RANGE (at);
CREATE INDEX ON visits (tracked_id, bot, at);

-- Return the events of visits of people, unless they are stored more than a day late: 40 fit into one.
CREATE FUNCTION visit_events(added visits[]) RETURNS TABLE (user_id bigint, type text, data jsonb)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT user_id, type, jsonb_agg(visit ORDER BY number)
      FROM (SELECT owners.user_id, owners.type,
                   row_number() OVER (PARTITION BY owners.user_id, owners.type ORDER BY at) AS number,
                   jsonb_build_object('id', tracked_id, 'time', at)
                   || (SELECT jsonb_object_agg(dimension, coalesce(left(label, 60), 'Unknown'))
                         FROM jsonb_each_text(to_jsonb(v) - '{tracked_id,at,visitor,bot}'::text[])
                              AS labels (dimension, label)) AS visit
              FROM unnest(added) AS v,
                   LATERAL (SELECT user_id, CASE noun WHEN 'link' THEN 'visit' ELSE 'scan' END AS type
                              FROM tracked_rows WHERE id = tracked_id) owners
             WHERE NOT bot AND at > now() - interval '1 day' AND has_webhooks(owners.user_id)) numbered
     GROUP BY user_id, type, (number - 1) / 40;
END $$;

-- Create the functions that name all dimensions of statistics, which are the columns of type text. PostgreSQL inlines
-- them, so that they take no longer than the columns. visit_label() is the label of a visit in a dimension, and
-- visit_labels() are those that are known, and NULL.
-- visit_passes(): true if a visit passes all `filters`, NULL or {dimension: {"included": [label], "excluded": [label]}},
-- with labels in lower case.
-- read_visits(): the elements of linkmgr/visits/store.py as visits. A program of before a dimension has no label.
-- A migration that adds a dimension calls this at its end.
CREATE FUNCTION create_visit_functions() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    texts record;
BEGIN
    SELECT string_agg(format('WHEN %1$L THEN coalesce(v.%1$I, ''Unknown'')', attname), ' ') FILTER (WHERE is_dimension) AS label,
           string_agg(format('(%1$L, v.%1$I)', attname), ', ') FILTER (WHERE is_dimension) AS labels,
           string_agg(format(
               '(filters -> %1$L IS NULL'
               ' OR coalesce(filters -> %1$L -> ''included'' ? lower(coalesce(v.%1$I, ''Unknown'')), true) AND NOT'
               ' coalesce(filters -> %1$L -> ''excluded'' ? lower(coalesce(v.%1$I, ''Unknown'')), false))',
               attname), ' AND ')
               FILTER (WHERE is_dimension) AS passes,
           string_agg(format('%I text', attname), ', ') FILTER (WHERE is_dimension) AS members,
           string_agg(CASE WHEN is_dimension THEN format('nullif(%I, ''Unknown'')', attname)
                           WHEN attname = 'at' THEN 'least(to_timestamp(at), now())'  -- a host's clock may be ahead
                           WHEN attname = 'visitor' THEN 'decode(visitor, ''hex'')'
                           ELSE attname END, ', ' ORDER BY attnum) AS columns
      INTO texts
      FROM (SELECT attname, attnum, atttypid = 'text'::regtype AS is_dimension
              FROM pg_attribute
             WHERE attrelid = 'visits'::regclass AND attnum > 0 AND NOT attisdropped) attributes;
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION visit_label(v visits, dimension text) RETURNS text LANGUAGE sql IMMUTABLE
        RETURN CASE dimension %s WHEN 'target' THEN v.tracked_id::text ELSE '' END;
        CREATE OR REPLACE FUNCTION visit_labels(v visits) RETURNS TABLE (dimension text, label text)
        LANGUAGE sql IMMUTABLE AS 'VALUES %s';
        CREATE OR REPLACE FUNCTION visit_passes(v visits, filters jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE
        RETURN filters IS NULL OR %s;
        CREATE OR REPLACE FUNCTION read_visits(elements json)
        RETURNS TABLE (user_id bigint, social text, visit visits) LANGUAGE sql STABLE AS %L
        $sql$, texts.label, replace(texts.labels, '''', ''''''), texts.passes,
        format('SELECT user_id, social, ROW(%s)::visits FROM json_to_recordset(elements) AS element (user_id bigint, '
               'tracked_id bigint, at float8, visitor text, social text, bot boolean, %s)', texts.columns,
               texts.members));
END $$;
SELECT create_visit_functions();

-- Attaching a table, unlike creating it as a partition, waits neither for visits nor for a dump.
CREATE FUNCTION create_partition(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    month     timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
    partition text      := to_char(month, '"visits_"YYYY_MM');
BEGIN
    PERFORM pg_advisory_xact_lock('visits'::regclass::oid::bigint) WHERE to_regclass(partition) IS NULL;
    IF NOT EXISTS (SELECT FROM pg_class WHERE relname = partition) THEN  -- to_regclass() may not see it yet
        EXECUTE format('CREATE TABLE %I (LIKE visits INCLUDING DEFAULTS)', partition);
        EXECUTE format('ALTER TABLE visits ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                       partition, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
    END IF;
END $$;
SELECT create_partition(now());

CREATE VIEW partitions AS
SELECT partition, bounds[1]::timestamptz AS since, bounds[2]::timestamptz AS until
  FROM (SELECT oid::regclass AS partition,
               regexp_match(pg_get_expr(relpartbound, oid), 'FROM \(''(.+)''\) TO \(''(.+)''\)') AS bounds
          FROM pg_class
         WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'visits'::regclass)) bounded;

-- Drop a partition and return true. With `if_empty`, keep one that has visits and return false.
CREATE FUNCTION drop_partition(partition regclass, if_empty boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    has_visits boolean;
BEGIN
    EXECUTE format('LOCK TABLE ONLY visits, ONLY %s IN ACCESS EXCLUSIVE MODE', partition);
    EXECUTE format('SELECT %L AND EXISTS (SELECT FROM %s)', if_empty, partition) INTO has_visits;
    IF NOT has_visits THEN
        EXECUTE format('DROP TABLE %s', partition);
    END IF;
    RETURN NOT has_visits;
END $$;

-- Spool files of visits. store_visits() advances the number of bytes, so a repetition stores nothing.
CREATE TABLE visit_spools (
    name   text   PRIMARY KEY,
    stored bigint NOT NULL
);

CREATE TABLE visitors (
    tracked_id bigint      NOT NULL,
    visitor    bytea       NOT NULL,
    seen       timestamptz NOT NULL,  -- a visit of the last day (UTC) with one, of which the first is stored
    variant    text,  -- that the link led to on this day, as experiment_key() names it
    PRIMARY KEY (tracked_id, visitor)
);

-- Actions of visitors after their visit at `click`, which finds the visit. The labels are copied from it, so that
-- statistics remain when it is deleted, and are NULL until it is stored.
CREATE TABLE conversions (
    LIKE resources INCLUDING ALL,  -- `created` is the time of the conversion
    tracked_id bigint      NOT NULL,
    click      timestamptz NOT NULL,
    event      text        NOT NULL,
    order_id   text        NOT NULL DEFAULT '',
    value      numeric(13, 3) CONSTRAINT refund_too_large CHECK (value >= 0),
    currency   text        NOT NULL DEFAULT '',
    source     text        NOT NULL CHECK (source IN ('key', 'page')),
    problem    text        NOT NULL DEFAULT '',  -- why there is no value, or '' if none was sent
    labels     jsonb,  -- by dimension, those that are known
    visitor    bytea  -- of the visit, after 90 days a number of 8 bytes
);
CREATE UNIQUE INDEX ON conversions (tracked_id, click, event, order_id);
CREATE UNIQUE INDEX ON conversions (user_id, order_id, event) WHERE order_id <> '';
CREATE INDEX ON conversions (tracked_id, created);
CREATE INDEX ON conversions (user_id, created);
CREATE INDEX ON conversions (click) WHERE labels IS NULL;
CREATE INDEX ON conversions (click) WHERE octet_length(visitor) <> 8;  -- for forget_visitors(), like the next one
CREATE INDEX ON conversions (visitor) WHERE octet_length(visitor) <> 8;

CREATE TRIGGER count_rows_on_insert AFTER INSERT ON conversions
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON conversions
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();

-- Return the labels of the visit of a link at this time and its visitor, or nothing. In plpgsql to be planned once.
CREATE FUNCTION visit_at(link bigint, click timestamptz) RETURNS TABLE (labels jsonb, visitor bytea)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT (SELECT coalesce(jsonb_object_agg(dimension, label), '{}')
              FROM visit_labels(v) AS known (dimension, label)
             WHERE label IS NOT NULL),
           nullif(v.visitor, '')
      FROM visits v
     WHERE v.tracked_id = link AND NOT v.bot AND v.at = click
     LIMIT 1;
END $$;

-- Count the conversions of a link and their values: `of_all`, and by experiment and variant; both by currency too. Those of
-- an experiment are of visits from its start to that of the next. In plpgsql to be planned once.
CREATE FUNCTION link_conversions(owner bigint, link bigint, of_event text)
RETURNS TABLE (of_all boolean, number integer, variant text, currency text, conversions bigint, converted bigint, value float8)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH spans AS MATERIALIZED (
        SELECT number, started, coalesce(lead(started) OVER (ORDER BY number), 'infinity') AS until
          FROM links, jsonb_to_recordset(experiments) AS e (number integer, started timestamptz)
         WHERE user_id = owner AND id = link)
    SELECT grouping(number) = 1, number, variant, currency, count(*),
           count(DISTINCT coalesce(visitor, click::text::bytea)) FILTER (WHERE number IS NOT NULL),
           coalesce(sum(value), 0)::float8
      FROM (SELECT number, labels ->> 'variant' AS variant, c.currency, visitor, click, value
              FROM (SELECT * FROM conversions WHERE tracked_id = link OFFSET 0) c  -- not by an index of the user
              LEFT JOIN spans ON click >= started AND click < until
             WHERE c.user_id = owner AND (of_event IS NULL OR event = of_event)) own
     GROUP BY GROUPING SETS ((), (currency), (number, variant), (number, variant, currency))
     ORDER BY currency;
END $$;

-- Return the record of a conversion for linkmgr/features/conversions/repository.py.
CREATE FUNCTION conversion_record(c conversions) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('id', c.id, 'link', c.tracked_id, 'event', c.event, 'order', c.order_id, 'value', c.value,
                          'currency', c.currency, 'problem', c.problem, 'source', c.source, 'click', c.click,
                          'date', c.created, 'updated', c.updated, 'labels', coalesce(c.labels, '{}'));

-- Return when a visitor of a link, who may have had any of these digests, was last seen. In plpgsql to be planned once.
CREATE FUNCTION last_seen(link bigint, digests text[]) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT max((SELECT seen FROM visitors WHERE tracked_id = link AND visitor = decode(digest, 'hex')))
              FROM unnest(digests) AS digest);
END $$;

-- Return the conversion that a user has of the same event and order, or of the same event and click of a link if there is no
-- order id, and in `so_far` how many of a source the click has. In plpgsql to be planned once. While statistics are missing
-- or tell of few rows, other indexes of the table seem as good as the unique ones, and each report would read all conversions
-- of its link. Without sorting, only the unique ones have the order.
CREATE FUNCTION same_conversion(owner bigint, link bigint, visited timestamptz, of_event text, of_order text, of_source text,
                                OUT id bigint, OUT source text, OUT so_far bigint)
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
#variable_conflict use_column
BEGIN
    SELECT count(*) FILTER (WHERE source = of_source), min(id) FILTER (WHERE event = of_event AND order_id = of_order),
           min(source) FILTER (WHERE event = of_event AND order_id = of_order)
      INTO so_far, id, source
      FROM (SELECT * FROM conversions WHERE tracked_id = link AND click = visited ORDER BY event, order_id) clicked;
    IF of_order <> '' THEN
        SELECT id, source
          INTO id, source
          FROM (SELECT * FROM conversions
                 WHERE user_id = owner AND (order_id, event) >= (of_order, of_event) AND order_id <> ''  -- as the index has
                 ORDER BY order_id, event
                 LIMIT 1) following
         WHERE order_id = of_order AND event = of_event;
    END IF;
END $$;

-- Store conversions of links of a user, or of any user without an owner, then all of one link. Return the outcome of each,
-- and the id of what is stored. Each element of `sent` has its `link`, and its `click` or the digests of its possible
-- `visitors`, whose last visit counts. It may come `days` after the visit, of which at most `of_click` of the same source are
-- stored, and `most` of the user. Those of a page have a value up to `page_value` of the user. None of that is asked of
-- those of an account that is `restored`. What a key reports replaces what a page, as anybody may send it, has reported of
-- the same order, and has its id. The lock makes the bounds exact.
CREATE FUNCTION add_conversions(owner bigint, sent jsonb, days integer, of_click integer, most bigint, restored boolean)
RETURNS TABLE (result text, id bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM pg_advisory_xact_lock('conversions'::regclass::oid::integer, hashint8(
        coalesce(owner, (SELECT user_id FROM links l WHERE l.id = (sent -> 0 ->> 'link')::bigint))));
    RETURN QUERY
    WITH resolved AS MATERIALIZED (
        SELECT s.*, l.user_id, coalesce(s.click, last_seen(s.link, visitors)) AS visited,
               least(coalesce(s.at, now()), now()) AS reported,
               CASE WHEN s.problem <> '' OR s.value IS NULL OR s.source = 'key' OR restored THEN s.problem
                    WHEN page_value IS NULL THEN 'not_allowed'
                    WHEN s.value > page_value THEN 'too_large' ELSE '' END AS refused_value
          FROM ROWS FROM (jsonb_to_recordset(sent) AS (
                   link bigint, click timestamptz, visitors text[], at timestamptz, event text, order_id text,
                   value numeric, currency text, source text, problem text, labels jsonb))
               WITH ORDINALITY AS s (link, click, visitors, at, event, order_id, value, currency, source, problem,
                                     labels, number)
          LEFT JOIN LATERAL (SELECT user_id, page_value FROM links l JOIN users u ON u.id = user_id
                              WHERE l.id = s.link AND user_id = coalesce(owner, user_id)
                                AND (suspended <> 'all' OR restored) OFFSET 0) l ON true),
    judged AS MATERIALIZED (
        SELECT r.*, same.id AS replaced,
               CASE WHEN user_id IS NULL AND click IS NULL THEN 'no_link'
                    WHEN user_id IS NULL OR visited IS NULL OR reported < visited - interval '5 minutes' THEN 'no_visit'
                    WHEN reported > visited + make_interval(days => days) THEN 'too_late'
                    WHEN same.source IN ('key', r.source) THEN 'duplicate'
                    WHEN dense_rank() OVER (PARTITION BY link, visited, coalesce(same.source, 'page') ORDER BY turn)
                         + so_far > of_click AND NOT restored
                      OR row_number() OVER (PARTITION BY same.source ORDER BY number)
                         + coalesce((SELECT total FROM public.usage o
                                      WHERE o.user_id = r.user_id AND counted = 'conversions'), 0) > most
                    THEN 'too_many' END AS refusal
          FROM (SELECT *, min(number) OVER (PARTITION BY link, visited, event, order_id) AS turn FROM resolved) r
          LEFT JOIN LATERAL same_conversion(user_id, link, visited, event, order_id, r.source) same ON true),
    gone AS (
        DELETE FROM conversions c
         WHERE c.id = ANY (ARRAY(SELECT replaced FROM judged WHERE refusal IS NULL))
           AND EXISTS (SELECT FROM links l WHERE l.id = c.tracked_id OFFSET 0)  -- that a limited key sees
        RETURNING c.id),
    added AS (
        INSERT INTO conversions AS c (id, user_id, tracked_id, click, created, event, order_id, value, currency, source,
                                      problem, labels, visitor)
        SELECT coalesce(replaced, nextval('conversions_id_seq')), user_id, link, visited, greatest(reported, visited),
               event, order_id,
               CASE WHEN refused_value = '' THEN value END, currency, source, refused_value,
               coalesce(j.labels, visit.labels), visitor
          FROM judged j
          LEFT JOIN LATERAL visit_at(link, visited) visit ON true
         WHERE refusal IS NULL AND (SELECT count(*) FROM gone) >= 0  -- which are deleted before
         ORDER BY number
        ON CONFLICT DO NOTHING
        RETURNING c.*),
    noted AS (
        INSERT INTO outbox (user_id, type, data)
        SELECT user_id, CASE WHEN id IN (SELECT id FROM gone) THEN 'conversion.changed' ELSE 'conversion.created' END,
               conversion_record(ROW(a.*)::conversions)
          FROM added a
         WHERE has_webhooks(user_id) AND NOT restored)
    SELECT coalesce(refusal, CASE WHEN added.id IS NULL OR j.number > j.first THEN 'duplicate' ELSE 'counted' END),
           CASE WHEN j.number = j.first THEN added.id END
      FROM (SELECT *, min(number) FILTER (WHERE refusal IS NULL)
                      OVER (PARTITION BY link, visited, event, order_id) AS first FROM judged) j
      LEFT JOIN added ON refusal IS NULL AND (added.tracked_id, added.click, added.event, added.order_id)
                                             = (link, visited, j.event, j.order_id)
     ORDER BY number;
END $$;

CREATE TABLE totals (
    tracked_id bigint PRIMARY KEY,
    clicks     bigint NOT NULL,
    visitors   bigint NOT NULL,
    top_labels json,  -- the ten most frequent of each dimension
    experiments jsonb  -- by the number of one: its visitors by variant, in `<number> visits` its visits, and in
                       -- `<number> decided` the first result that has a winner
) WITH (fillfactor = 80);

-- The clicks of links with `maxclicks`, counted by the redirect, since visits are stored later.
CREATE TABLE taken_clicks (
    link_id bigint PRIMARY KEY,
    total   bigint NOT NULL
) WITH (fillfactor = 50);

-- The clicks of a link that count for `maxclicks`: those that were taken, or all before it had a limit. In plpgsql, because
-- PostgreSQL would otherwise set up its subqueries for each redirect.
CREATE FUNCTION used_clicks(link bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(
        (SELECT total FROM taken_clicks WHERE link_id = link),
        coalesce((SELECT clicks FROM totals WHERE tracked_id = link), 0)
        + coalesce((SELECT imported_clicks FROM links WHERE id = link), 0));
END $$;

-- Return why visitors of a link are not led to its target, or NULL if they are.
CREATE FUNCTION link_state(link bigint, starts timestamptz, expiry timestamptz, maxclicks bigint,
                           blocked timestamptz) RETURNS text LANGUAGE sql STABLE
RETURN CASE WHEN blocked IS NOT NULL THEN 'blocked'
            WHEN starts > now() THEN 'scheduled'
            WHEN expiry <= now() THEN 'expired'
            WHEN CASE WHEN maxclicks IS NOT NULL THEN used_clicks(link) >= maxclicks END THEN 'used' END;

-- The rows that a link refers to. A function, because PostgreSQL would otherwise open all of these tables for each
-- link, and most have none. Volatile, so that it sees what the statement that calls it has written.
CREATE FUNCTION link_references(owner bigint, link bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT json_build_object(
                   'domain', (SELECT domain FROM domains WHERE id = l.domain_id),
                   'type', CASE WHEN splash_id IS NOT NULL
                                THEN coalesce((SELECT to_json(id::text) FROM splash_pages p
                                                WHERE p.user_id = owner AND p.id = l.splash_id), '"direct"')
                                WHEN overlay_id IS NOT NULL
                                THEN coalesce((SELECT to_json('overlay-' || id) FROM overlays o
                                                WHERE o.user_id = owner AND o.id = l.overlay_id), '"direct"')
                                ELSE to_json(type) END,
                   'campaign', (SELECT id FROM campaigns c WHERE c.user_id = owner AND c.id = l.campaign),
                   'pixels', ARRAY(SELECT id FROM pixels p
                                    WHERE p.user_id = owner AND p.id = ANY (l.pixels)
                                    ORDER BY id),
                   'channel', ARRAY(SELECT channel_id FROM channel_items i
                                      JOIN channels c ON c.user_id = owner AND c.id = channel_id
                                     WHERE i.user_id = owner AND i.link_id = link
                                     ORDER BY channel_id))
          FROM links l
         WHERE l.user_id = owner AND l.id = link);
END $$;

-- Most links have no domain, campaign and channel, so those are not looked up for each.
CREATE VIEW link_records AS
SELECT l.user_id, l.id, l.alias, l.url AS longurl, l.title, l.description,
       coalesce(t.clicks, 0) AS clicks, coalesce(t.visitors, 0) AS uniqueclicks, l.imported_clicks,
       CASE WHEN domain_id IS NOT NULL THEN (SELECT domain FROM domains d WHERE d.id = domain_id) END AS host,
       CASE WHEN campaign IS NOT NULL
            THEN (SELECT c.id FROM campaigns c WHERE c.user_id = l.user_id AND c.id = l.campaign) END AS campaign,
       CASE WHEN EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id AND i.link_id = l.id)
            THEN ARRAY(SELECT channel_id FROM channel_items i JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                        WHERE i.user_id = l.user_id AND i.link_id = l.id
                        ORDER BY channel_id)
            ELSE '{}' END AS channel,
       l.created AS date, l.updated, health
  FROM links l
  LEFT JOIN totals t ON t.tracked_id = l.id
  LEFT JOIN link_health h ON h.link_id = l.id;

-- Links and, as `related`, the rows that they refer to: null for the common link without domain, campaign, page, pixel or
-- channel.
CREATE VIEW link_details AS
SELECT l.*, (SELECT health FROM link_health WHERE link_id = l.id) AS health,
       CASE WHEN num_nonnulls(domain_id, campaign, splash_id, overlay_id, pixels) > 0
              OR EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id AND i.link_id = l.id)
            THEN link_references(l.user_id, l.id) END AS related
  FROM links l;

-- The ids of the links that match all filters that are not null. The domain 0 is our own host, and `source` the host that
-- links of an import had before they came to it. Links by `health` are found by the index of its states, and those that
-- have none yet by their ids.
CREATE FUNCTION matching_links(owner bigint, q text, ascii text, short_host text, short_alias text, domain bigint,
                               campaign bigint, channel bigint, status text, expired text, password text, clicked text,
                               health text, since timestamptz, until timestamptz, import bigint, source text,
                               externalid text, ids bigint[], target text, updated_since timestamptz)
RETURNS TABLE (id bigint) LANGUAGE sql STABLE AS $$
    SELECT id
      FROM (SELECT * FROM links WHERE user_id = owner AND health IS NULL
             UNION ALL
            SELECT l.* FROM link_checks c JOIN links l ON l.id = link_id WHERE c.user_id = owner AND state = health
             UNION ALL
            SELECT l.* FROM links l, service
             WHERE user_id = owner AND id > checks_until AND health = 'unchecked'
               AND NOT EXISTS (SELECT FROM link_checks WHERE link_id = l.id)) l
     WHERE (q IS NULL OR l.id IN (SELECT unnest(ids) FROM search_links(owner, q, ascii, short_host, short_alias)))
       AND (domain IS NULL OR coalesce(domain_id, 0) = domain)
       AND (matching_links.campaign IS NULL OR l.campaign = matching_links.campaign)
       AND (channel IS NULL OR l.id IN (
            SELECT link_id FROM channel_items WHERE user_id = owner AND channel_id = channel))
       AND (matching_links.status IS NULL OR l.status = matching_links.status)
       AND (expired IS NULL
            OR coalesce(link_state(l.id, starts, expiry, maxclicks, NULL) <> 'scheduled', false)
               = (expired = 'yes'))
       AND (password IS NULL OR (password_hash IS NOT NULL) = (password = 'yes'))
       AND (clicked IS NULL OR (clicked = 'yes') = (
            coalesce(imported_clicks, 0) + coalesce((SELECT clicks FROM totals WHERE tracked_id = l.id), 0) > 0))
       AND (since IS NULL OR created >= since)
       AND (until IS NULL OR created < until)
       AND (import IS NULL OR import_id = import)
       AND (source IS NULL OR (source_host = source AND domain_id IS NULL))
       AND (matching_links.externalid IS NULL OR l.externalid = matching_links.externalid)
       AND (matching_links.ids IS NULL OR l.id = ANY (matching_links.ids))
       AND (target IS NULL OR l.url = target)
       AND (updated_since IS NULL OR l.updated >= updated_since)
$$;

-- Sums of visits by label. One row for all labels takes less time and space than a row for each. The label 'Unknown' is
-- not stored: it is what the other labels leave of the visits. Days of `account_targets` that have no rows here are raw:
-- while a day has few visits, their labels are read from `visits`, where they stay until the day is summed. 'all' has
-- what reads of `totals` need, and the other labels from the visit on that may be one too many (complete_labels).
CREATE TABLE tracked_rollups (
    tracked_id bigint      NOT NULL,
    unit       text        NOT NULL,  -- 'quarter' of an hour, 'day' (UTC) or 'all'
    bot        boolean     NOT NULL,
    at         timestamptz NOT NULL,  -- -infinity: 'all'
    visits     bigint      NOT NULL,
    labels     jsonb       NOT NULL DEFAULT '{}',  -- by dimension; those beyond a number are 'Other'
    PRIMARY KEY (tracked_id, unit, bot, at)
) WITH (fillfactor = 80);
CREATE INDEX ON tracked_rollups (timezone('UTC', at)) WHERE unit = 'quarter';  -- for the purge, and not for statistics

-- Return the sum of two such objects, of which the second is small. A concatenation is not compressed, which saves
-- decompressing it for each dimension.
CREATE FUNCTION add_labels(stored jsonb, added jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    stored := stored || '{}';
    RETURN (
        SELECT stored || coalesce(jsonb_object_agg(dimension, numbers || (
                   SELECT jsonb_object_agg(label, visits::bigint + coalesce((numbers -> label)::bigint, 0))
                     FROM jsonb_each(labels) AS added_labels (label, visits))), '{}')
          FROM (SELECT dimension, labels, coalesce(stored -> dimension, '{}') AS numbers
                  FROM jsonb_each(added) AS dimensions (dimension, labels)
                OFFSET 0) pairs);
END $$;
CREATE AGGREGATE sum_labels(jsonb) (sfunc = add_labels, stype = jsonb);

-- Return visits by the quarter of an hour, from those that are all in one `quarter` or, if they are not, as they are.
CREATE FUNCTION quarters_of(quarter integer, quarters integer[], visits integer) RETURNS integer[] LANGUAGE sql IMMUTABLE
RETURN CASE WHEN quarter IS NULL THEN quarters ELSE array_fill(visits, '{1}', ARRAY[quarter]) END;

-- Sums of all visits of a user by UTC day. Most days of links and labels have visits in one `quarter` of an hour, 0 to 95;
-- those of the others are in `quarters`, from the first with visits to the last, which the purge clears of old days.
-- `detailed` is for its index: one of `quarters` itself would change with each visit.
CREATE TABLE account_totals (
    user_id  bigint      NOT NULL,
    at       timestamptz NOT NULL,
    visits   integer     NOT NULL,
    quarter  smallint,
    bot      boolean     NOT NULL,
    detailed boolean     GENERATED ALWAYS AS (quarters IS NOT NULL) STORED,
    quarters integer[],
    PRIMARY KEY (user_id, at, bot)
) WITH (fillfactor = 80);
CREATE INDEX ON account_totals (at) WHERE detailed;

-- The same of each link and QR code, also of deleted ones.
CREATE TABLE account_targets (
    LIKE account_totals INCLUDING GENERATED,
    target bigint NOT NULL,
    PRIMARY KEY (target, at, bot)
);
CREATE INDEX ON account_targets (user_id, at);
CREATE INDEX ON account_targets (at) WHERE detailed;

-- The same of each label but 'Unknown': an account has any number of labels.
CREATE TABLE account_labels (
    LIKE account_totals INCLUDING GENERATED,
    dimension text NOT NULL CHECK (dimension <> ''),  -- so that no plan for '' reads this table
    label     text NOT NULL,
    PRIMARY KEY (user_id, dimension, at, label, bot)
);
CREATE INDEX ON account_labels (at) WHERE detailed;

-- The three together: all visits have the dimension '', and those of links and QR codes 'target'.
CREATE VIEW account_sums AS
SELECT user_id, at, bot, '' AS dimension, '' AS label, visits::bigint, quarters_of(quarter, quarters, visits) AS quarters
  FROM account_totals
 UNION ALL
SELECT user_id, at, bot, 'target', target::text, visits::bigint, quarters_of(quarter, quarters, visits) FROM account_targets
 UNION ALL
SELECT user_id, at, bot, dimension, label, visits::bigint, quarters_of(quarter, quarters, visits) FROM account_labels;

-- The visits of the last minutes, of bots too.
CREATE TABLE visit_minutes (
    user_id bigint      NOT NULL,
    minute  timestamptz NOT NULL,
    bot     boolean     NOT NULL,
    visits  bigint      NOT NULL,
    PRIMARY KEY (user_id, minute, bot)
) WITH (fillfactor = 50);
CREATE INDEX ON visit_minutes (minute);

-- Return the sum of two such arrays. The quarters of a day that were purged stay NULL.
CREATE FUNCTION add_quarters(stored integer[], added integer[]) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    FOR quarter IN array_lower(added, 1)..array_upper(added, 1) LOOP
        IF added[quarter] > 0 THEN
            stored[quarter] := coalesce(stored[quarter], 0) + added[quarter];
        END IF;
    END LOOP;
    RETURN stored;
END $$;
CREATE AGGREGATE sum_quarters(integer[]) (sfunc = add_quarters, stype = integer[]);

CREATE FUNCTION quarter_of(at timestamptz) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN (date_part('epoch', at AT TIME ZONE 'UTC')::bigint / 900 % 96)::int;

-- Return the visits of raw days by label, '' for all, at their times. This is in plpgsql to be planned once, with the
-- partitions between `since` and `until`.
CREATE FUNCTION raw_counts(ids bigint[], dimensions text[], since timestamptz, until timestamptz, bots boolean[])
RETURNS TABLE (tracked_id bigint, at timestamptz, dimension text, label text, visits bigint)
LANGUAGE plpgsql STABLE STRICT AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT id, stored.at, name, label, 1::bigint
      FROM unnest(ids) AS tracked (id),
           LATERAL (SELECT bot, at AS day FROM account_targets t
                     WHERE target = id AND bot = ANY (bots)
                       AND at >= date_trunc('day', since, 'UTC') AND at < until
                       AND (SELECT true FROM tracked_rollups r
                             WHERE r.tracked_id = id AND unit = 'day' AND r.bot = t.bot AND r.at = t.at) IS NULL
                    OFFSET 0) days,
           unnest(dimensions) AS names (name),
           LATERAL (SELECT at, visit_label(v, name) AS label FROM visits v
                     WHERE v.tracked_id = id AND v.bot = days.bot AND v.at >= since AND v.at < until
                       AND v.at >= day AND v.at < day + interval '24 hours'
                    OFFSET 0) stored
     WHERE label <> 'Unknown';
END $$;

-- Return the stored sums of visits from `since` up to `until`, so none of 'Unknown': those of UTC days, but of quarters of an
-- hour of the days in `split`, in which a day of another zone begins. OFFSET 0 keeps a subquery apart:
-- PostgreSQL reads the rows of one link or QR code by the index. Otherwise it may read the rows of all and join
-- them afterwards. The labels of a row, which are large, are read in a select list: a join would hash them.
CREATE FUNCTION tracked_counts(ids bigint[], dimensions text[], since timestamptz, until timestamptz, split timestamptz[],
                               bots boolean[])
RETURNS TABLE (tracked_id bigint, at timestamptz, dimension text, label text, visits bigint) LANGUAGE sql STABLE AS $$
    SELECT id, day + number * interval '15 minutes', '', '', visits
      FROM (SELECT id, day, generate_subscripts(parts, 1) AS number, unnest(parts) AS visits
              FROM unnest(ids) AS id,
                   LATERAL (SELECT at AS day, CASE WHEN at = ANY (split) THEN quarters_of(quarter, quarters, visits)
                                                   ELSE array_fill(visits, '{1}', '{0}') END AS parts
                              FROM account_targets
                             WHERE target = id AND at >= date_trunc('day', since, 'UTC') AND at < until
                               AND bot = ANY (bots)
                            OFFSET 0) days
             WHERE '' = ANY (dimensions)) counted
     WHERE visits > 0 AND day + number * interval '15 minutes' >= since
       AND day + number * interval '15 minutes' < until
     UNION ALL
    SELECT id, at, name, (number).key, (number).value::bigint
      FROM (SELECT id, at, name, jsonb_each_text(labels -> name) AS number
              FROM (SELECT '{day}'::text[] AS units, since AS first, until AS stop, split AS without
                     UNION ALL
                    SELECT '{quarter}', greatest(since, day), least(until, day + interval '24 hours'), '{}'
                      FROM unnest(split) AS day) parts,
                   unnest(ids) AS id,
                   LATERAL (SELECT at, labels FROM tracked_rollups
                             WHERE tracked_id = id AND unit = ANY (units) AND bot = ANY (bots)
                               AND at >= first AND at < stop AND at <> ALL (without)
                            OFFSET 0) stored,
                   unnest(array_remove(dimensions, '')) AS name
             WHERE dimensions <> '{""}'
            OFFSET 0) labeled
     UNION ALL
    SELECT * FROM raw_counts(ids, array_remove(dimensions, ''), since, until, bots) WHERE dimensions <> '{""}'
$$;

-- Return the clicks by the number of the bucket. This is a function because it is planned once a connection.
CREATE FUNCTION daily_clicks(tracked bigint, edges timestamptz[], since timestamptz, until timestamptz,
                             split timestamptz[]) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(jsonb_object_agg(day, clicks), '{}')
          FROM (SELECT width_bucket(at, edges) AS day, sum(visits) AS clicks
                  FROM tracked_counts(ARRAY[tracked], '{""}', since, until, split, '{f}')
                 GROUP BY 1) daily);
END $$;

-- As tracked_counts(), but days are split at the `cuts`. A row with all visits between two of them needs no sum.
CREATE FUNCTION account_counts(owner bigint, dimensions text[], since timestamptz, until timestamptz, cuts timestamptz[],
                               bots boolean[])
RETURNS TABLE (at timestamptz, dimension text, label text, visits bigint) LANGUAGE sql STABLE AS $$
    WITH split AS MATERIALIZED (
        SELECT date_trunc('day', cut, 'UTC') AS day, array_agg(quarter_of(cut) ORDER BY cut) AS inner_edges
          FROM unnest(cuts) AS cut
         GROUP BY 1)
    (SELECT at, dimension, label, visits
       FROM account_sums
      WHERE user_id = owner AND dimension = ANY (dimensions) AND bot = ANY (bots)
        AND at >= since AND at < until AND at <> ALL (ARRAY(SELECT day FROM split))
     OFFSET 0)
     UNION ALL
    SELECT at, dimension, label, visits
      FROM (SELECT day + first * interval '15 minutes' AS at, dimension, label,
                   CASE WHEN first <= array_lower(quarters, 1) AND stop > array_upper(quarters, 1) THEN visits
                        ELSE (SELECT sum(number) FROM (SELECT unnest(quarters[first : stop - 1]) AS number) part) END
                   AS visits
              FROM split,
                   LATERAL (SELECT r.*, unnest(0 || inner_edges) AS first, unnest(inner_edges || 96) AS stop
                              FROM account_sums r
                             WHERE user_id = owner AND r.dimension = ANY (dimensions) AND bot = ANY (bots)
                               AND r.at = day) stored
             WHERE first <= array_upper(quarters, 1) AND stop > array_lower(quarters, 1)
            OFFSET 0) parts
     WHERE at >= since AND at < until AND visits > 0
$$;

-- Return the links and QR codes with the most clicks on a UTC day.
CREATE FUNCTION busiest_targets(owner bigint, day timestamptz, most integer) RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT target FROM account_targets
                  WHERE user_id = owner AND NOT bot AND at = day
                  ORDER BY visits DESC, target::text LIMIT most)
$$;

-- Return a link or QR code, the newest links of a campaign, links of a domain, or the newest items of a channel, with
-- links in the bin.
CREATE FUNCTION tracked_by(owner bigint, subject text, subject_id bigint, most integer) RETURNS bigint[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT id FROM tracked_rows
         WHERE user_id = owner AND id = subject_id AND subject IN ('link', 'qr')
         UNION ALL
       (SELECT id FROM kept_links
         WHERE user_id = owner AND campaign = subject_id AND subject = 'campaign'
         ORDER BY id DESC LIMIT most)
         UNION ALL
       (SELECT id FROM kept_links
         WHERE user_id = owner AND domain_id = subject_id AND subject = 'domain'
         LIMIT most)
         UNION ALL
       (SELECT coalesce(link_id, qr_id) FROM channel_items
         WHERE user_id = owner AND channel_id = subject_id AND subject = 'channel'
         ORDER BY id DESC LIMIT most)
         UNION ALL
       (SELECT id FROM binned_links
         WHERE user_id = owner AND channel_ids @> ARRAY[subject_id] AND subject = 'channel'
         LIMIT most))
$$;

-- Count the clicks, visitors and conversions of links and QR codes, a row each, unless none has been visited.
CREATE FUNCTION tracked_totals(ids bigint[]) RETURNS TABLE (label text, total bigint) LANGUAGE sql STABLE AS $$
    SELECT label, coalesce(sum(number), 0)::bigint
      FROM unnest(ids) AS id,
           LATERAL (SELECT * FROM totals WHERE tracked_id = id OFFSET 0) counted,
           LATERAL (VALUES ('clicks', clicks), ('visitors', visitors),
                           ('conversions', (SELECT count(*) FROM conversions c WHERE c.tracked_id = counted.tracked_id))
                   ) AS sums (label, number)
     GROUP BY label
$$;

-- Return the time of the first visit of links and QR codes, as exactly as it is kept.
CREATE FUNCTION first_tracked_visit(ids bigint[], bots boolean[]) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT min(at) FROM tracked_counts(ids, '{""}', day, day + interval '24 hours', ARRAY[day], bots)), day)
      FROM (SELECT min(at) AS day
              FROM unnest(ids) AS id, unnest(bots) AS of_bots,
                   LATERAL (SELECT at FROM account_targets
                             WHERE target = id AND bot = of_bots
                             ORDER BY at LIMIT 1) first) firsts
$$;

-- Return the time of the first visit of an account, or of the oldest of some links and QR codes.
CREATE FUNCTION first_visit(owner bigint, ids bigint[], bots boolean[] DEFAULT '{f}') RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN ids IS NULL
                THEN (SELECT min(at + coalesce(array_lower(quarters, 1), 0) * interval '15 minutes')
                        FROM (SELECT at, quarters FROM account_sums  -- of people and of bots
                               WHERE user_id = owner AND dimension = '' AND bot = ANY (bots)
                               ORDER BY at LIMIT 2) first)
                ELSE first_tracked_visit(ARRAY(SELECT id FROM unnest(ids) AS id ORDER BY id LIMIT 1000), bots) END
$$;

-- Visits are stored by store_visits(), whose steps are the functions before it. Each can be called
-- alone. Their plans are kept while tables and batches grow: stored rows are looked up by their
-- keys in LATERAL, and nothing else is joined.
CREATE TYPE sent_visit AS (user_id bigint, social text, visit visits);
CREATE TYPE visit_sum AS (
    user_id bigint, tracked_id bigint, bot boolean, quarter timestamptz, dimension text, label text,
    visits bigint
);

-- Count visits for the month of their users, and return those that the plan allows, and the numbers
-- of the others. NULL as the limit means unlimited: least() and greatest() ignore it.
CREATE FUNCTION count_visits(sent sent_visit[], is_imported boolean,
                             OUT accepted sent_visit[], OUT refused json) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO visit_months AS m (user_id, month, bot, imported, total, last_added, full_since)
    SELECT user_id, this_month(), bot, is_imported, least(number, max_clicks),
           least(number, max_clicks), CASE WHEN number > max_clicks THEN now() END
      FROM (SELECT user_id, (visit).bot, count(*) AS number FROM unnest(sent) GROUP BY 1, 2) batch,
           LATERAL (SELECT max_clicks FROM accounts WHERE id = user_id LIMIT 1) plan
     ORDER BY user_id, bot
    ON CONFLICT (user_id, month, bot, imported) DO UPDATE
       SET (total, last_added, full_since) = (
           SELECT m.total + added, added,
                  CASE WHEN added < excluded.last_added OR excluded.full_since IS NOT NULL
                       THEN coalesce(m.full_since, now()) END
             FROM (SELECT greatest(least(excluded.last_added, max_clicks - m.total), 0) AS added
                     FROM accounts WHERE id = m.user_id) remaining);
    WITH decided AS MATERIALIZED (
        SELECT of_user[:last_added] AS accepted, of_user[last_added + 1:] AS refused
          FROM (SELECT user_id, (visit).bot, array_agg(s ORDER BY (visit).at) AS of_user
                  FROM unnest(sent) AS s GROUP BY 1, 2) batch,
               LATERAL (SELECT last_added FROM visit_months m
                         WHERE m.user_id = batch.user_id AND month = this_month()
                           AND m.bot = batch.bot AND imported = is_imported
                         LIMIT 1) counted)
    SELECT ARRAY(SELECT unnest(d.accepted) FROM decided d),
           (SELECT json_agg(numbers)
              FROM (SELECT (visit).tracked_id, (visit).bot, count(*) AS visits
                      FROM decided d, unnest(d.refused) GROUP BY 1, 2) numbers)
      INTO accepted, refused;
END $$;

-- Return visits by label and quarter of an hour, without 'Unknown'.
CREATE FUNCTION label_sums(accepted sent_visit[]) RETURNS visit_sum[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT ROW(user_id, tracked_id, bot, quarter, dimension, label, count(*))::visit_sum
          FROM (SELECT user_id, (visit).tracked_id, (visit).bot, dimension, label,
                       date_bin('15 minutes', (visit).at, 'epoch') AS quarter
                  FROM unnest(accepted),
                       LATERAL (VALUES ('', ''), ('social', CASE WHEN NOT (visit).bot THEN social END)
                                 UNION ALL
                                SELECT * FROM visit_labels(visit)) AS labels (dimension, label)
                 WHERE label <> 'Unknown') labeled
         GROUP BY user_id, tracked_id, bot, quarter, dimension, label);
END $$;

CREATE FUNCTION label_key(s visit_sum) RETURNS text LANGUAGE sql IMMUTABLE
RETURN s.tracked_id || ' ' || s.bot || ' ' || s.dimension || ' ' || s.label;

CREATE FUNCTION row_key(tracked bigint, bot boolean) RETURNS text LANGUAGE sql IMMUTABLE
RETURN tracked || ' ' || bot;

-- Return the keys of links and QR codes with more visits than they may have labels, of people or of bots, and give
-- their rows all labels when they become so.
CREATE FUNCTION complete_labels(sums visit_sum[], unbounded text[], max_labels integer) RETURNS text[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    crowded CONSTANT text[] := ARRAY(
        SELECT row_key(tracked_id, bot)
          FROM (SELECT tracked_id, bot, sum(visits) AS added
                  FROM unnest(sums) WHERE dimension = '' GROUP BY 1, 2) sent
         WHERE added + coalesce((SELECT visits FROM tracked_rollups r
                                  WHERE r.tracked_id = sent.tracked_id AND unit = 'all' AND r.bot = sent.bot), 0)
               > max_labels);
BEGIN
    UPDATE tracked_rollups r
       SET labels = labels || (
           SELECT coalesce(jsonb_object_agg(dimension, numbers), '{}')
             FROM (SELECT dimension, jsonb_object_agg(label, visits) AS numbers
                     FROM (SELECT dimension, label, sum(visits) AS visits
                             FROM tracked_counts(ARRAY[tracked_id], unbounded, '-infinity', 'infinity', '{}',
                                                 ARRAY[bot])
                            GROUP BY 1, 2) per_label
                    GROUP BY 1) per_dimension)
      FROM unnest(crowded) AS key
     WHERE tracked_id = split_part(key, ' ', 1)::bigint AND bot = split_part(key, ' ', 2)::boolean
       AND unit = 'all' AND visits <= max_labels;
    RETURN crowded;
END $$;

-- Replace new labels beyond the number that a link or QR code may have by 'Other'. It has at most as
-- many labels as visits.
CREATE FUNCTION limit_labels(sums visit_sum[], crowded text[], unbounded text[], max_labels integer)
RETURNS visit_sum[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    excess CONSTANT jsonb := (
        SELECT jsonb_object_agg(key, true)
          FROM (SELECT min(label_key(s)) AS key,
                       used + row_number() OVER (PARTITION BY s.tracked_id, s.bot, s.dimension
                                                     ORDER BY sum(s.visits) DESC, s.label) AS place
                  FROM (SELECT dimension, of_row, coalesce(labels -> dimension, '{}') AS stored,
                               (SELECT count(*) FROM jsonb_object_keys(labels -> dimension)) AS used
                          FROM (SELECT tracked_id, bot, array_agg(s) AS of_row
                                  FROM unnest(sums) AS s
                                 WHERE crowded <> '{}' AND dimension = ANY (unbounded)
                                   AND row_key(tracked_id, bot) = ANY (crowded)
                                 GROUP BY tracked_id, bot) g
                          LEFT JOIN LATERAL (
                                SELECT labels || '{}' AS labels FROM tracked_rollups r
                                 WHERE r.tracked_id = g.tracked_id AND unit = 'all' AND r.bot = g.bot
                                 LIMIT 1) r ON true,
                               unnest(unbounded) AS dimension
                        OFFSET 0) g,
                       unnest(of_row) AS s
                 WHERE s.dimension = g.dimension AND NOT stored ? s.label
                 GROUP BY s.tracked_id, s.bot, s.dimension, s.label, used) new
         WHERE place > max_labels);
BEGIN
    IF excess IS NOT NULL THEN
        sums := ARRAY(SELECT ROW(user_id, tracked_id, bot, quarter, dimension,
                                 CASE WHEN excess ? label_key(s) THEN 'Other' ELSE label END,
                                 visits)::visit_sum
                        FROM unnest(sums) AS s);
    END IF;
    RETURN sums;
END $$;

-- Return the sum of two days, or NULL if all visits are in the same quarter or one was cleared.
CREATE FUNCTION joined_quarters(quarter integer, quarters integer[], visits integer,
                                added_quarter integer, added_quarters integer[], added integer)
RETURNS integer[] LANGUAGE sql IMMUTABLE
RETURN CASE WHEN quarter = added_quarter THEN NULL
            ELSE add_quarters(quarters_of(quarter, quarters, visits),
                              quarters_of(added_quarter, added_quarters, added)) END;

CREATE TYPE day_sum AS (
    user_id bigint, target bigint, dimension text, label text, bot boolean, at timestamptz,
    visits integer, quarter smallint, quarters integer[]
);

-- Return the visits by UTC day: of users, of their labels, and of links and QR codes as `target`.
CREATE FUNCTION day_sums(sums visit_sum[]) RETURNS day_sum[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT ROW(user_id, target, dimension, label, bot, day, sum(visits),
                   CASE WHEN count(*) = 1 THEN min(number) END,
                   CASE WHEN count(*) > 1
                        THEN sum_quarters(array_fill(visits::int, '{1}', ARRAY[number])) END)::day_sum
          FROM (SELECT user_id, target, dimension, label, bot, date_trunc('day', quarter, 'UTC') AS day,
                       quarter_of(quarter) AS number, sum(visits) AS visits
                  FROM (SELECT user_id, NULL::bigint AS target, dimension, label, bot, quarter, visits
                          FROM unnest(sums) WHERE dimension <> 'social'
                         UNION ALL
                        SELECT user_id, tracked_id, dimension, label, bot, quarter, visits
                          FROM unnest(sums) WHERE dimension = '') added
                 GROUP BY 1, 2, 3, 4, 5, quarter) per_quarter
         GROUP BY user_id, target, dimension, label, bot, day);
END $$;

CREATE FUNCTION add_account_sums(days day_sum[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_totals AS r (user_id, at, visits, quarter, bot, quarters)
    SELECT user_id, at, visits, quarter, bot, quarters
      FROM unnest(days) WHERE target IS NULL AND dimension = ''
     ORDER BY user_id, at, bot
    ON CONFLICT (user_id, at, bot) DO UPDATE
       SET visits = r.visits + excluded.visits,
           quarter = CASE WHEN r.quarter = excluded.quarter THEN r.quarter END,
           quarters = joined_quarters(r.quarter, r.quarters, r.visits,
                                      excluded.quarter, excluded.quarters, excluded.visits);
    INSERT INTO account_targets AS r (user_id, at, visits, quarter, bot, quarters, target)
    SELECT user_id, at, visits, quarter, bot, quarters, target
      FROM unnest(days) WHERE target IS NOT NULL
     ORDER BY target, at, bot
    ON CONFLICT (target, at, bot) DO UPDATE
       SET visits = r.visits + excluded.visits,
           quarter = CASE WHEN r.quarter = excluded.quarter THEN r.quarter END,
           quarters = joined_quarters(r.quarter, r.quarters, r.visits,
                                      excluded.quarter, excluded.quarters, excluded.visits);
    INSERT INTO account_labels AS r (user_id, at, visits, quarter, bot, quarters, dimension, label)
    SELECT user_id, at, visits, quarter, bot, quarters, dimension, label
      FROM unnest(days) WHERE dimension <> ''
     ORDER BY user_id, dimension, at, label, bot
    ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE
       SET visits = r.visits + excluded.visits,
           quarter = CASE WHEN r.quarter = excluded.quarter THEN r.quarter END,
           quarters = joined_quarters(r.quarter, r.quarters, r.visits,
                                      excluded.quarter, excluded.quarters, excluded.visits);
END $$;

-- This is in plpgsql to be planned once.
CREATE FUNCTION is_kept(tracked bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT true FROM links WHERE id = tracked) OR (SELECT true FROM kept_qrs WHERE id = tracked)
           OR (SELECT true FROM binned_links WHERE id = tracked);
END $$;

-- Give raw days quarters and labels, from their visits. New visits of these days are stored afterwards.
CREATE FUNCTION sum_raw_days(ids bigint[], bots boolean[], days timestamptz[], dimensions text[])
RETURNS void LANGUAGE plpgsql STRICT AS $$
BEGIN
    INSERT INTO tracked_rollups (tracked_id, unit, bot, at, visits, labels)
    SELECT id, unit, bot, start, max(visits),
           coalesce(jsonb_object_agg(dimension, labels) FILTER (WHERE dimension <> ''), '{}')
      FROM (SELECT id, unit, bot, start, dimension, sum(visits) AS visits,
                   jsonb_object_agg(label, visits) AS labels
              FROM (SELECT id, unit, bot, start, dimension, label, sum(visits) AS visits
                      FROM unnest(ids, bots, days) AS raw (id, bot, day),
                           raw_counts(ARRAY[id], dimensions, day, day + interval '24 hours',
                                      ARRAY[bot]) AS stored,
                           LATERAL (VALUES ('quarter', date_bin('15 minutes', stored.at, 'epoch')),
                                           ('day', day)) AS units (unit, start)
                     WHERE is_kept(id)
                     GROUP BY 1, 2, 3, 4, 5, 6) per_label
             GROUP BY 1, 2, 3, 4, 5) per_dimension
     GROUP BY 1, 2, 3, 4;
END $$;

CREATE TYPE tracked_day AS (
    tracked_id bigint, bot boolean, day timestamptz, is_raw boolean, is_summed boolean, of_day visit_sum[]
);

-- Return visits by the days of links and QR codes: if the stored day is raw, and if it is summed with these visits, unless
-- it has less than `few`.
CREATE FUNCTION days_of(sums visit_sum[], few integer) RETURNS SETOF tracked_day LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT tracked_id, bot, day, NOT coalesce(has_sums, true),
           has_sums OR added + coalesce(visits, 0) >= few
           OR (visits IS NULL AND day < (SELECT dropped_until FROM service)),
           of_day
      FROM (SELECT tracked_id, bot, date_trunc('day', quarter, 'UTC') AS day,
                   sum(visits) FILTER (WHERE dimension = '') AS added, array_agg(s) AS of_day
              FROM unnest(sums) AS s
             GROUP BY 1, 2, 3
            OFFSET 0) sent
      LEFT JOIN LATERAL (SELECT visits, (SELECT true FROM tracked_rollups r
                                          WHERE r.tracked_id = target AND unit = 'day' AND r.bot = t.bot
                                            AND r.at = t.at) IS NOT NULL AS has_sums
                           FROM account_targets t
                          WHERE target = sent.tracked_id AND at = day AND t.bot = sent.bot
                          LIMIT 1) stored ON true
     WHERE is_kept(tracked_id);
END $$;

-- Add visits to the roll-ups of links and QR codes, before those of accounts. 'all' gets the `kept` dimensions of people,
-- and the `unbounded` ones of `crowded` rows.
CREATE FUNCTION add_tracked_sums(sums visit_sum[], few integer, dimensions text[], kept text[], crowded text[],
                                 unbounded text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    days CONSTANT tracked_day[] := ARRAY(SELECT d FROM days_of(sums, few) AS d);
BEGIN
    PERFORM sum_raw_days(array_agg(tracked_id), array_agg(bot), array_agg(day), dimensions)
       FROM unnest(days)
      WHERE is_raw AND is_summed;
    INSERT INTO tracked_rollups AS r (tracked_id, unit, bot, at, visits, labels)
    SELECT tracked_id, unit, bot, at, max(visits),
           coalesce(jsonb_object_agg(dimension, labels) FILTER (WHERE dimension <> ''), '{}')
      FROM (SELECT tracked_id, unit, bot, at, dimension, sum(visits) AS visits,
                   jsonb_object_agg(label, visits) AS labels
              FROM (SELECT d.tracked_id, unit, d.bot, at, dimension, label, sum(visits) AS visits
                      FROM unnest(days) AS d,
                           unnest(of_day),
                           LATERAL (VALUES ('quarter', quarter), ('day', day), ('all', '-infinity')
                                   ) AS units (unit, at)
                     WHERE CASE WHEN unit <> 'all' THEN is_summed
                                ELSE dimension = '' OR (NOT d.bot AND dimension = ANY (kept))
                                     OR (crowded <> '{}' AND dimension = ANY (unbounded)
                                         AND row_key(d.tracked_id, d.bot) = ANY (crowded)) END
                     GROUP BY 1, 2, 3, 4, 5, 6) per_label
             GROUP BY 1, 2, 3, 4, 5) per_dimension
     GROUP BY 1, 2, 3, 4
     ORDER BY 1, 2, 3, 4
    ON CONFLICT (tracked_id, unit, bot, at) DO UPDATE
       SET visits = r.visits + excluded.visits, labels = add_labels(r.labels, excluded.labels);
END $$;

-- Return the number and the name of a variant that a visitor got at a time, or NULL: a visit is stored later, when the
-- link may have other variants.
CREATE FUNCTION experiment_key(link bigint, at timestamptz, variant text) RETURNS text LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN (SELECT number || ' ' || variant
              FROM (SELECT experiments FROM links WHERE id = link
                     UNION ALL
                    SELECT experiments FROM binned_links WHERE id = link) owned,
                   jsonb_to_recordset(experiments) AS e (number integer, started timestamptz, variants jsonb)
             WHERE started <= at AND variants @> jsonb_build_array(jsonb_build_object('name', variant))
             ORDER BY number DESC
             LIMIT 1);
END $$;

-- Note the visitors of links and QR codes. Return each, and the keys of the variants that are others than before. Visits of
-- years, which an import adds, can be of several experiments.
CREATE FUNCTION note_visitors(accepted sent_visit[])
RETURNS TABLE (tracked_id bigint, is_new boolean, variants text[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH arrived AS MATERIALIZED (
        SELECT sent.*, sent.variants[1] AS variant, stored.seen AS seen_before, stored.variant AS variant_before
          FROM (SELECT (visit).tracked_id, (visit).visitor,
                       max((visit).at) AS seen,
                       array_remove(array_agg(experiment_key((visit).tracked_id, (visit).at, (visit).variant)
                                              ORDER BY (visit).at DESC)
                                    FILTER (WHERE (visit).variant IS NOT NULL), NULL) AS variants
                  FROM unnest(accepted)
                 WHERE NOT (visit).bot AND (visit).visitor <> ''
                 GROUP BY 1, 2) sent
          LEFT JOIN LATERAL (SELECT seen, variant FROM visitors
                              WHERE tracked_id = sent.tracked_id AND visitor = sent.visitor
                              LIMIT 1) stored ON true),
    written AS (
        INSERT INTO visitors AS v (tracked_id, visitor, seen, variant)
        SELECT tracked_id, visitor, seen, variant
          FROM arrived
         WHERE seen_before IS NULL
            OR date_trunc('day', seen_before, 'UTC') <= seen
               AND (date_trunc('day', seen_before, 'UTC'), variant_before)
                   IS DISTINCT FROM (date_trunc('day', seen, 'UTC'), coalesce(variant, variant_before))
         ORDER BY tracked_id, visitor
        ON CONFLICT (tracked_id, visitor) DO UPDATE
           SET seen = CASE WHEN excluded.seen < date_trunc('day', v.seen, 'UTC') + interval '24 hours'
                           THEN v.seen ELSE excluded.seen END,
               variant = coalesce(excluded.variant, v.variant))
    SELECT tracked_id, seen_before IS NULL,
           CASE WHEN variant_before IS DISTINCT FROM variant OR variants[2] IS NOT NULL
                THEN ARRAY(SELECT DISTINCT key FROM unnest(variants) AS key WHERE key IS DISTINCT FROM variant_before) END
      FROM arrived;
END $$;

-- Return the ten most frequent labels of people in some dimensions.
CREATE FUNCTION top_labels(tracked bigint, dimensions text[]) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT json_object_agg(dimension, top)
          FROM (SELECT visits, labels || '{}' AS labels FROM tracked_rollups
                 WHERE tracked_id = tracked AND unit = 'all' AND NOT bot
                 LIMIT 1) r,
               unnest(dimensions) AS dimension,
               LATERAL (WITH stored AS MATERIALIZED (
                            SELECT key COLLATE "C" AS label, value::bigint AS number
                              FROM jsonb_each_text(labels -> dimension))
                        SELECT json_object_agg(label, number) AS top
                          FROM (SELECT label, number FROM stored
                                 UNION ALL
                                SELECT 'Unknown', visits - coalesce(sum(number), 0) FROM stored
                                HAVING visits > coalesce(sum(number), 0) AND dimension <> 'social'
                                 ORDER BY number DESC, label
                                 LIMIT 10) most_frequent) most
         WHERE top IS NOT NULL);
END $$;

-- Add visits to the totals of links and QR codes, after their roll-ups.
CREATE FUNCTION add_totals(accepted sent_visit[], sums visit_sum[], tops text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH noted AS MATERIALIZED (
        SELECT * FROM note_visitors(accepted)),
    variants AS (  -- the number of an experiment, and that of visitors or visits of a variant
        SELECT tracked_id, split_part(key, ' ', 1) || unit AS number, substring(key FROM ' (.*)') AS name, count(*) AS added
          FROM (SELECT tracked_id, unnest(variants), '' FROM noted WHERE variants IS NOT NULL
                 UNION ALL
                SELECT (visit).tracked_id, experiment_key((visit).tracked_id, (visit).at, (visit).variant), ' visits'
                  FROM unnest(accepted)
                 WHERE NOT (visit).bot AND (visit).variant IS NOT NULL) keys (tracked_id, key, unit)
         WHERE key IS NOT NULL
         GROUP BY 1, 2, 3)
    INSERT INTO totals AS t (tracked_id, clicks, visitors, top_labels, experiments)
    SELECT tracked_id, sum(clicks), sum(visitors),
           CASE WHEN sum(clicks) > 0 THEN top_labels(tracked_id, tops) END,
           sum_labels(jsonb_build_object(number, jsonb_build_object(name, of_variant))) FILTER (WHERE of_variant > 0)
      FROM (SELECT tracked_id, CASE WHEN bot THEN 0 ELSE visits END, 0, NULL, NULL, 0
              FROM unnest(sums) WHERE dimension = ''
             UNION ALL
            SELECT tracked_id, 0, 1, NULL, NULL, 0 FROM noted WHERE is_new
             UNION ALL
            SELECT tracked_id, 0, 0, number, name, added FROM variants
           ) added (tracked_id, clicks, visitors, number, name, of_variant)
     GROUP BY tracked_id
     ORDER BY tracked_id
    ON CONFLICT (tracked_id) DO UPDATE
       SET clicks = t.clicks + excluded.clicks, visitors = t.visitors + excluded.visitors,
           top_labels = coalesce(excluded.top_labels, t.top_labels),
           experiments = coalesce(add_labels(coalesce(t.experiments, '{}'), excluded.experiments), t.experiments);
END $$;

CREATE FUNCTION add_minutes(accepted sent_visit[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO visit_minutes AS m (user_id, minute, bot, visits)
    SELECT user_id, date_trunc('minute', (visit).at), (visit).bot, count(*)
      FROM unnest(accepted)
     WHERE (visit).at > now() - interval '1 hour'
     GROUP BY 1, 2, 3
     ORDER BY 1, 2, 3
    ON CONFLICT (user_id, minute, bot) DO UPDATE SET visits = m.visits + excluded.visits;
END $$;

-- Let the purge find visits that are stored after their retention period, also while it runs: it then finds another time
-- than the one that it began with.
CREATE FUNCTION note_late_visits(accepted sent_visit[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE users SET purge_from = least(purge_from, oldest) - interval '1 day'
      FROM (SELECT user_id, min((visit).at) AS oldest FROM unnest(accepted) GROUP BY 1) sent
     WHERE id = user_id AND oldest < detailed_since;
END $$;

-- Store visits, and return true as `stored`, unless their file is not stored up to `start`. The
-- visits themselves come last: the steps before read those that were stored earlier.
CREATE FUNCTION store_visits(spool text, start bigint, stop bigint, sent json, imported boolean,
                             few integer, max_labels integer, dimensions text[], unbounded text[],
                             tops text[],
                             OUT stored boolean, OUT refused json)
    LANGUAGE plpgsql AS $$
DECLARE
    accepted sent_visit[];
    sums     visit_sum[];
    crowded  text[];
BEGIN
    INSERT INTO visit_spools AS s (name, stored)
    SELECT spool, stop WHERE start = 0 OR EXISTS (SELECT FROM visit_spools WHERE name = spool)
    ON CONFLICT (name) DO UPDATE SET stored = excluded.stored WHERE s.stored = start;
    stored := FOUND;
    IF stored THEN
        SELECT c.accepted, c.refused INTO accepted, refused
          FROM count_visits(ARRAY(SELECT ROW(v.*)::sent_visit FROM read_visits(sent) AS v),
                            imported) AS c;
        sums := label_sums(accepted);
        crowded := complete_labels(sums, unbounded, max_labels);
        sums := limit_labels(sums, crowded, unbounded, max_labels);
        PERFORM note_late_visits(accepted);
        PERFORM add_minutes(accepted);
        PERFORM add_tracked_sums(sums, few, dimensions, tops || '{variant}', crowded, unbounded);
        PERFORM add_account_sums(day_sums(sums));
        PERFORM add_totals(accepted, sums, tops);
        INSERT INTO visits SELECT (visit).* FROM unnest(accepted);
        INSERT INTO outbox (user_id, type, data)
        SELECT * FROM visit_events(ARRAY(
            SELECT visit FROM unnest(accepted) WHERE EXISTS (SELECT FROM webhooks WHERE active)));
    END IF;
END $$;

-- The stage 'read' turns a file or service into rows of import_rows; 'store' works on them, and
-- 'drain' does before reading continues.
CREATE TABLE imports (
    LIKE resources INCLUDING ALL,
    state       text        NOT NULL
                CHECK (state IN ('draft', 'queued', 'running', 'paused', 'done', 'failed', 'cancelled')),
    stage       text        NOT NULL DEFAULT 'read' CHECK (stage IN ('read', 'drain', 'store')),
    source      text        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    on_conflict text        NOT NULL DEFAULT 'skip' CHECK (on_conflict IN ('skip', 'rename', 'update')),
    mapping     jsonb       NOT NULL DEFAULT '{}',
    address     text        NOT NULL DEFAULT '',
    token       text,  -- encrypted
    size        bigint,  -- of the file, or NULL for a service
    bytes_read  bigint      NOT NULL DEFAULT 0,
    cursor      jsonb,  -- the next page of a service
    batch       integer     NOT NULL DEFAULT 0,  -- the number of changes by the job: one process does each
    found       bigint      NOT NULL DEFAULT 0,  -- rows read
    waiting_bytes bigint    NOT NULL DEFAULT 0,  -- of those that wait, or are kept for references
    staged_bytes bigint     NOT NULL DEFAULT 0,  -- of all that have waited
    kept_bytes  bigint      NOT NULL DEFAULT 0,  -- of the rows that failed or were skipped
    failing_since timestamptz,  -- the first of the last requests that a service did not respond to
    problem     text        NOT NULL DEFAULT '',  -- for which reading ended early
    missing     bigint      NOT NULL DEFAULT 0,  -- links that a service counts and has not sent
    cut         bigint      NOT NULL DEFAULT 0,  -- links whose title was cut
    ignored     text        NOT NULL DEFAULT '',  -- a sentence that names columns
    rows_read   bigint      NOT NULL DEFAULT 0,
    made        bigint      NOT NULL DEFAULT 0,
    made_of     jsonb       NOT NULL DEFAULT '{}', -- numbers by file of an exported account
    changed     bigint      NOT NULL DEFAULT 0,
    skipped     bigint      NOT NULL DEFAULT 0,
    failed      bigint      NOT NULL DEFAULT 0,
    visits      bigint      NOT NULL DEFAULT 0,  -- without those beyond the clicks of the plan
    message     text        NOT NULL DEFAULT '',
    started     timestamptz,
    finished    timestamptz,
    last_item   bigint,  -- of all channels, at its end
    first_id    bigint      NOT NULL DEFAULT nextval('tracked_ids'),  -- below those of new links
    actor       jsonb       DEFAULT nullif(current_setting('linkmgr.actor', true), '')::jsonb,  -- of what it changes
    part        numeric     GENERATED ALWAYS AS (  -- that is done: reading is half of it, unknown for a service
                CASE WHEN state = 'done' AND size > 0 THEN 1
                     WHEN size > 0
                     THEN (0.5 + 0.5 * rows_read / greatest(found, rows_read, 1))
                          * CASE stage WHEN 'store' THEN 1 ELSE bytes_read::numeric / size END
                END) STORED
);

CREATE TRIGGER change_version BEFORE UPDATE ON imports
    FOR EACH ROW EXECUTE FUNCTION change_version('{part}');
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON imports
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER count_rows_on_insert AFTER INSERT ON imports
    REFERENCING NEW TABLE AS changed EXECUTE FUNCTION count_added_rows();
CREATE TRIGGER count_rows_on_delete AFTER DELETE ON imports
    REFERENCING OLD TABLE AS changed EXECUTE FUNCTION count_deleted_rows();

CREATE VIEW import_records AS
SELECT user_id, id, state, source, name, on_conflict, size, rows_read AS read, made, changed AS updated, skipped, failed,
       visits,
       CASE WHEN state = 'running' AND part > 0
            THEN ceil(extract(epoch FROM now() - started) * (1 / part - 1))::bigint END AS seconds_left,
       (100 * part)::integer AS percent, message, created, started, finished, version::text
  FROM imports;

-- Rows that wait are stored in the order of `place` and `number`, and deleted unless they failed, were skipped or may
-- be referred to. A `place` of -1 has the pieces of the file, so that a worker on any host can read it.
CREATE TABLE import_rows (
    user_id   bigint   NOT NULL,
    import_id bigint   NOT NULL,
    number    bigint   NOT NULL,
    place     smallint NOT NULL,
    file      text     NOT NULL,  -- 'links' or another file of an exported account
    name      text     NOT NULL,  -- in the source
    lines     integer  NOT NULL,  -- rows of the source in `content`
    content   text,  -- encrypted: it may have passwords and IP addresses
    raw       json,  -- the columns of the source without passwords
    code      text,
    message   text,
    row_id    bigint,  -- of what was stored
    made      boolean,  -- by the import
    PRIMARY KEY (import_id, number)
);
CREATE INDEX ON import_rows (import_id, place, number) WHERE content IS NOT NULL;
CREATE INDEX ON import_rows (import_id, number) WHERE code IS NOT NULL;
CREATE INDEX ON import_rows (import_id, file, name);

CREATE TABLE webhooks (
    LIKE resources INCLUDING ALL,
    name                text        NOT NULL,
    url                 text        NOT NULL DEFAULT '',  -- without one it only keeps events for GET /api/events
    events              text[]      NOT NULL,
    campaign            bigint,  -- of the links whose events it gets, as the next two
    channel             bigint,
    domain              bigint,
    active              boolean     NOT NULL DEFAULT true,
    reason              text        NOT NULL DEFAULT '',  -- for which the service turned it off
    secret_ciphertext   text        NOT NULL,
    secret_version      text        GENERATED ALWAYS AS (md5(secret_ciphertext)) STORED,
    previous_ciphertext text,  -- signs too until `previous_until`
    previous_until      timestamptz,
    failures            integer     NOT NULL DEFAULT 0,  -- since the last success
    failing_since       timestamptz,
    paused_until        timestamptz,  -- until then no other delivery is attempted
    retry_after         timestamptz,  -- until then none, as the receiver asked
    FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE
);

CREATE TRIGGER change_version BEFORE UPDATE ON webhooks
    FOR EACH ROW EXECUTE FUNCTION change_version(
        '{secret_ciphertext,secret_version,previous_ciphertext,previous_until,failures,failing_since,paused_until,retry_after}');
CREATE TRIGGER enqueue_cleanup_on_delete AFTER DELETE ON webhooks
    REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION enqueue_cleanup();

DROP TABLE resources;

-- Return the id that a filter gets: of a campaign, channel or domain of the user. Nothing sent keeps the
-- stored one, and 0 removes it.
CREATE FUNCTION webhook_filter(noun text, owner bigint, sent bigint, stored bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF sent > 0 AND sent IS DISTINCT FROM stored THEN
        PERFORM require_rows(noun || 's', owner, ARRAY[sent], noun || '_unknown');
    END IF;
    RETURN nullif(coalesce(sent, stored), 0);
END $$;

-- The users who get the events of audits: administrators with webhooks, and 0, whose events are the audit trail.
CREATE VIEW auditors AS
SELECT 0::bigint AS user_id
 UNION ALL
SELECT id FROM users WHERE admin AND id IN (SELECT user_id FROM webhooks WHERE active);

-- Numbers ascend in the order of the commits, so that a reader behind a number misses none, and begin with the time in
-- microseconds, so that a restore repeats none. `position` and `bytes` count up to this event, to drop the oldest.
CREATE TABLE events (
    number   bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id  bigint      NOT NULL,
    type     text        NOT NULL,
    data     jsonb       NOT NULL,
    extra    jsonb       NOT NULL DEFAULT '{}',  -- members beside `data`
    created  timestamptz NOT NULL,
    position bigint      NOT NULL DEFAULT 0,
    bytes    bigint      NOT NULL DEFAULT 0
);
CREATE INDEX ON events (user_id, number);
CREATE INDEX ON events (created);
-- The audit trail by the user who acted, and by the user whom an event concerns.
CREATE INDEX ON events (((extra -> 'actor' ->> 'user')::bigint), number) WHERE user_id = 0;
CREATE INDEX ON events (((data ->> CASE type WHEN 'audit.user' THEN 'id' ELSE 'user_id' END)::bigint), number)
    WHERE user_id = 0;

CREATE TABLE deliveries (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id   bigint      NOT NULL,
    number       bigint      NOT NULL REFERENCES events ON DELETE CASCADE,
    state        text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
    due          timestamptz NOT NULL DEFAULT now(),  -- the end of the lease of a process
    attempts     integer     NOT NULL DEFAULT 0,
    attempted    timestamptz,
    status       integer,  -- of the last attempt, as `response` and `milliseconds`
    response     text        NOT NULL DEFAULT '',
    milliseconds integer
) WITH (fillfactor = 80);
CREATE INDEX ON deliveries (webhook_id, id);
CREATE INDEX ON deliveries (number);
CREATE INDEX ON deliveries (webhook_id, due) WHERE state = 'waiting';
CREATE INDEX ON deliveries (due) WHERE state = 'waiting';

-- Restricted keys: those with `domains` or `own_only`. The search path of their connections begins with the schema
-- `restricted_own`, or `restricted_domains` for keys without `own_only`, because an index answers a condition only
-- without "or all". It has a view in place of each table that they may use in part, so every statement, trigger and
-- function sees and changes only the rows that the key may use, unless it names `public.<table>`. The settings
-- linkmgr.key_id and linkmgr.domains ('' means all) describe the key, and `key_id` of a row is the restricted key that
-- made it. Row-level security would need a role that the service may often not create, would not use the index of the
-- search, and has no name for a whole table.
--
-- Each upgrade calls this after its migrations, because views do not get the columns that are added to their tables. A
-- migration that drops a column or changes its type drops these schemas and `noted` first, and calls this and
-- create_noted_views at its end.
CREATE FUNCTION create_restricted_views() RETURNS void LANGUAGE plpgsql
    SET client_min_messages = warning SET search_path = public AS $$
DECLARE
    key     CONSTANT text := 'current_setting(''linkmgr.key_id'')::bigint';
    domains CONSTANT text := 'nullif(current_setting(''linkmgr.domains''), '''')::bigint[]';  -- NULL means all
    views   CONSTANT text := (SELECT string_agg(format('CREATE VIEW %s AS %s', view, pg_get_viewdef(view)), ' ')
                                FROM unnest('{qrs,link_records,link_details,tracked_rows,kept_links}'::regclass[]) AS view);
    schema  text;
    links   text;  -- the condition of links
    codes   text;  -- that of QR codes, which have no branded domain
BEGIN
    FOR schema, links, codes IN VALUES
        ('restricted_own', format('t.key_id = %1$s AND (%2$s IS NULL OR t.domain_id = ANY (%2$s))', key, domains),
                           format('t.key_id = %1$s AND %2$s IS NULL', key, domains)),
        ('restricted_domains', format('t.domain_id = ANY (%s)', domains), 'false')
    LOOP
        EXECUTE format('DROP SCHEMA IF EXISTS %1$I CASCADE; CREATE SCHEMA %1$I', schema);
        PERFORM set_config('search_path', schema || ', public', true);
        EXECUTE format(
            'CREATE VIEW links AS SELECT t.* FROM public.links t WHERE %1$s WITH CHECK OPTION;
             ALTER VIEW links ALTER key_id SET DEFAULT %3$s;
             CREATE VIEW binned_links AS SELECT t.* FROM public.binned_links t WHERE %1$s;
             CREATE VIEW kept_qrs AS SELECT t.* FROM public.kept_qrs t WHERE %2$s WITH CHECK OPTION;
             ALTER VIEW kept_qrs ALTER key_id SET DEFAULT %3$s', links, codes, key);
        -- Without CHECK OPTION: the statement that stores a link stores its items, and does not see the link yet.
        CREATE VIEW channel_items AS
        SELECT * FROM public.channel_items i
         WHERE EXISTS (SELECT FROM links l WHERE l.user_id = i.user_id AND l.id = i.link_id)
            OR EXISTS (SELECT FROM kept_qrs q WHERE q.user_id = i.user_id AND q.id = i.qr_id);
        CREATE VIEW usage AS
        SELECT user_id, 'links' AS counted, count(*) AS total FROM links GROUP BY user_id
         UNION ALL SELECT user_id, 'binned_links', count(*) FROM binned_links GROUP BY user_id
         UNION ALL SELECT user_id, CASE WHEN binned IS NULL THEN 'qrs' ELSE 'binned_qrs' END, count(*)
                     FROM kept_qrs GROUP BY user_id, binned IS NULL;
        EXECUTE views;
    END LOOP;
END $$;
SELECT create_restricted_views();

-- The row of an event as it was written (linkmgr/features/webhooks/noted.py): connections whose search path
-- begins with the schema `noted` see the row of the setting linkmgr.noted_row as the only one of the table
-- linkmgr.noted_table, so that the statements that read a record read that of the event. Upgrades call this
-- too, and migrations drop the schema like those of restricted keys.
CREATE FUNCTION create_noted_views() RETURNS void LANGUAGE plpgsql
    SET client_min_messages = warning SET search_path = public AS $$
DECLARE
    views CONSTANT text := (SELECT string_agg(format('CREATE VIEW %s AS %s', view, pg_get_viewdef(view)), '; ')
                              FROM unnest('{qrs,link_records,link_details}'::regclass[]) AS view);
    tables CONSTANT text := (SELECT string_agg(format(
        'CREATE VIEW %1$I AS
         SELECT * FROM public.%1$I WHERE current_setting(''linkmgr.noted_table'') <> %1$L
          UNION ALL
         SELECT * FROM jsonb_populate_record(NULL::public.%1$I, current_setting(''linkmgr.noted_row'')::jsonb)
          WHERE current_setting(''linkmgr.noted_table'') = %1$L', tgrelid::regclass), '; ')
                               FROM pg_trigger WHERE tgname = 'note_events');
BEGIN
    DROP SCHEMA IF EXISTS noted CASCADE;
    CREATE SCHEMA noted;
    PERFORM set_config('search_path', 'noted, public', true);
    EXECUTE tables;
    EXECUTE views;
END $$;
SELECT create_noted_views();
