"""The way of an event: from the outbox to `events` and `deliveries`, to its receivers, and to its deletion."""

import orjson

from linkmgr.db.statements import UNSYNCED, Row, database, row, rows, run, run_unsynced

LEASE_SECONDS = 60
DAYS_KEPT = 30


def has_work() -> bool:
    """Return True if there are events to move, or deliveries that are due and not those of a webhook that is off."""
    work = row(
        """
        SELECT EXISTS (SELECT FROM outbox)
               OR EXISTS (SELECT FROM deliveries WHERE state = 'waiting' AND due <= now())
                  AND EXISTS (SELECT FROM webhooks w
                               WHERE active AND url <> '' AND coalesce(paused_until <= now(), true)
                                 AND EXISTS (SELECT FROM deliveries d
                                              WHERE d.webhook_id = w.id AND state = 'waiting' AND due <= now()))
               AS waiting
        """
    )
    return bool(work and work["waiting"])


def pending(limit: int) -> list[Row]:
    """Return the oldest events. Owners take turns, so that many events of one do not delay the others."""
    return rows(
        """
        WITH RECURSIVE owners AS (
            SELECT min(user_id) AS user_id FROM outbox
             UNION ALL
            SELECT (SELECT min(o.user_id) FROM outbox o WHERE o.user_id > owners.user_id)
              FROM owners
             WHERE owners.user_id IS NOT NULL)
        SELECT id, o.user_id, type, object_id, data, created
          FROM owners,
               LATERAL (SELECT *, row_number() OVER (ORDER BY id) AS position FROM outbox
                         WHERE outbox.user_id = owners.user_id
                         ORDER BY id
                         LIMIT %(limit)s) o
         ORDER BY position, id
         LIMIT %(limit)s
        """,
        limit=limit,
    )


def subscriptions(user_ids: list[int]) -> list[Row]:
    """Return the active webhooks of these users."""
    return rows(
        """
        SELECT id, user_id, url <> '' AS has_url, events, campaign_id AS campaign, channel_id AS channel,
               domain_id AS domain
          FROM webhooks
         WHERE user_id = ANY (%(user_ids)s::bigint[]) AND active
        """,
        user_ids=user_ids,
    )


def targets(user_id: int, ids: list[int]) -> list[Row]:
    """Return the paths of links and QR codes, and what the filters of webhooks compare."""
    return rows(
        """
        SELECT id, host, '/' || alias AS path, campaign, channel, domain
          FROM (SELECT l.id, d.scheme || '://' || d.host AS host, alias, campaign_id AS campaign, domain_id AS domain,
                       ARRAY(SELECT channel_id FROM channel_items i WHERE i.user_id = l.user_id AND link_id = l.id)
                           AS channel
                  FROM links l
                  LEFT JOIN domains d ON d.id = domain_id
                 WHERE l.user_id = %(user_id)s AND l.id = ANY (%(ids)s::bigint[])
                 UNION ALL
                SELECT id, NULL, 'qr/' || code, NULL, NULL,
                       ARRAY(SELECT channel_id FROM channel_items i WHERE i.user_id = q.user_id AND qr_id = q.id)
                  FROM qrs q
                 WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])) owned
        """,
        user_id=user_id,
        ids=ids,
    )


