"""Events: their list, their way from the outbox to `events` and `deliveries`, and their
deletion."""

import orjson

from linkmgr.core.database.expiry import older_than
from linkmgr.core.database.paging import fitting
from linkmgr.core.database.statements import UNSYNCED, Row, database, row, rows, run, run_one, run_unsynced
from linkmgr.features.webhooks import activity

MOVE_SECONDS = 10  # until another process may move events, if the one that does so dies
TRAIL = 0  # instead of a user: events of audits, which are kept for the page "Activity" without a webhook
TRAIL_DAYS = 365
# Limits of each user, and of the trail. Beyond them, the oldest events are dropped, with their
# deliveries.
DAYS_KEPT = 30
MAX_WAITING = MAX_EVENTS = 100_000
MAX_BYTES = 256 << 20
DELIVERY_BYTES = 1000  # that a delivery adds to the size of its event
MAX_EXAMINED = 10_000  # events, of which a request selects those of its types
EXPIRING = (
    older_than("events", "created", f"{DAYS_KEPT} days", f"user_id > {TRAIL}"),
    older_than("events", "created", f"{activity.DAYS_KEPT} days", f"user_id < {TRAIL}"),
    older_than("events", "created", f"{TRAIL_DAYS} days"),
)


def has_work() -> bool:
    work = row(
        """
        SELECT EXISTS (SELECT FROM outbox)
               OR EXISTS (SELECT FROM deliveries WHERE state = 'waiting' AND due <= now())
                  AND EXISTS (SELECT FROM webhooks w
                               WHERE active AND url <> ''
                                 AND coalesce(greatest(paused_until, retry_after) <= now(), true)
                                 AND EXISTS (SELECT FROM deliveries d
                                              WHERE d.webhook_id = w.id AND state = 'waiting'
                                                AND due <= now()))
               AS waiting
        """
    )
    return bool(work and work["waiting"])


def pending(limit: int) -> list[Row]:
    """Return the oldest events, or none if another process is moving events. `move` ends the turn
    of this process. Owners take turns, so that many events of one do not delay the others."""
    return database().execute(
        """
        WITH turn AS MATERIALIZED (
            UPDATE service SET moving_until = now() + make_interval(secs => %(seconds)s)
             WHERE ctid = (SELECT ctid FROM service
                            WHERE moving_until < now() AND EXISTS (SELECT FROM outbox)
                              FOR NO KEY UPDATE SKIP LOCKED)
            RETURNING 1)
        SELECT o.id, o.user_id, type, object_id, data, stored, actor, created,
               p.id AS person_id, username AS person
          FROM outbox_owners owners
         CROSS JOIN LATERAL (SELECT *, row_number() OVER (ORDER BY id) AS position FROM outbox
                         WHERE outbox.user_id = owners.user_id
                         ORDER BY id
                         LIMIT %(limit)s) o
          LEFT JOIN users p ON p.id = person_of(actor, abs(o.user_id))
         WHERE EXISTS (SELECT FROM turn)
         ORDER BY position, o.id
         LIMIT %(limit)s
        """,
        {"limit": limit, "seconds": MOVE_SECONDS},
        idempotent=False,
        prelude=UNSYNCED,
    )


def subscriptions(user_ids: list[int]) -> list[Row]:
    """Return the webhooks of users, and a row that stands for their activity for those with one."""
    return rows(
        """
        SELECT id, user_id, url <> '' AS has_url, events, campaign, channel, domain
          FROM webhooks
         WHERE user_id = ANY (%(user_ids)s::bigint[]) AND active
         UNION ALL
        SELECT %(reader)s::bigint, id, false, %(noted)s::text[], NULL, NULL, NULL
          FROM users
         WHERE id = ANY (%(user_ids)s::bigint[]) AND has_activity
        """,
        user_ids=user_ids,
        reader=activity.READER,
        noted=[*activity.TYPES],
    )


def tracked_rows(user_id: int, ids: list[int]) -> list[Row]:
    return rows(
        """
        SELECT id, host, '/' || alias AS path, campaign, channel, domain
          FROM (SELECT l.id, d.domain AS host, alias, campaign, domain_id AS domain,
                       ARRAY(SELECT channel_id FROM channel_items i WHERE i.user_id = l.user_id
                                AND link_id = l.id)
                           AS channel
                  FROM links l
                  LEFT JOIN domains d ON d.id = domain_id
                 WHERE l.user_id = %(user_id)s AND l.id = ANY (%(ids)s::bigint[])
                 UNION ALL
                SELECT id, NULL, 'qr/' || code, NULL, NULL,
                       ARRAY(SELECT channel_id FROM channel_items i WHERE i.user_id = q.user_id
                                AND qr_id = q.id)
                  FROM qrs q
                 WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])) owned
        """,
        user_id=user_id,
        ids=ids,
    )


