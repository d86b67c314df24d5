"""The bin: deleted links, which can be restored for DAYS.

Links move between two tables. The triggers of both leave the alias and the visits of a link that
the other one has.
"""

from typing import Unpack

from psycopg2.errors import UniqueViolation

from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import Row, rows, run, run_one, undoable
from linkmgr.core.database.transaction import in_transaction
from linkmgr.core.errors import not_found
from linkmgr.repository.link_lists import listed_rows

DAYS = 30
_MAX_DELETED = 1000  # by a statement: more than it puts into the bin


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    """List the links in the bin, the last deleted first."""
    links = page(
        """
        SELECT b.id, b.alias, d.domain AS host, b.url AS longurl, b.title, b.description,
               coalesce(t.clicks, 0) AS clicks, coalesce(t.visitors, 0) AS uniqueclicks,
               b.imported_clicks,
               b.campaign AS campaign, b.channel_ids AS channel, b.created AS date, b.updated,
               b.binned, health
          FROM binned_links b
          LEFT JOIN domains d ON d.id = b.domain_id
          LEFT JOIN totals t ON t.tracked_id = b.id
          LEFT JOIN link_health h ON h.link_id = b.id
         WHERE b.user_id = %(user_id)s
           AND b.id = ANY (ARRAY(SELECT id FROM binned_links
                                  WHERE user_id = %(user_id)s AND id < %(after)s
                                  ORDER BY binned DESC, id DESC
                                  LIMIT %(limit)s OFFSET %(offset)s))
         ORDER BY binned DESC, b.id DESC
        """,
        counted="binned_links",
        cursor=None,
        user_id=user_id,
        **paging,
    )
    return listed_rows(links)


def newest(user_id: int, limit: int) -> list[int]:
    links = rows(
        "SELECT id FROM binned_links WHERE user_id = %(user_id)s ORDER BY binned DESC, id DESC "
        "LIMIT %(limit)s",
        user_id=user_id,
        limit=limit,
    )
    return [link["id"] for link in links]


def put(user_id: int, link_id: int) -> None:
    if not put_all(user_id, [link_id])["deleted"]:
        raise not_found("link")


def put_all(user_id: int, ids: list[int], *, atomic: bool = False) -> Row:
    """Delete links and keep them in the bin. Return the ids of those that were `existing`, and of
    those that were `deleted`. With `atomic`, delete all or none."""
    links = run_one(
        """
        WITH locked AS MATERIALIZED (
            SELECT id FROM links
             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
             ORDER BY id
               FOR UPDATE),
        deleted AS (
            DELETE FROM links
             WHERE user_id = %(user_id)s AND id = ANY (ARRAY(SELECT id FROM locked))
               AND NOT (%(atomic)s::boolean
                        AND (SELECT count(*) FROM locked) < cardinality(%(ids)s::bigint[]))
            RETURNING *),
        binned AS (
            INSERT INTO binned_links
            SELECT b.*
              FROM deleted d,
                   jsonb_populate_record(NULL::binned_links, to_jsonb(d) || jsonb_build_object(
                       'binned', now(),
                       'channel_ids', ARRAY(SELECT channel_id FROM channel_items i
                                             WHERE i.user_id = d.user_id AND i.link_id = d.id))) b
            RETURNING id)
        SELECT ARRAY(SELECT id FROM locked) AS existing, ARRAY(SELECT id FROM binned) AS deleted
        """,
        user_id=user_id,
        ids=ids,
        atomic=atomic,
    )
    _delete_oldest(user_id)
    return links


def _delete_oldest(user_id: int) -> None:
    """Keep as many links in the bin as the plan allows outside of it, also those that a restricted
    key does not see."""
    run(
        """
        DELETE FROM public.binned_links
         WHERE user_id = %(user_id)s
           AND id = ANY (ARRAY(
               SELECT id FROM public.binned_links
                WHERE user_id = %(user_id)s
                ORDER BY binned, id
                LIMIT coalesce((SELECT least(greatest(total - (limits ->> 'links')::bigint, 0),
                                             %(most)s)
                                  FROM accounts
                                  JOIN public.usage ON user_id = accounts.id
                                   AND counted = 'binned_links'
                                 WHERE accounts.id = %(user_id)s AND NOT admin
                                   AND limits ->> 'links' <> '0'), 0)
                  FOR UPDATE SKIP LOCKED))
        RETURNING id
        """,
        user_id=user_id,
        most=_MAX_DELETED,
    )


