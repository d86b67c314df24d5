"""Webhooks and their deliveries. `secret_version` of a webhook changes with each rotation of its
secret."""

from typing import Unpack

import orjson

from linkmgr.core import keys
from linkmgr.core.database.paging import NamedPaging, Page, Paging, named_page, page
from linkmgr.core.database.statements import UNSYNCED, Row, database, row, run, run_one, run_unsynced
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import AppError, existing

batch = batch_of("webhooks")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        "SELECT *, created AS date, version::text FROM webhooks WHERE user_id = %(user_id)s AND "
        "has_text(name, %(q)s)",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, webhook_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM webhooks WHERE user_id = %(user_id)s AND id "
        "= %(webhook_id)s",
        user_id=user_id,
        webhook_id=webhook_id,
    )
    return existing(stored, "webhook")


def add(user_id: int, members: Row) -> Row:
    """Store a webhook with its `secret`, which is encrypted. A filter of 0 passes all events."""
    return run_one(
        """
        INSERT INTO webhooks (user_id, name, url, events, active, campaign, channel, domain,
                              secret_ciphertext)
        VALUES (require_room(%(user_id)s, 'webhooks', 20, 'webhooks_full'), %(name)s, %(url)s,
                %(events)s, %(active)s,
                webhook_filter('campaign', %(user_id)s, %(campaign)s, NULL),
                webhook_filter('channel', %(user_id)s, %(channel)s, NULL),
                webhook_filter('domain', %(user_id)s, %(domain)s, NULL), %(ciphertext)s)
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
        ciphertext=keys.seal(user_id, members["secret"]),
    )


def update(user_id: int, webhook_id: int, members: Row) -> Row:
    """Write the members that are not None. 0 removes a filter. One that is turned on starts without
    failures."""
    updated = run(
        """
        UPDATE webhooks
           SET name = coalesce(%(name)s, name),
               url = coalesce(%(url)s, url),
               events = coalesce(%(events)s, events),
               active = coalesce(%(active)s, active),
               campaign = webhook_filter('campaign', user_id, %(campaign)s, campaign),
               channel = webhook_filter('channel', user_id, %(channel)s, channel),
               domain = webhook_filter('domain', user_id, %(domain)s, domain),
               reason = CASE WHEN %(active)s THEN '' ELSE reason END,
               failures = CASE WHEN %(active)s THEN 0 ELSE failures END,
               failing_since = CASE WHEN %(active)s THEN NULL ELSE failing_since END,
               paused_until = CASE WHEN %(active)s THEN NULL ELSE paused_until END,
               retry_after = CASE WHEN %(active)s THEN NULL ELSE retry_after END
         WHERE user_id = %(user_id)s AND id = %(webhook_id)s
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
        webhook_id=webhook_id,
    )
    return existing(updated, "webhook")


def delete(user_id: int, webhook_id: int) -> None:
    deleted = run(
        "DELETE FROM webhooks WHERE user_id = %(user_id)s AND id = %(webhook_id)s RETURNING id",
        user_id=user_id,
        webhook_id=webhook_id,
    )
    existing(deleted, "webhook")


def rotate(user_id: int, webhook_id: int, *, secret: str, overlap: int, version: str | None = None) -> None:
    """Replace the secret, unless `version` is not its secret_version. The previous one also signs
    for `overlap` seconds."""
    rotated = run(
        """
        UPDATE webhooks
           SET previous_ciphertext = CASE WHEN %(overlap)s > 0 THEN secret_ciphertext END,
               previous_until = now() + make_interval(secs => %(overlap)s),
               secret_ciphertext = %(ciphertext)s
         WHERE user_id = %(user_id)s AND id = %(webhook_id)s
           AND secret_version = coalesce(%(version)s::text, secret_version)
        RETURNING id
        """,
        user_id=user_id,
        webhook_id=webhook_id,
        overlap=overlap,
        version=version,
        ciphertext=keys.seal(user_id, secret),
    )
    if rotated is None:
        read(user_id, webhook_id)  # raises not_found
        raise AppError("changed_meanwhile")


def test(user_id: int, webhook_id: int) -> bool:
    """Note an event of the type webhook.test, which is delivered to this webhook only, even if it
    was failing. Return False if the webhook has no URL, so that the event is only kept."""
    tested = run(
        """
        WITH tested AS (
            UPDATE webhooks SET paused_until = least(paused_until, now()), retry_after = NULL
             WHERE user_id = %(user_id)s AND id = %(webhook_id)s
            RETURNING id, name, url, active),
        events_added AS (
            INSERT INTO outbox (user_id, type, object_id, data)
            SELECT %(user_id)s, 'webhook.test', id, jsonb_build_object('id', id, 'name', name)
              FROM tested
             WHERE active)
        SELECT active, url <> '' AS has_url FROM tested
        """,
        user_id=user_id,
        webhook_id=webhook_id,
    )
    webhook = existing(tested, "webhook")
    if not webhook["active"]:
        raise AppError("webhook_off")
    return bool(webhook["has_url"])


