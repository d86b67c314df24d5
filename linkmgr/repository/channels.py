from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, Paging, named_page, page
from linkmgr.core.database.statements import Row, row, run, run_one
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import existing, not_found
from linkmgr.core.fields.short_urls import short_url

ITEMS = {"links": "link", "bio": "bio page", "qr": "QR code"}  # types of the API and their names in messages

batch = batch_of("channels")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        "SELECT *, created AS date, version::text FROM channels WHERE user_id = %(user_id)s AND "
        "has_text(name, %(q)s)",
        counted="channels",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, channel_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM channels WHERE user_id = %(user_id)s AND id "
        "= %(channel_id)s",
        user_id=user_id,
        channel_id=channel_id,
    )
    return existing(stored, "channel")


def add(user_id: int, members: Row) -> Row:
    return run_one(
        """
        INSERT INTO channels (user_id, name, description, color, starred)
        VALUES (%(user_id)s, %(name)s, %(description)s, %(color)s, %(starred)s)
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
    )


def update(user_id: int, channel_id: int, members: Row) -> Row:
    updated = run(
        """
        UPDATE channels
           SET name = coalesce(%(name)s, name),
               description = coalesce(%(description)s, description),
               color = coalesce(%(color)s, color),
               starred = coalesce(%(starred)s, starred)
         WHERE user_id = %(user_id)s AND id = %(channel_id)s
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
        channel_id=channel_id,
    )
    return existing(updated, "channel")


def delete(user_id: int, channel_id: int) -> None:
    deleted = run(
        "DELETE FROM channels WHERE user_id = %(user_id)s AND id = %(channel_id)s RETURNING id",
        user_id=user_id,
        channel_id=channel_id,
    )
    existing(deleted, "channel")


# --- items


def items(user_id: int, channel_id: int, **paging: Unpack[Paging]) -> Page:
    listed = page(
        """
        SELECT i.id AS cursor,
               CASE WHEN link_id IS NOT NULL THEN 'links' WHEN bio_id IS NOT NULL THEN 'bio'
                    ELSE 'qr' END AS type,
               coalesce(link_id, bio_id, qr_id) AS id,
               coalesce(nullif(l.title, ''), l.url, b.name, q.name) AS title,
               l.url, d.domain, coalesce(l.alias, b.alias, 'qr/' || q.code) AS alias,
               coalesce(l.created, b.created, q.created)::date AS date
          FROM channel_items i
          LEFT JOIN links l ON l.id = link_id
          LEFT JOIN domains d ON d.id = l.domain_id
          LEFT JOIN bios b ON b.id = bio_id
          LEFT JOIN qrs q ON q.id = qr_id
         WHERE channel_id = (SELECT id FROM channels WHERE user_id = %(user_id)s
                                AND id = %(channel_id)s)
           AND (qr_id IS NULL OR q.id IS NOT NULL)
           AND i.id < %(after)s
         ORDER BY i.id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM channel_items
         WHERE channel_id = (SELECT id FROM channels WHERE user_id = %(user_id)s
                                AND id = %(channel_id)s)
           AND (qr_id IS NULL OR EXISTS (SELECT FROM qrs
                                             WHERE user_id = %(user_id)s AND id = qr_id))
        """,
        user_id=user_id,
        channel_id=channel_id,
        cursor="cursor",
        **paging,
    )
    listed.rows[:] = map(_to_item, listed.rows)
    return listed


def _to_item(item: Row) -> Row:
    link = short_url(item["domain"], item["alias"])
    return {
        "type": item["type"],
        "id": item["id"],
        "title": item["title"],
        "preview": item["url"] or link,
        "link": link,
        "date": item["date"],
    }


def assign(user_id: int, channel_id: int, item_id: int, *, type: str) -> None:  # noqa: A002 - the API's name
    """Repeated assignment has no effect. FOR KEY SHARE waits for a concurrent delete of either, so
    that no reference to a deleted row is stored."""
    result = run_one(
        """
        WITH channel AS (
            SELECT id FROM channels WHERE user_id = %(user_id)s AND id = %(channel_id)s
               FOR KEY SHARE),
        item AS (
            SELECT *
              FROM (SELECT (SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(item_id)s
                               AND %(type)s = 'links' FOR KEY SHARE) AS link_id,
                           (SELECT id FROM bios WHERE user_id = %(user_id)s AND id = %(item_id)s
                               AND %(type)s = 'bio' FOR KEY SHARE) AS bio_id,
                           (SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = %(item_id)s
                               AND %(type)s = 'qr' FOR KEY SHARE) AS qr_id) ids
             WHERE num_nonnulls(link_id, bio_id, qr_id) = 1),
        assigned AS (
            INSERT INTO channel_items (user_id, channel_id, link_id, bio_id, qr_id)
            SELECT %(user_id)s, channel.id, link_id, bio_id, qr_id FROM channel, item
            ON CONFLICT DO NOTHING)
        SELECT EXISTS (SELECT FROM channel) AS channel, EXISTS (SELECT FROM item) AS item
        """,
        user_id=user_id,
        channel_id=channel_id,
        item_id=item_id,
        type=type,
    )
    _require_both(result, type)


def unassign(user_id: int, channel_id: int, item_id: int, *, type: str) -> None:  # noqa: A002 - the API's name
    result = run_one(
        """
        WITH channel AS (
            SELECT id FROM channels WHERE user_id = %(user_id)s AND id = %(channel_id)s),
        item AS (
            SELECT FROM links WHERE user_id = %(user_id)s AND id = %(item_id)s
               AND %(type)s = 'links' UNION ALL
            SELECT FROM bios WHERE user_id = %(user_id)s AND id = %(item_id)s AND %(type)s = 'bio'
             UNION ALL
            SELECT FROM qrs WHERE user_id = %(user_id)s AND id = %(item_id)s AND %(type)s = 'qr'),
        removed AS (
            DELETE FROM channel_items
             WHERE user_id = %(user_id)s AND channel_id = (SELECT id FROM channel)
               AND (link_id = %(item_id)s AND %(type)s = 'links'
                    OR bio_id = %(item_id)s AND %(type)s = 'bio'
                    OR qr_id = %(item_id)s AND %(type)s = 'qr'))
        SELECT EXISTS (SELECT FROM channel) AS channel, EXISTS (SELECT FROM item) AS item
        """,
        user_id=user_id,
        channel_id=channel_id,
        item_id=item_id,
        type=type,
    )
    _require_both(result, type)


def _require_both(result: Row, type: str) -> None:  # noqa: A002 - the API's name
    if not result["channel"]:
        raise not_found("channel")
    if not result["item"]:
        raise not_found(ITEMS[type])


def find_item(user_id: int, *, host: str | None, alias: str | None, code: str | None) -> Row | None:
    """Return the type and the id of the user's QR code, or else of the link or bio page on a host,
    or None. The host None is that of this service."""
    return row(
        """
        SELECT 'qr' AS type, id FROM qrs WHERE user_id = %(user_id)s AND code = %(code)s
         UNION ALL
        SELECT CASE WHEN a.link_id IS NULL THEN 'bio' ELSE 'links' END, coalesce(l.id, b.id)
          FROM alias_at(%(host)s, %(alias)s) a
          LEFT JOIN links l ON l.user_id = %(user_id)s AND l.id = a.link_id
          LEFT JOIN bios b ON b.user_id = %(user_id)s AND b.id = a.bio_id
         WHERE coalesce(l.id, b.id) IS NOT NULL
         LIMIT 1
        """,
        user_id=user_id,
        host=host,
        alias=alias,
        code=code,
    )