def restore(user_id: int, link_id: int) -> Row:
    links = restore_all(user_id, [link_id])
    if not links["ids"]:
        raise not_found("link")
    return links


def restore_all(user_id: int, ids: list[int]) -> Row:
    """Bring links back, without campaigns and other rows that were deleted meanwhile, and return
    the `ids` of those that were there, and the external ids that are `lost`. A new link of the same
    URL alone may have taken the place of one that was `url_only`, and another link its
    `externalid`."""
    with in_transaction():
        try:
            with undoable():
                restored = _restore(user_id, ids)
        except UniqueViolation as violation:
            if violation.diag.constraint_name != "externalid_taken":
                raise
            restored = _restore(user_id, ids)  # a link has got it since that statement began
        run(
            """
            SELECT note_past_expiry(user_id, id, expiry, NULL)
              FROM links
             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
            """,
            user_id=user_id,
            ids=restored["ids"],
        )
    return restored


def _restore(user_id: int, ids: list[int]) -> Row:
    """Subqueries look up single rows: a join could read the rows of all users."""
    return run_one(
        """
        WITH taken AS (
            DELETE FROM binned_links
             WHERE user_id = %(user_id)s
               AND id = ANY (ARRAY(SELECT id FROM binned_links
                                    WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
                                    ORDER BY id FOR UPDATE))
            RETURNING *),
        restored AS (
            INSERT INTO links
            SELECT l.*
              FROM taken b,
                   LATERAL (SELECT (SELECT id FROM campaigns c
                                     WHERE c.user_id = b.user_id AND c.id = b.campaign
                                       FOR KEY SHARE) AS campaign,
                                   (SELECT id FROM splash_pages s
                                     WHERE s.user_id = b.user_id AND s.id = b.splash_id
                                       FOR KEY SHARE) AS splash_id,
                                   (SELECT id FROM overlays o
                                     WHERE o.user_id = b.user_id AND o.id = b.overlay_id
                                       FOR KEY SHARE) AS overlay_id,
                                   ARRAY(SELECT id FROM pixels p
                                          WHERE p.user_id = b.user_id AND p.id = ANY (b.pixels)
                                            FOR KEY SHARE) AS pixels
                           ) kept,
                   jsonb_populate_record(NULL::public.links,
                                         to_jsonb(b) || to_jsonb(kept) || jsonb_build_object(
                       'version', random_version(), 'url_only', false, 'imported', NULL,
                       'type', CASE WHEN (b.splash_id, b.overlay_id)
                                         IS DISTINCT FROM (kept.splash_id, kept.overlay_id)
                                    THEN 'direct' ELSE b.type END,
                       'pixels', nullif(kept.pixels, '{}'),
                       'externalid', CASE WHEN b.externalid <> '' AND NOT EXISTS (
                                                   SELECT FROM public.links o
                                                    WHERE o.user_id = b.user_id
                                                      AND o.externalid = b.externalid)
                                               AND NOT EXISTS (
                                                   SELECT FROM taken o
                                                    WHERE o.externalid = b.externalid AND o.id > b.id)
                                          THEN b.externalid ELSE '' END)) l,
                   denied_feature(l, NULL, l.custom, lacking_features(l.user_id)) AS denied
             WHERE CASE WHEN l.blocked IS NULL AND has_blocked_target(l.user_id, targets_of(l))
                        THEN refuse('target_blocked') IS NULL
                        WHEN denied IS NOT NULL THEN refuse('plan_feature', denied) IS NULL
                        ELSE true END
            RETURNING id, externalid),
        channels_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT b.user_id, channel_id, b.id
              FROM taken b, unnest(b.channel_ids) AS channel_id
             WHERE (SELECT true FROM channels c WHERE c.user_id = b.user_id AND c.id = channel_id
                       FOR KEY SHARE))
        SELECT ARRAY(SELECT id FROM restored) AS ids,
               ARRAY(SELECT b.externalid FROM restored r JOIN taken b USING (id)
                      WHERE b.externalid <> r.externalid
                      ORDER BY id) AS lost
        """,
        user_id=user_id,
        ids=ids,
    )


def delete(user_id: int, ids: list[int]) -> int:
    return _number(
        """
        WITH deleted AS (
            DELETE FROM binned_links WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
         RETURNING id)
        SELECT count(*) AS number FROM deleted
        """,
        user_id,
        ids,
    )


def _number(statement: str, user_id: int, ids: list[int]) -> int:
    return int(run_one(statement, user_id=user_id, ids=ids)["number"])