def move(events: list[Row]) -> None:
    """Move events from the outbox. Each has `id`, `user_id`, `type`, `data`, `created`, `stored`, which is False if no
    webhook subscribes to it, and `webhooks`, the ids that it is delivered to. Events with the same `id` are parts of
    one in the outbox.

    One process at a time gets numbers, so that they ascend in the order of the commits. Events that another process
    has moved in the meantime are skipped.
    """
    run(
        """
        WITH move_lock AS MATERIALIZED (
            SELECT pg_advisory_xact_lock('events'::regclass::oid::bigint)),
        batch AS MATERIALIZED (
            SELECT * FROM json_to_recordset(%(events)s) AS events (
                   id bigint, user_id bigint, type text, data jsonb, created timestamptz, stored boolean,
                   webhooks bigint[])
             WHERE EXISTS (SELECT FROM move_lock)),
        taken AS (
            DELETE FROM outbox WHERE id IN (SELECT id FROM batch) RETURNING id),
        numbered AS MATERIALIZED (
            SELECT nextval(pg_get_serial_sequence('events', 'number')) AS number, ordered.*
              FROM (SELECT batch.* FROM batch JOIN taken USING (id) WHERE stored ORDER BY id) ordered),
        added AS (
            INSERT INTO events (number, user_id, type, data, created) OVERRIDING SYSTEM VALUE
            SELECT number, user_id, type, data, created FROM numbered)
        INSERT INTO deliveries (webhook_id, number)
        SELECT w.id, number
          FROM numbered,
               unnest(numbered.webhooks) AS receivers (webhook_id)
          JOIN webhooks w ON w.id = webhook_id
         ORDER BY number
           FOR KEY SHARE OF w
        """,
        events=orjson.dumps(events).decode(),
    )


def claim(*, limit: int, per_webhook: int, running: list[int]) -> list[Row]:
    """Take due deliveries, at most `per_webhook` of each webhook, so that none delays the others. A webhook whose last
    attempt failed gets one. `running` has the webhook of each delivery that this process has not completed."""
    return database().execute(
        """
        WITH ready AS MATERIALIZED (
            SELECT id, CASE WHEN failures > 0 THEN 1 ELSE %(per_webhook)s - number END AS room
              FROM webhooks w,
                   LATERAL (SELECT cardinality(array_positions(%(running)s::bigint[], w.id)) AS number) run
             WHERE active AND url <> '' AND coalesce(paused_until <= now(), true) AND number * 2 <= %(per_webhook)s
               AND EXISTS (SELECT FROM deliveries d
                            WHERE d.webhook_id = w.id AND state = 'waiting' AND due <= now())
             ORDER BY random()
             LIMIT %(limit)s
               FOR NO KEY UPDATE OF w SKIP LOCKED),
        paused AS (
            UPDATE webhooks
               SET paused_until = now() + make_interval(secs => %(lease)s),
                   -- Attempts of a delivery are at most about a day apart. Without any, no week of failures passes.
                   failing_since = CASE WHEN paused_until < now() - interval '2 days' THEN now() ELSE failing_since END
             WHERE failures > 0 AND id IN (SELECT id FROM ready)),
        claimed AS (
            UPDATE deliveries
               SET due = now() + make_interval(secs => %(lease)s), attempts = attempts + 1, attempted = now()
             WHERE id = ANY (ARRAY(SELECT next.id
                                     FROM ready,
                                          LATERAL (SELECT id, due FROM deliveries d
                                                    WHERE d.webhook_id = ready.id AND state = 'waiting'
                                                      AND due <= now()
                                                    ORDER BY due
                                                    LIMIT ready.room
                                                      FOR UPDATE SKIP LOCKED) next
                                    LIMIT %(limit)s))
            RETURNING id, webhook_id, number, attempts)
        SELECT c.id, c.webhook_id, c.attempts, e.number, e.type, e.created, e.data, w.user_id, w.url,
               w.secret_ciphertext,
               CASE WHEN previous_until > now() THEN previous_ciphertext END AS previous_ciphertext
          FROM claimed c
          JOIN events e USING (number)
          JOIN webhooks w ON w.id = c.webhook_id
        """,
        {"limit": limit, "per_webhook": per_webhook, "running": running, "lease": LEASE_SECONDS},
        idempotent=False,
        prelude=UNSYNCED,
    )


