-- Webhooks, and the events that they deliver.

-- Webhooks: subscriptions to events. One without a URL only records events for GET /api/events. `events` are types such
-- as 'link.created', or prefixes such as 'link.*' and '*'. `secret_ciphertext` signs deliveries; after a rotation,
-- `previous_ciphertext` does so too until `previous_until`. `failures` counts the attempts since the last success, and
-- until `paused_until` no other delivery is attempted. `reason` tells why the service turned a webhook off.
CREATE TABLE webhooks (
    id                  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id             bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    name                text        NOT NULL,
    url                 text        NOT NULL DEFAULT '',
    events              text[]      NOT NULL,
    campaign_id         bigint,
    channel_id          bigint,
    domain_id           bigint,
    active              boolean     NOT NULL DEFAULT true,
    reason              text        NOT NULL DEFAULT '',
    secret_ciphertext   text        NOT NULL,
    previous_ciphertext text,
    previous_until      timestamptz,
    failures            integer     NOT NULL DEFAULT 0,
    failing_since       timestamptz,
    paused_until        timestamptz,
    created             timestamptz NOT NULL DEFAULT now(),
    UNIQUE (user_id, id)
);

-- Events that triggers recorded in the transaction of the change. A process moves them to `events`. `data` is null for
-- a row that is read when the event is moved.
CREATE TABLE outbox (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id   bigint      NOT NULL,
    type      text        NOT NULL,
    object_id bigint,
    data      jsonb,
    created   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON outbox (user_id, id);

-- Events of the last 30 days. Their numbers ascend in the order of the commits, so that a reader that continues behind
-- a number misses none.
CREATE TABLE events (
    number  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id bigint      NOT NULL,
    type    text        NOT NULL,
    data    jsonb       NOT NULL,
    created timestamptz NOT NULL
);
CREATE INDEX ON events (user_id, number);
CREATE INDEX ON events (created);

-- Deliveries of events. A process takes a delivery by setting `due` to the end of its lease. `status` is null if there
-- was no response. `milliseconds` and `response` are those of the last attempt. Deliveries of a deleted webhook are
-- deleted in batches.
CREATE TABLE deliveries (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id   bigint      NOT NULL,
    number       bigint      NOT NULL REFERENCES events ON DELETE CASCADE,
    state        text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
    due          timestamptz NOT NULL DEFAULT now(),
    attempts     integer     NOT NULL DEFAULT 0,
    attempted    timestamptz,
    status       integer,
    response     text        NOT NULL DEFAULT '',
    milliseconds integer
) WITH (fillfactor = 80);
CREATE INDEX ON deliveries (webhook_id, id);
CREATE INDEX ON deliveries (number);
CREATE INDEX ON deliveries (webhook_id, due) WHERE state = 'waiting';
CREATE INDEX ON deliveries (due) WHERE state = 'waiting';

-- Links are announced as expired up to this time.
CREATE TABLE expiry_clock (announced timestamptz NOT NULL);
INSERT INTO expiry_clock VALUES (now());
CREATE INDEX ON links (user_id, expires) WHERE expires IS NOT NULL;

-- The version of a webhook for If-Match, which deliveries do not change.
CREATE FUNCTION webhook_version(webhook webhooks) RETURNS text LANGUAGE sql STABLE
RETURN (hashtextextended(row(webhook.name, webhook.url, webhook.events, webhook.campaign_id, webhook.channel_id,
                             webhook.domain_id, webhook.active, webhook.reason)::text, 0) & 9223372036854775807)::text;

CREATE FUNCTION has_webhooks(owner bigint) RETURNS boolean LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM webhooks WHERE user_id = owner AND active);

-- At most 20 webhooks per user. The lock makes concurrent inserts wait for each other.
CREATE FUNCTION limit_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = NEW.user_id FOR NO KEY UPDATE;
    IF (SELECT count(*) FROM webhooks WHERE user_id = NEW.user_id) > 20 THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'webhooks_full', MESSAGE = 'limit';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER limit_webhooks AFTER INSERT ON webhooks FOR EACH ROW EXECUTE FUNCTION limit_webhooks();
