"""Webhooks and their deliveries."""

from typing import Unpack

from linkmgr import keys
from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import AppError, not_found
from linkmgr.repository.tables import Table

MAX_EXAMINED = 10_000  # events, of which a request selects those of its types


WEBHOOKS = Table(
    "webhooks",
    "webhook",
    "*, campaign_id AS campaign, channel_id AS channel, domain_id AS domain, created AS date, version::text",
    has_usage=False,
)
index, batch, read, delete = WEBHOOKS.index, WEBHOOKS.batch, WEBHOOKS.read, WEBHOOKS.delete


def add(user_id: int, members: Row) -> Row:
    """Store a webhook with its `secret`, which is encrypted."""
    sql = """
        INSERT INTO webhooks
               (user_id, name, url, events, campaign_id, channel_id, domain_id, active, secret_ciphertext)
        VALUES (%(user_id)s, %(name)s, %(url)s, %(events)s, nullif(%(campaign)s, 0), nullif(%(channel)s, 0),
                nullif(%(domain)s, 0), %(active)s, %(ciphertext)s)
    """
    return WEBHOOKS.add(sql, user_id, members | {"ciphertext": keys.seal(user_id, members["secret"])})


def update(user_id: int, webhook_id: int, members: Row) -> Row:
    """Write the members that were sent. 0 removes a filter. A webhook that is turned on starts without failures."""
    sql = """
        UPDATE webhooks
           SET name = coalesce(%(name)s, name),
               url = coalesce(%(url)s, url),
               events = coalesce(%(events)s::text[], events),
               campaign_id = CASE WHEN %(campaign)s::bigint IS NULL THEN campaign_id ELSE nullif(%(campaign)s, 0) END,
               channel_id = CASE WHEN %(channel)s::bigint IS NULL THEN channel_id ELSE nullif(%(channel)s, 0) END,
               domain_id = CASE WHEN %(domain)s::bigint IS NULL THEN domain_id ELSE nullif(%(domain)s, 0) END,
               active = coalesce(%(active)s, active),
               reason = CASE WHEN %(active)s THEN '' ELSE reason END,
               failures = CASE WHEN %(active)s THEN 0 ELSE failures END,
               failing_since = CASE WHEN %(active)s THEN NULL ELSE failing_since END,
               paused_until = CASE WHEN %(active)s THEN NULL ELSE paused_until END
         WHERE user_id = %(user_id)s AND id = %(row_id)s
    """
    return WEBHOOKS.change(sql, user_id, webhook_id, members)


def secret_version(user_id: int, webhook_id: int) -> str:
    """Return a text that changes with each rotation of the secret, or "" if there was none."""
    webhook = row(
        """
        SELECT coalesce(previous_until::text, '') AS version
          FROM webhooks
         WHERE user_id = %(user_id)s AND id = %(webhook_id)s
        """,
        user_id=user_id,
        webhook_id=webhook_id,
    )
    if webhook is None:
        raise not_found("webhook")
    return str(webhook["version"])


def rotate(user_id: int, webhook_id: int, *, secret: str, overlap: int, version: str | None = None) -> None:
    """Replace the secret, unless `version` is not its secret_version. The previous one also signs for `overlap`
    seconds."""
    rotated = run(
        """
        UPDATE webhooks
           SET previous_ciphertext = CASE WHEN %(overlap)s > 0 THEN secret_ciphertext END,
               previous_until = now() + make_interval(secs => %(overlap)s),
               secret_ciphertext = %(ciphertext)s
         WHERE user_id = %(user_id)s AND id = %(webhook_id)s
           AND (%(version)s::text IS NULL OR coalesce(previous_until::text, '') = %(version)s)
        RETURNING id
        """,
        user_id=user_id,
        webhook_id=webhook_id,
        overlap=overlap,
        version=version,
        ciphertext=keys.seal(user_id, secret),
    )
    if rotated is None:
        secret_version(user_id, webhook_id)  # raises not_found
        raise AppError("changed_meanwhile")


def test(user_id: int, webhook_id: int) -> bool:
    """Record an event of the type webhook.test, which is delivered to this webhook only, even if it was failing. Return
    False if the webhook has no URL, so that the event is only recorded."""
    webhook = run(
        """
        WITH tested AS (
            UPDATE webhooks SET paused_until = least(paused_until, now())
             WHERE user_id = %(user_id)s AND id = %(webhook_id)s
            RETURNING id, name, url, active),
        recorded AS (
            INSERT INTO outbox (user_id, type, object_id, data)
            SELECT %(user_id)s, 'webhook.test', id, jsonb_build_object('id', id, 'name', name)
              FROM tested
             WHERE active)
        SELECT active, url <> '' AS has_url FROM tested
        """,
        user_id=user_id,
        webhook_id=webhook_id,
    )
    if webhook is None:
        raise not_found("webhook")
    if not webhook["active"]:
        raise AppError("webhook_off")
    return bool(webhook["has_url"])


def deliveries(user_id: int, webhook_id: int, **paging: Unpack[Paging]) -> Page:
    """List the deliveries of a webhook, the newest first. A webhook that does not exist has none.

    The state `off` is not stored: deliveries of a webhook that is turned on again are waiting again.
    """
    return page(
        """
        WITH webhook AS (
            SELECT id, active AND url <> '' AS sends FROM webhooks WHERE user_id = %(user_id)s AND id = %(webhook_id)s)
        SELECT d.id, 'msg_' || number AS message, e.type,
               CASE WHEN state = 'waiting' AND NOT (SELECT sends FROM webhook) THEN 'off' ELSE state END AS state,
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
         WHERE webhook_id = (SELECT id FROM webhooks WHERE user_id = %(user_id)s AND id = %(webhook_id)s)
        """,
        user_id=user_id,
        webhook_id=webhook_id,
        **paging,
    )


def retry(user_id: int, delivery_id: int) -> None:
    """Make a delivery due now, with all attempts left, even if its receiver was failing."""
    webhook = run(
        """
        WITH webhook AS (
            UPDATE webhooks SET paused_until = least(paused_until, now())
             WHERE user_id = %(user_id)s AND id = (SELECT webhook_id FROM deliveries WHERE id = %(delivery_id)s)
            RETURNING id, active, url <> '' AS has_url),
        retried AS (
            UPDATE deliveries SET state = 'waiting', due = now(), attempts = 0
             WHERE id = %(delivery_id)s AND webhook_id = (SELECT id FROM webhook WHERE active AND has_url))
        SELECT active, has_url FROM webhook
        """,
        user_id=user_id,
        delivery_id=delivery_id,
    )
    if webhook is None:
        raise not_found("delivery")
    if not webhook["active"]:
        raise AppError("webhook_off")
    if not webhook["has_url"]:
        raise AppError("webhook_without_url")


def events(user_id: int, *, after: int, limit: int, pattern: str, hidden: str | None) -> tuple[list[Row], int | None]:
    """List the events behind the number `after`, the oldest first, and return the last number that was examined. The
    patterns of LIKE `pattern` and `hidden` select and leave out types."""
    listed = rows(
        """
        WITH matching AS MATERIALIZED (
            SELECT number, type, created, data
              FROM (SELECT * FROM events
                     WHERE user_id = %(user_id)s AND number > %(after)s
                     ORDER BY number
                     LIMIT %(examined)s) examined
             WHERE type LIKE %(pattern)s AND (type LIKE %(hidden)s) IS NOT TRUE
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
        SELECT number AS id, 'msg_' || number AS message, type, created AS timestamp, data, next
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
    last = listed[0]["next"]
    return [{name: event[name] for name in event if name != "next"} for event in listed if event["id"]], last