def deliveries(user_id: int, webhook_id: int, **paging: Unpack[Paging]) -> Page:
    """A webhook that does not exist has none. The state `off` is not stored: deliveries of a
    webhook that is turned on again are waiting again."""
    return page(
        """
        WITH webhook AS (
            SELECT id, active AND url <> '' AS sends FROM webhooks WHERE user_id = %(user_id)s
               AND id = %(webhook_id)s)
        SELECT d.id, 'msg_' || number AS message, e.type,
               CASE WHEN state = 'waiting' AND NOT (SELECT sends FROM webhook) THEN 'off'
                    ELSE state END AS state,
               attempts, attempted, status, milliseconds, response,
               CASE WHEN state = 'waiting' AND (SELECT sends FROM webhook) THEN due END AS due,
               e.created AS date, e.data
          FROM deliveries d
          JOIN events e USING (number)
         WHERE webhook_id = (SELECT id FROM webhook) AND d.id < %(after)s
         ORDER BY d.id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM deliveries
         WHERE webhook_id = (SELECT id FROM webhooks WHERE user_id = %(user_id)s
                                AND id = %(webhook_id)s)
        """,
        user_id=user_id,
        webhook_id=webhook_id,
        **paging,
    )


def retry(user_id: int, delivery_id: int) -> None:
    retried = run(
        """
        WITH webhook AS (
            UPDATE webhooks SET paused_until = least(paused_until, now()), retry_after = NULL
             WHERE user_id = %(user_id)s
               AND id = (SELECT webhook_id FROM deliveries WHERE id = %(delivery_id)s)
            RETURNING id, active, url <> '' AS has_url),
        retried AS (
            UPDATE deliveries SET state = 'waiting', due = now(), attempts = 0
             WHERE id = %(delivery_id)s
               AND webhook_id = (SELECT id FROM webhook WHERE active AND has_url))
        SELECT active, has_url FROM webhook
        """,
        user_id=user_id,
        delivery_id=delivery_id,
    )
    webhook = existing(retried, "delivery")
    if not webhook["active"]:
        raise AppError("webhook_off")
    if not webhook["has_url"]:
        raise AppError("webhook_without_url")


# --- the deliveries of all webhooks: those that are sent next, and their results

LEASE_SECONDS = 60  # of a delivery that is sent