CREATE TRIGGER enqueue_cleanup AFTER DELETE ON webhooks REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION enqueue_cleanup();
CREATE TRIGGER campaign_on_insert BEFORE INSERT ON webhooks FOR EACH ROW
    WHEN (NEW.campaign_id IS NOT NULL) EXECUTE FUNCTION require_reference('campaigns', 'campaign_id', 'campaign_unknown');
CREATE TRIGGER campaign_on_update BEFORE UPDATE OF campaign_id ON webhooks FOR EACH ROW
    WHEN (NEW.campaign_id IS NOT NULL AND NEW.campaign_id IS DISTINCT FROM OLD.campaign_id)
    EXECUTE FUNCTION require_reference('campaigns', 'campaign_id', 'campaign_unknown');
CREATE TRIGGER channel_on_insert BEFORE INSERT ON webhooks FOR EACH ROW
    WHEN (NEW.channel_id IS NOT NULL) EXECUTE FUNCTION require_reference('channels', 'channel_id', 'channel_unknown');
CREATE TRIGGER channel_on_update BEFORE UPDATE OF channel_id ON webhooks FOR EACH ROW
    WHEN (NEW.channel_id IS NOT NULL AND NEW.channel_id IS DISTINCT FROM OLD.channel_id)
    EXECUTE FUNCTION require_reference('channels', 'channel_id', 'channel_unknown');
CREATE TRIGGER domain_on_insert BEFORE INSERT ON webhooks FOR EACH ROW
    WHEN (NEW.domain_id IS NOT NULL) EXECUTE FUNCTION require_reference('domains', 'domain_id', 'domain_unknown');
CREATE TRIGGER domain_on_update BEFORE UPDATE OF domain_id ON webhooks FOR EACH ROW
    WHEN (NEW.domain_id IS NOT NULL AND NEW.domain_id IS DISTINCT FROM OLD.domain_id)
    EXECUTE FUNCTION require_reference('domains', 'domain_id', 'domain_unknown');

-- Record the changes of a statement, for owners with webhooks. Argument: the kind of the rows. A plain link that is
-- left as it was is no change: adding its URL again updates it without changing it.
CREATE FUNCTION record_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE active) THEN
        RETURN NULL;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO outbox (user_id, type, object_id)
        SELECT user_id, TG_ARGV[0] || '.created', id FROM inserted WHERE has_webhooks(user_id) ORDER BY id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO outbox (user_id, type, object_id, data)
        SELECT user_id, TG_ARGV[0] || '.deleted', id, to_jsonb(d) - '{user_id,key_id,password_hash,logo}'::text[]
          FROM deleted d
         WHERE has_webhooks(user_id)
         ORDER BY id;
    ELSE
        INSERT INTO outbox (user_id, type, object_id)
        SELECT n.user_id, TG_ARGV[0] || '.updated', n.id
          FROM updated n
          JOIN deleted o USING (id)
         WHERE has_webhooks(n.user_id) AND (to_jsonb(n) ->> 'plain' IS DISTINCT FROM 'true' OR n::text <> o::text)
         ORDER BY n.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER record_created AFTER INSERT ON links REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('link');
CREATE TRIGGER record_updated AFTER UPDATE ON links REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('link');
CREATE TRIGGER record_deleted AFTER DELETE ON links REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('link');
CREATE TRIGGER record_created AFTER INSERT ON qrs REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('qr');
CREATE TRIGGER record_updated AFTER UPDATE ON qrs REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('qr');
CREATE TRIGGER record_deleted AFTER DELETE ON qrs REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('qr');
CREATE TRIGGER record_created AFTER INSERT ON campaigns REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('campaign');
CREATE TRIGGER record_updated AFTER UPDATE ON campaigns REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('campaign');
CREATE TRIGGER record_deleted AFTER DELETE ON campaigns REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('campaign');
CREATE TRIGGER record_created AFTER INSERT ON channels REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('channel');
CREATE TRIGGER record_updated AFTER UPDATE ON channels REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('channel');
CREATE TRIGGER record_deleted AFTER DELETE ON channels REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('channel');
CREATE TRIGGER record_created AFTER INSERT ON bios REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('bio');
CREATE TRIGGER record_updated AFTER UPDATE ON bios REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('bio');
CREATE TRIGGER record_deleted AFTER DELETE ON bios REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('bio');
CREATE TRIGGER record_created AFTER INSERT ON domains REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('domain');
CREATE TRIGGER record_updated AFTER UPDATE ON domains REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('domain');
CREATE TRIGGER record_deleted AFTER DELETE ON domains REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('domain');
CREATE TRIGGER record_created AFTER INSERT ON splash_pages REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('splash');
CREATE TRIGGER record_updated AFTER UPDATE ON splash_pages REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('splash');
CREATE TRIGGER record_deleted AFTER DELETE ON splash_pages REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('splash');
CREATE TRIGGER record_created AFTER INSERT ON overlays REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('overlay');
CREATE TRIGGER record_updated AFTER UPDATE ON overlays REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('overlay');
CREATE TRIGGER record_deleted AFTER DELETE ON overlays REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('overlay');
CREATE TRIGGER record_created AFTER INSERT ON pixels REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_events('pixel');
CREATE TRIGGER record_updated AFTER UPDATE ON pixels REFERENCING OLD TABLE AS deleted NEW TABLE AS updated
    EXECUTE FUNCTION record_events('pixel');
