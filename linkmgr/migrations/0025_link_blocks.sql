-- An index for searching many links of one user.

ALTER TABLE usage ADD COLUMN unindexed bigint NOT NULL DEFAULT 0, ADD COLUMN indexed_to bigint;

-- The search of many links. A block is the links of a user with ids above the last one of the block before, up to
-- `last_id`. `trigrams` has all pieces of three characters of their texts, and may have more: those of links that were
-- deleted or changed since. A search reads the links of the blocks that have all pieces of the text, those behind the last
-- block, and those in `changed_links`. A job makes blocks of users with 20,000 links or more, after each 4,096 new ones.
--
-- A statement that stores a link with an id of at most `indexed_to` in `usage` adds it to `changed_links`. The job first
-- raises `indexed_to`, then waits until all transactions that may not have seen it have ended, and then makes blocks up
-- to there. Another job makes the blocks of changed links again.
--
-- No statistics: all plans use the same index, and PostgreSQL would decompress the arrays to analyze them.
CREATE TABLE link_blocks (
    user_id  bigint    NOT NULL,
    last_id  bigint    NOT NULL,
    trigrams integer[] NOT NULL,
    PRIMARY KEY (user_id, last_id)
);
ALTER TABLE link_blocks ALTER trigrams SET STATISTICS 0;
CREATE INDEX ON link_blocks USING gin (trigrams) WITH (fastupdate = off);

-- A link may have several rows, because each transaction needs one of its own.
CREATE TABLE changed_links (
    user_id bigint NOT NULL,
    link_id bigint NOT NULL,
    number  bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (user_id, link_id, number)
);

CREATE FUNCTION enqueue_changed_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobs (kind, argument) VALUES ('links_changed', '{}');
    RETURN NULL;
END $$;
CREATE TRIGGER enqueue_changed_links AFTER INSERT ON changed_links FOR EACH ROW
    WHEN (NEW.number % 256 = 0) EXECUTE FUNCTION enqueue_changed_links();