def move(events: list[Row]) -> None:
    """Move events from the outbox. Each has `id`, `user_id`, `type`, `data`, `extra`, `created`,
    `stored`, which is False if no webhook subscribes to it, and `webhooks`, the ids that it is
    delivered to. Events with the same `id` are parts of one in the outbox.

    One process at a time gets numbers, so that they ascend in the order of the commits. They begin
    with the time in microseconds: after a restore of a backup, no number is given again. Events
    that another process has moved in the meantime are skipped.
    """
    run(
        """
        WITH move_lock AS MATERIALIZED (
            SELECT pg_advisory_xact_lock('events'::regclass::oid::bigint)),
        batch AS MATERIALIZED (
            SELECT * FROM json_to_recordset(%(events)s) AS events (
                   id bigint, user_id bigint, type text, data jsonb, extra jsonb,
                   created timestamptz, stored boolean, webhooks bigint[])
             WHERE EXISTS (SELECT FROM move_lock)),
        turn_ended AS (
            UPDATE service SET moving_until = '-infinity' WHERE EXISTS (SELECT FROM move_lock)),
        taken AS (
            DELETE FROM outbox WHERE id IN (SELECT id FROM batch) RETURNING id),
        advanced AS MATERIALIZED (
            SELECT setval(numbers, greatest(nextval(numbers), microseconds))
              FROM pg_get_serial_sequence('events', 'number') AS numbers,
                   CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS microseconds
             WHERE EXISTS (SELECT FROM move_lock)),
        numbered AS MATERIALIZED (
            SELECT nextval(pg_get_serial_sequence('events', 'number')) AS number, ordered.*
              FROM (SELECT batch.*, octet_length(data::text) + octet_length(extra::text)
                           + %(delivery_bytes)s * cardinality(webhooks) AS size
                      FROM batch
                      JOIN taken USING (id)
                     WHERE stored
                     ORDER BY id) ordered
             WHERE EXISTS (SELECT FROM advanced)),
        counted AS MATERIALIZED (
            SELECT n.*, row_number() OVER previous + coalesce(last.position, 0) AS position,
                   sum(size) OVER previous + coalesce(last.bytes, 0) AS bytes
              FROM numbered n
              LEFT JOIN LATERAL (SELECT position, bytes FROM events e
                                  WHERE e.user_id = n.user_id
                                  ORDER BY number DESC
                                  LIMIT 1) last ON true
            WINDOW previous AS (PARTITION BY n.user_id ORDER BY number)),
        added AS (
            INSERT INTO events (number, user_id, type, data, extra, created, position,
                                bytes) OVERRIDING SYSTEM VALUE
            SELECT number, user_id, type, data, extra, created, position, bytes FROM counted),
        dropped AS (
            DELETE FROM events
             WHERE number IN (SELECT oldest.number
                                FROM (SELECT user_id, max(position) AS position,
                                             max(bytes) AS bytes, count(*) AS added
                                        FROM counted GROUP BY user_id) newest,
                                     -- Small events are followed by large ones; a batch deletes a
                                     -- limited number.
                                     LATERAL (SELECT number, position, bytes FROM events e
                                               WHERE e.user_id = newest.user_id
                                               ORDER BY number
                                               LIMIT 20 * newest.added) oldest
                               WHERE oldest.position <= newest.position - %(max_events)s
                                  OR oldest.bytes <= newest.bytes - %(max_bytes)s))
        INSERT INTO deliveries (webhook_id, number)
        SELECT w.id, number
          FROM numbered,
               unnest(numbered.webhooks) AS receivers (webhook_id)
          JOIN webhooks w ON w.id = webhook_id
         ORDER BY number
           FOR KEY SHARE OF w
        """,
        events=orjson.dumps(events).decode(),
        delivery_bytes=DELIVERY_BYTES,
        max_events=MAX_EVENTS,
        max_bytes=MAX_BYTES,
    )


def drop_excess() -> None:
    run_unsynced(
        """
        DELETE FROM outbox
         USING outbox_owners owners,
               LATERAL (SELECT id FROM outbox o
                         WHERE o.user_id = owners.user_id
                         ORDER BY id DESC
                        OFFSET %(kept)s
                         LIMIT 1) last
         WHERE outbox.user_id = owners.user_id AND outbox.id <= last.id
        """,
        kept=MAX_WAITING,
    )