CREATE TRIGGER record_deleted AFTER DELETE ON pixels REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION record_events('pixel');

-- Record visits of people in events of at most 40, which fit into a delivery. Visits that are stored more than a day
-- late are no news.
CREATE FUNCTION record_visit_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE active) THEN
        RETURN NULL;
    END IF;
    INSERT INTO outbox (user_id, type, data)
    SELECT user_id, kind, jsonb_agg(visit ORDER BY number)
      FROM (SELECT owners.user_id, kind, row_number() OVER (PARTITION BY owners.user_id, kind ORDER BY at) AS number,
                   jsonb_build_object('id', target_id, 'time', at, 'country', country, 'city', left(city, 60),
                                      'referrer', left(referrer, 60), 'browser', left(browser, 60),
                                      'os', left(os, 60), 'device', device, 'language', left(language, 60)) AS visit
              FROM inserted,
                   LATERAL (SELECT user_id, 'visit' AS kind FROM links WHERE id = target_id
                             UNION ALL
                            SELECT user_id, 'scan' FROM qrs WHERE id = target_id) owners
             WHERE NOT bot AND at > now() - interval '1 day' AND has_webhooks(owners.user_id)) numbered
     GROUP BY user_id, kind, (number - 1) / 40;
    RETURN NULL;
END $$;
CREATE TRIGGER record_visits AFTER INSERT ON visits REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION record_visit_events();

CREATE FUNCTION record_answer_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF has_webhooks(NEW.user_id) THEN
        INSERT INTO outbox (user_id, type, data)
        VALUES (NEW.user_id, 'answer.received',
                jsonb_build_object('id', NEW.id, 'overlay', NEW.overlay_id, 'answer', NEW.answer, 'date', NEW.created));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER record_answer AFTER INSERT ON overlay_answers FOR EACH ROW EXECUTE FUNCTION record_answer_event();

-- Record created and deleted users, for administrators with webhooks.
CREATE FUNCTION record_user_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    account users := coalesce(NEW, OLD);
BEGIN
    INSERT INTO outbox (user_id, type, data)
    SELECT id, CASE TG_OP WHEN 'INSERT' THEN 'user.created' ELSE 'user.deleted' END,
           jsonb_build_object('id', account.id, 'username', account.username, 'email', account.email)
      FROM users
     WHERE admin AND id <> account.id AND id IN (SELECT user_id FROM webhooks WHERE active);
    RETURN NULL;
END $$;
CREATE TRIGGER record_user AFTER INSERT OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION record_user_event();

-- Record that an import has ended.
CREATE FUNCTION record_import_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF has_webhooks(NEW.user_id) THEN
        INSERT INTO outbox (user_id, type, object_id) VALUES (NEW.user_id, 'import.finished', NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER record_import AFTER UPDATE OF state ON imports FOR EACH ROW
    WHEN (NEW.state IN ('done', 'failed', 'cancelled') AND OLD.state <> NEW.state)
    EXECUTE FUNCTION record_import_event();

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
        ELSIF counter.total = plan.count AND has_webhooks(counter.user_id) THEN
            INSERT INTO outbox (user_id, type, data)
            VALUES (counter.user_id, 'plan.limit_reached',
                    jsonb_build_object('resource', replace(TG_TABLE_NAME, '_', ' '), 'limit', plan.count));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