-- `public.usage`, because `confined.usage` is a view.
CREATE FUNCTION add_changed_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id <= (SELECT indexed_to FROM public.usage WHERE user_id = NEW.user_id AND kind = 'links') THEN
        INSERT INTO changed_links (user_id, link_id) VALUES (NEW.user_id, NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER search_on_update AFTER UPDATE OF url, alias, title ON links FOR EACH ROW
    WHEN ((NEW.url, NEW.alias, NEW.title) IS DISTINCT FROM (OLD.url, OLD.alias, OLD.title))
    EXECUTE FUNCTION add_changed_link();

-- The text of a link that is searched.
CREATE FUNCTION search_text(url text, alias text, title text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN lower(concat_ws(chr(10), url, alias, title));

-- The pieces of three characters of a text in lower case, as numbers that differ between users. Others may have the same
-- number: a block then seems to contain a piece that it does not. The numbers must not change: they are stored.
CREATE FUNCTION trigrams(owner bigint, string text) RETURNS integer[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(SELECT DISTINCT (((ascii(a)::bigint << 42) + (ascii(b)::bigint << 21) + ascii(c)
                               + owner % 2147483647 * 1000003) % 2147483647)::integer
               FROM (SELECT string_to_array(string, NULL) AS s) characters, unnest(s, s[2:], s[3:]) AS pieces (a, b, c)
              WHERE c IS NOT NULL);

-- Store the first block of the links with ids above `after` and up to `until`, and return its last id, or NULL if there
-- are no such links. Long texts make it smaller. The lock keeps blocks from being stored while their user is deleted.
--
-- The statement compares rows, `(user_id, id) > (owner, after)`. If it had `user_id = owner` too, PostgreSQL would read the
-- index from the first link of the user.
CREATE FUNCTION store_block(owner bigint, after bigint, until bigint, max_links integer) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    PERFORM FROM users WHERE id = owner FOR KEY SHARE;
    IF FOUND THEN
        INSERT INTO link_blocks (user_id, last_id, trigrams)
        SELECT owner, max(id), trigrams(owner, string_agg(string, chr(10)))
          FROM (SELECT id, string, sum(length(string)) OVER (ORDER BY id) - length(string) AS characters
                  FROM (SELECT id, search_text(url, alias, title) AS string
                          FROM links
                         WHERE (user_id, id) > (owner, after) AND (user_id, id) <= (owner, until)
                         ORDER BY user_id, id
                         LIMIT max_links) texts) sums
         WHERE characters < 50000
        HAVING count(*) > 0
        RETURNING last_id INTO last;
    END IF;
    RETURN last;
END $$;

-- Store the next block of a user. Return true if there are no more links up to `until`, or NULL if another process stores
-- blocks.
CREATE FUNCTION add_block(owner bigint, until bigint, max_links integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock('link_blocks'::regclass::oid::bigint) THEN
        RETURN NULL;
    END IF;
    RETURN store_block(owner, (SELECT coalesce(max(last_id), 0) FROM link_blocks WHERE user_id = owner),
                       until, max_links) IS NULL;
END $$;

-- Store the block of a changed link again. Return true if there is none, or NULL if another process stores blocks. The
-- statement that reads the links begins after the one that deletes the rows of `changed_links`, so it sees their changes.
CREATE FUNCTION replace_block(max_links integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    changed changed_links;
    after   bigint;
    until   bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock('link_blocks'::regclass::oid::bigint) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO changed FROM changed_links ORDER BY user_id, link_id LIMIT 1;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    after := (SELECT coalesce(max(last_id), 0) FROM link_blocks
               WHERE user_id = changed.user_id AND last_id < changed.link_id);
    until := (SELECT min(last_id) FROM link_blocks WHERE user_id = changed.user_id AND last_id >= changed.link_id);
    DELETE FROM changed_links
     WHERE user_id = changed.user_id AND link_id > after AND (link_id <= until OR until IS NULL);
    DELETE FROM link_blocks WHERE user_id = changed.user_id AND last_id = until;
    WHILE after < until LOOP
        after := store_block(changed.user_id, after, until, max_links);
    END LOOP;
    RETURN false;
END $$;

-- Return the blocks that have all pieces of a text. Only the index on `trigrams` can answer the inner query, which is
-- faster than reading the arrays.
CREATE FUNCTION candidate_blocks(owner bigint, string text) RETURNS bigint[] LANGUAGE plpgsql STABLE
    SET enable_seqscan = off AS $$
BEGIN
    RETURN ARRAY(SELECT last_id
                   FROM (SELECT user_id, last_id FROM link_blocks WHERE trigrams @> trigrams(owner, string) OFFSET 0) b
                  WHERE user_id = owner);
END $$;

-- Return the number and the ids of the links that contain a text. If a third of the links or more would be read through
-- blocks of 128 links, `changed_links` and the tail, read all links of the user, which PostgreSQL does in parallel.
--
-- `DISTINCT`, because a changed link may also be in one of the blocks.
CREATE FUNCTION search_links(owner bigint, q text) RETURNS TABLE (total bigint, ids bigint[]) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    string text := lower(q);
    last   bigint;  -- block
    number bigint;
    blocks bigint[];
    unread bigint;
BEGIN
    IF length(string) >= 3 THEN
        SELECT max(last_id), count(*) INTO last, number FROM link_blocks WHERE user_id = owner;
        IF number > 0 THEN
            blocks := candidate_blocks(owner, string);
            unread := (number - cardinality(blocks)) * 128
                      - (SELECT count(*) FROM changed_links WHERE user_id = owner);
        END IF;
    END IF;
    IF cardinality(blocks) * 3 < number
       AND unread * 3 > (SELECT total FROM public.usage WHERE user_id = owner AND kind = 'links') * 2 THEN
        RETURN QUERY
        WITH ranges AS MATERIALIZED (
            SELECT (SELECT coalesce(max(b.last_id), 0) FROM link_blocks b
                     WHERE b.user_id = owner AND b.last_id < candidate.until) AS after, until
              FROM unnest(blocks) AS candidate (until)
             UNION ALL
            SELECT last, 9223372036854775807
             UNION ALL
            SELECT link_id - 1, link_id FROM changed_links WHERE user_id = owner)
        SELECT count(*), array_agg(id)
          FROM (SELECT DISTINCT id
                  FROM ranges,
                       LATERAL (SELECT id FROM links
                                 WHERE (user_id, id) > (owner, after) AND (user_id, id) <= (owner, until)
                                   AND position(string IN search_text(url, alias, title)) > 0
                                OFFSET 0) in_range) matches;
    ELSE
        RETURN QUERY
        SELECT count(*), array_agg(id) FROM links
         WHERE user_id = owner AND position(string IN search_text(url, alias, title)) > 0;
    END IF;
END $$;

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
        INSERT INTO public.usage AS u (user_id, kind, total, unindexed)
        SELECT user_id, TG_TABLE_NAME, count(*), count(*) FROM inserted GROUP BY user_id
        ON CONFLICT (user_id, kind) DO UPDATE
           SET total = u.total + excluded.total, unindexed = u.unindexed + excluded.unindexed
        RETURNING u.user_id, u.total, u.unindexed, u.indexed_to
    LOOP
        IF counter.indexed_to IS NOT NULL THEN
            INSERT INTO changed_links (user_id, link_id)
            SELECT user_id, id FROM inserted WHERE user_id = counter.user_id AND id <= counter.indexed_to;
        END IF;
        IF counter.unindexed >= 4096 AND counter.total >= 20000 AND TG_TABLE_NAME = 'links' THEN
            UPDATE public.usage SET unindexed = 0 WHERE user_id = counter.user_id AND kind = TG_TABLE_NAME;
            INSERT INTO jobs (kind, argument) VALUES ('links_added', jsonb_build_object('user_id', counter.user_id));
        END IF;
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

INSERT INTO jobs (kind, argument)
SELECT 'links_added', jsonb_build_object('user_id', user_id) FROM usage WHERE kind = 'links' AND total >= 20000;
