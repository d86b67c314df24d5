-- Record the changes of a statement, for owners with webhooks. Argument: the kind of the rows. A plain link that is
-- left as it was is no change: adding its URL again updates it without changing it. Nor is a new value of
-- `imported_clicks` or `created`, which only imports write, in statements that change nothing else.
CREATE OR REPLACE FUNCTION record_events() RETURNS trigger LANGUAGE plpgsql AS $$
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
          JOIN deleted o USING (id),
               LATERAL (SELECT to_jsonb(n) AS after, to_jsonb(o) AS before OFFSET 0) records
         WHERE has_webhooks(n.user_id) AND (after ->> 'plain' IS DISTINCT FROM 'true' OR after <> before)
           AND (after -> 'imported_clicks', after -> 'created')
               IS NOT DISTINCT FROM (before -> 'imported_clicks', before -> 'created')
         ORDER BY n.id;
    END IF;
    RETURN NULL;
END $$;
