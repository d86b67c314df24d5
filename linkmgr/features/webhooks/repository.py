"""Webhooks and their deliveries. `secret_version` of a webhook changes with each rotation of its
secret."""

from typing import Unpack

from linkmgr.core import keys
from linkmgr.core.database.paging import NamedPaging, Page, Paging, named_page, page
from linkmgr.core.database.statements import Row, row, run, run_one
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
        WITH noted AS (
            UPDATE users SET has_events = true WHERE id = %(user_id)s)
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


def rotate(user_id: int, webhook_id: int, *, secret: str, overlap: int, version: str | None = None) -> Row:
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
        RETURNING *, created AS date, version::text
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
    return rotated


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