def announce_expired(limit: int) -> bool:
    """Note an event for each of the next `limit` links that have expired, if its owner has
    webhooks. Return True if there may be more. Links are announced 10 seconds late, so that none is
    missed that is committed in the meantime."""
    batch = run_one(
        """
        WITH clock AS MATERIALIZED (
            SELECT announced, announced_id FROM service
             WHERE announced < now() - interval '11 seconds'
               FOR UPDATE SKIP LOCKED),
        expired AS MATERIALIZED (
            SELECT l.user_id, l.id, l.expiry
              FROM clock,
                   LATERAL (SELECT user_id, id, expiry FROM links
                             WHERE (expiry, id) > (clock.announced, clock.announced_id)
                               AND expiry < now() - interval '10 seconds'
                             ORDER BY expiry, id
                             LIMIT %(limit)s) l),
        last AS (
            SELECT expiry, id FROM expired ORDER BY expiry, id OFFSET %(limit)s - 1),
        advanced AS (
            UPDATE service
               SET announced = coalesce((SELECT expiry FROM last), now() - interval '10 seconds'),
                   announced_id = coalesce((SELECT id FROM last), 0)
             WHERE EXISTS (SELECT FROM clock)),
        events_added AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'link.expired', id FROM expired WHERE has_webhooks(user_id)
             ORDER BY expiry, id)
        SELECT EXISTS (SELECT FROM last) AS is_full
        """,
        limit=limit,
    )
    return bool(batch["is_full"])


def events(
    user_id: int, *, after: int, limit: int, pattern: str, hidden: list[str]
) -> tuple[list[Row], int | None]:
    """List the events behind the number `after`, the oldest first, and return the last number that
    was examined. The pattern of LIKE `pattern` selects types, and those of `hidden` leave some
    out."""
    listed, is_cut = fitting(
        """
        WITH matching AS MATERIALIZED (
            SELECT number, type, created, extra, data
              FROM (SELECT * FROM events
                     WHERE user_id = %(user_id)s AND number > %(after)s
                     ORDER BY number
                     LIMIT %(examined)s) examined
             WHERE type LIKE %(pattern)s AND type NOT LIKE ALL (%(hidden)s::text[])
             ORDER BY number
             LIMIT %(limit)s),
        last AS (
            SELECT CASE WHEN count(*) = %(limit)s THEN max(number)
                        ELSE (SELECT max(number)
                                FROM (SELECT number FROM events
                                       WHERE user_id = %(user_id)s AND number > %(after)s
                                       ORDER BY number
                                       LIMIT %(examined)s) examined) END AS next
              FROM matching)
        SELECT number AS id, 'msg_' || number AS message, type, created AS timestamp, extra, data,
               next
          FROM last
          LEFT JOIN matching ON true
         ORDER BY number
        """,
        user_id=user_id,
        after=after,
        limit=limit,
        pattern=pattern,
        hidden=hidden,
        examined=MAX_EXAMINED,
    )
    last = listed[-1]["id"] if is_cut else listed[0]["next"]
    return [{name: event[name] for name in event if name != "next"} for event in listed if event["id"]], last


def trail(*, before: int, user_id: int, limit: int) -> list[Row]:
    """List the audit trail before a number, the newest events first. With the id of a user, list
    only what the user did and what concerns the user. Equal users are compared with >= and <,
    because PostgreSQL would look for the few events of one among those of all: only the indexes by
    user have this order."""
    return rows(
        """
        WITH trail AS NOT MATERIALIZED (
            SELECT number, type, created, data, extra,
                   (extra -> 'actor' ->> 'user')::bigint AS actor_id,
                   (data ->> CASE type WHEN 'audit.user' THEN 'id'
                                  ELSE 'user_id' END)::bigint AS subject_id
              FROM events
             WHERE user_id = 0  -- a constant, as in the conditions of the indexes
               AND number < %(before)s)
        SELECT number AS id, type, e.created AS date, data, extra -> 'actor' ->> 'key' AS key,
               actor_id, subject_id, coalesce(actors.username, CASE WHEN actor_id = subject_id
                                                THEN data ->> 'username' END) AS actor,
               coalesce(subjects.username, data ->> 'username') AS subject
          FROM (SELECT * FROM trail
                 WHERE number = ANY (ARRAY(
                       (SELECT number FROM trail WHERE %(user_id)s = 0 ORDER BY number DESC
                         LIMIT %(limit)s)
                        UNION ALL
                       (SELECT number FROM trail
                         WHERE actor_id >= %(user_id)s
                           AND (actor_id, number) < (%(user_id)s, %(before)s)
                         ORDER BY actor_id DESC, number DESC LIMIT %(limit)s)
                        UNION ALL
                       (SELECT number FROM trail
                         WHERE subject_id >= %(user_id)s
                           AND (subject_id, number) < (%(user_id)s, %(before)s)
                         ORDER BY subject_id DESC, number DESC LIMIT %(limit)s)))
                 ORDER BY number DESC
                 LIMIT %(limit)s) e
          LEFT JOIN users actors ON actors.id = actor_id
          LEFT JOIN users subjects ON subjects.id = subject_id
         ORDER BY number DESC
        """,
        before=before,
        user_id=user_id,
        limit=limit,
    )