def claim(*, limit: int, per_user: int, per_webhook: int, running: list[int]) -> list[Row]:
    """Take due deliveries. Users take turns, and the webhooks of each user, so that none delays the
    others: with those that run, a user gets at most `per_user` and a webhook at most `per_webhook`.
    A webhook whose last attempt failed gets one. `running` has the webhook of each delivery that
    this process has not completed."""
    return database().execute(
        """
        WITH running AS MATERIALIZED (
            SELECT w.id, user_id, count(*) AS number
              FROM unnest(%(running)s::bigint[]) AS run (id)
              JOIN webhooks w USING (id)
             GROUP BY w.id),
        candidates AS MATERIALIZED (
            SELECT w.id, w.user_id, coalesce(r.number, 0) AS number,
                   row_number() OVER (PARTITION BY w.user_id ORDER BY random()) AS turn
              FROM webhooks w
              LEFT JOIN running r ON r.id = w.id
             WHERE active AND url <> ''
               AND coalesce(greatest(paused_until, retry_after) <= now(), true)
               AND coalesce(r.number, 0) * 2 <= %(per_webhook)s
               AND (SELECT coalesce(sum(number), 0) FROM running u
                     WHERE u.user_id = w.user_id) < %(per_user)s
               AND EXISTS (SELECT FROM deliveries d
                            WHERE d.webhook_id = w.id AND state = 'waiting' AND due <= now())),
        ready AS MATERIALIZED (
            SELECT id,
                   c.user_id, CASE WHEN failures > 0 THEN 1
                                   ELSE %(per_webhook)s - number END AS room
              FROM candidates c
              JOIN webhooks w USING (id)
             WHERE turn <= %(per_user)s
             ORDER BY turn, random()
             LIMIT %(limit)s
               FOR NO KEY UPDATE OF w SKIP LOCKED),
        due AS MATERIALIZED (
            SELECT next.id, ready.user_id, ready.id AS webhook_id, next.due
              FROM ready,
                   LATERAL (SELECT id, due FROM deliveries d
                             WHERE d.webhook_id = ready.id AND state = 'waiting' AND due <= now()
                             ORDER BY due
                             LIMIT ready.room
                               FOR UPDATE SKIP LOCKED) next),
        in_turn AS (
            SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY position, due)
                       + (SELECT coalesce(sum(number), 0) FROM running u
                           WHERE u.user_id = numbered.user_id) AS turn
              FROM (SELECT *, row_number() OVER (PARTITION BY webhook_id ORDER BY due) AS position
                      FROM due) numbered),
        claimed AS (
            UPDATE deliveries
               SET due = now() + make_interval(secs => %(lease)s), attempts = attempts + 1,
                   attempted = now()
             WHERE id = ANY (ARRAY(SELECT id FROM in_turn
                                    WHERE turn <= %(per_user)s
                                    ORDER BY turn
                                    LIMIT %(limit)s))
            RETURNING id, webhook_id, number, attempts),
        paused AS (
            UPDATE webhooks
               SET paused_until = now() + make_interval(secs => %(lease)s),
                   -- Attempts of a delivery are at most about a day apart. Without any, no week of
                   -- failures passes.
                   failing_since = CASE WHEN paused_until < now() - interval '2 days' THEN now()
                                        ELSE failing_since END
             WHERE failures > 0 AND id IN (SELECT webhook_id FROM claimed))
        SELECT c.id, c.webhook_id, c.attempts, e.number, e.type, e.created, e.extra, e.data,
               w.user_id, w.url,
               w.secret_ciphertext, (SELECT admin FROM users WHERE users.id = w.user_id) AS admin,
               CASE WHEN previous_until > now() THEN previous_ciphertext END AS previous_ciphertext
          FROM claimed c
          JOIN events e USING (number)
          JOIN webhooks w ON w.id = c.webhook_id
        """,
        {
            "limit": limit,
            "per_user": per_user,
            "per_webhook": per_webhook,
            "running": running,
            "lease": LEASE_SECONDS,
        },
        idempotent=False,
        prelude=UNSYNCED,
    )


def store_results(results: list[Row]) -> None:
    """Store the results of attempts. Each has `id`, `attempts`, `delivered`, `gone`, `status`,
    `response`, `milliseconds`, `delay`, the seconds until the next attempt, or null if there is
    none, and `retry_after`, those for which the receiver asks not to be called, or null."""
    run_unsynced(
        """
        WITH results AS (
            SELECT * FROM json_to_recordset(%(results)s) AS results (
                   id bigint, attempts integer, delivered boolean, gone boolean, status integer,
                   response text,
                   milliseconds integer, delay float8, retry_after integer)),
        stored AS (
            UPDATE deliveries d
               SET state = CASE WHEN r.delivered THEN 'delivered' WHEN r.delay IS NULL THEN 'failed'
                                ELSE 'waiting' END,
                   due = now() + make_interval(secs => coalesce(r.delay, 0)),
                   status = r.status, response = r.response, milliseconds = r.milliseconds
              FROM results r
             WHERE d.id = r.id AND d.attempts = r.attempts AND d.state = 'waiting'
            RETURNING webhook_id, r.delivered, r.gone, r.retry_after),
        receivers AS (
            SELECT webhook_id, bool_or(delivered) AS works, bool_or(gone) AS gone,
                   now() + make_interval(secs => max(retry_after)) AS retry_after
              FROM stored
             GROUP BY webhook_id)
        UPDATE webhooks w
           SET failures = CASE WHEN works THEN 0 ELSE failures + 1 END,
               failing_since = CASE WHEN NOT works THEN coalesce(failing_since, now()) END,
               -- 2, 4, 8 ... seconds, at most a minute
               paused_until = CASE WHEN NOT works
                                   THEN now() + make_interval(secs =>
                                                              least(2 ^ least(failures + 1, 6),
                                                                    60)) END,
               retry_after = greatest(w.retry_after, r.retry_after),
               active = active AND NOT gone
               AND (works OR coalesce(failing_since > now() - interval '7 days', true)),
               reason = CASE WHEN gone THEN 'The receiver answered 410 Gone.'
                             WHEN NOT works AND failing_since <= now() - interval '7 days'
                             THEN 'No delivery succeeded for a week.' ELSE reason END
          FROM receivers r
         WHERE w.id = r.webhook_id
           AND (NOT works OR gone OR failures > 0 OR r.retry_after IS NOT NULL)
        """,
        results=orjson.dumps(results).decode(),
    )