def store(results: list[Row]) -> None:
    """Store the results of attempts. Each has `id`, `attempts`, `delivered`, `gone`, `status`, `response`,
    `milliseconds` and `delay`, the seconds until the next attempt, or null if there is none."""
    run_unsynced(
        """
        WITH results AS (
            SELECT * FROM json_to_recordset(%(results)s) AS results (
                   id bigint, attempts integer, delivered boolean, gone boolean, status integer, response text,
                   milliseconds integer, delay float8)),
        stored AS (
            UPDATE deliveries d
               SET state = CASE WHEN r.delivered THEN 'delivered' WHEN r.delay IS NULL THEN 'failed' ELSE 'waiting' END,
                   due = now() + make_interval(secs => coalesce(r.delay, 0)),
                   status = r.status, response = r.response, milliseconds = r.milliseconds
              FROM results r
             WHERE d.id = r.id AND d.attempts = r.attempts AND d.state = 'waiting'
            RETURNING webhook_id, r.delivered, r.gone),
        receivers AS (
            SELECT webhook_id, bool_or(delivered) AS works, bool_or(gone) AS gone FROM stored GROUP BY webhook_id)
        UPDATE webhooks w
           SET failures = CASE WHEN works THEN 0 ELSE failures + 1 END,
               failing_since = CASE WHEN NOT works THEN coalesce(failing_since, now()) END,
               -- 2, 4, 8 ... seconds, at most a minute
               paused_until = CASE WHEN NOT works
                                   THEN now() + make_interval(secs => least(2 ^ least(failures + 1, 6), 60)) END,
               active = active AND NOT gone AND (works OR coalesce(failing_since > now() - interval '7 days', true)),
               reason = CASE WHEN gone THEN 'The receiver answered 410 Gone.'
                             WHEN NOT works AND failing_since <= now() - interval '7 days'
                             THEN 'No delivery succeeded for a week.' ELSE reason END
          FROM receivers r
         WHERE w.id = r.webhook_id AND (NOT works OR gone OR failures > 0)
        """,
        results=orjson.dumps(results).decode(),
    )


def announce_expired(limit: int) -> bool:
    """Record an event for each of the next `limit` links that have expired, if its owner has webhooks. Return True if
    there may be more. Links are announced 10 seconds late, so that none is missed that is committed in the meantime."""
    batch = run(
        """
        WITH clock AS MATERIALIZED (
            SELECT announced, link_id FROM expiry_clock
             WHERE announced < now() - interval '11 seconds'
               FOR UPDATE SKIP LOCKED),
        expired AS MATERIALIZED (
            SELECT l.user_id, l.id, l.expires
              FROM clock,
                   LATERAL (SELECT user_id, id, expires FROM links
                             WHERE (expires, id) > (clock.announced, clock.link_id)
                               AND expires < now() - interval '10 seconds'
                             ORDER BY expires, id
                             LIMIT %(limit)s) l),
        last AS (
            SELECT expires, id FROM expired ORDER BY expires, id OFFSET %(limit)s - 1),
        advanced AS (
            UPDATE expiry_clock
               SET announced = coalesce((SELECT expires FROM last), now() - interval '10 seconds'),
                   link_id = coalesce((SELECT id FROM last), 0)
             WHERE EXISTS (SELECT FROM clock)),
        recorded AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'link.expired', id FROM expired WHERE has_webhooks(user_id) ORDER BY expires, id)
        SELECT EXISTS (SELECT FROM last) AS is_full
        """,
        limit=limit,
    )
    return bool(batch and batch["is_full"])


def delete_expired(limit: int) -> int:
    """Delete up to `limit` events that are older than DAYS_KEPT days, with their deliveries. Return their number."""
    deleted = run_unsynced(
        """
        WITH deleted AS (
            DELETE FROM events
             WHERE number = ANY (ARRAY(SELECT number FROM events
                                        WHERE created < now() - make_interval(days => %(days)s) LIMIT %(limit)s))
            RETURNING 1)
        SELECT count(*) AS number FROM deleted
        """,
        days=DAYS_KEPT,
        limit=limit,
    )
    assert deleted is not None
    return int(deleted["number"])
