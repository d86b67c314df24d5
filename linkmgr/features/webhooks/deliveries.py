"""The deliveries of all webhooks: those that are sent next, and their results."""

import orjson

from linkmgr.core.database.statements import UNSYNCED, Row, database
from linkmgr.core.hooks import hooks

LEASE_SECONDS = 60  # of a delivery that is sent


def claim(*, limit: int, per_user: int, per_webhook: int, running: list[int]) -> list[Row]:
    """Take due deliveries. Users take turns, and the webhooks of each user, so that none delays the
    others: with those that run, a user gets at most `per_user` and a webhook at most `per_webhook`.
    A webhook whose last attempt failed gets one. `running` has the webhook of each delivery that
    this process has not completed. Attempts of a delivery are at most about a day apart: without
    any, no week of failures passes."""
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
            SELECT id, c.user_id,
                   CASE WHEN failures > 0 THEN 1 ELSE %(per_webhook)s - number END AS room
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
                             LIMIT ready.room FOR UPDATE SKIP LOCKED) next),
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
                                    ORDER BY turn LIMIT %(limit)s))
            RETURNING id, webhook_id, number, attempts),
        paused AS (
            UPDATE webhooks
               SET paused_until = now() + make_interval(secs => %(lease)s),
                   failing_since = CASE WHEN paused_until < now() - interval '2 days' THEN now()
                                        ELSE failing_since END
             WHERE failures > 0 AND id IN (SELECT webhook_id FROM claimed))
        SELECT c.id, c.webhook_id, c.attempts, e.number, e.type, e.created, e.extra, e.data,
               w.user_id, w.url, w.secret_ciphertext,
               (SELECT admin FROM users WHERE users.id = w.user_id) AS admin,
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
    changed = database().execute(
        """
        WITH results AS (
            SELECT * FROM json_to_recordset(%(results)s) AS results (
                   id bigint, attempts integer, delivered boolean, gone boolean, status integer,
                   response text, milliseconds integer, delay float8, retry_after integer)),
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
                                   THEN now() + make_interval(
                                       secs => least(2 ^ least(failures + 1, 6), 60)) END,
               retry_after = greatest(w.retry_after, r.retry_after),
               active = active AND NOT gone
               AND (works OR coalesce(failing_since > now() - interval '7 days', true)),
               reason = CASE WHEN gone THEN 'The receiver answered 410 Gone.'
                             WHEN NOT works AND failing_since <= now() - interval '7 days'
                             THEN 'No delivery succeeded for a week.' ELSE reason END
          FROM receivers r
          JOIN (SELECT id AS before_id, active AS was_active FROM webhooks) b ON before_id = webhook_id
         WHERE w.id = r.webhook_id
           AND (NOT works OR gone OR failures > 0 OR r.retry_after IS NOT NULL)
        RETURNING w.id, w.user_id, w.name, w.reason, was_active AND NOT active AS is_off
        """,
        {"results": orjson.dumps(results).decode()},
        idempotent=False,
        prelude=UNSYNCED,
    )
    for webhook in changed:
        if webhook["is_off"]:
            values = {"webhook": webhook["name"], "webhook_id": webhook["id"], "reason": webhook["reason"]}
            hooks().notify(webhook["user_id"], "webhook_off", **values)
