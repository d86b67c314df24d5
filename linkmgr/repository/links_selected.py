"""Links of the console's list: those that match filters, and changes of those that were selected."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, rows
from linkmgr.errors import AppError
from linkmgr.repository import bulk_changes
from linkmgr.settings import settings


def matching(
    user_id: int,
    *,
    q: str | None,
    domain: int | None,
    campaign: int | None,
    channel: int | None,
    public: bool | None,
    expired: bool | None,
    password: bool | None,
    by_clicks: bool,
    **paging: Unpack[Paging],
) -> Page:
    """List the links that match all filters that are not None, by clicks or newest first. The domain 0 is our own host.

    This reads all links of the user, or all of a domain, a campaign or a channel.
    """
    return page(
        """
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, clicks
          FROM link_records
         WHERE user_id = %(user_id)s
           AND id = ANY (ARRAY(
               SELECT id
                 FROM matches
                 LEFT JOIN totals ON tracked_id = id
                WHERE id < %(after)s
                ORDER BY CASE WHEN %(by_clicks)s::boolean THEN coalesce(clicks, 0) END DESC, id DESC
                LIMIT %(limit)s OFFSET %(offset)s))
         ORDER BY CASE WHEN %(by_clicks)s::boolean THEN clicks END DESC, id DESC
        """,
        "SELECT count(*) FROM matches",
        matches="""
        SELECT id
          FROM links l
         WHERE user_id = %(user_id)s
           AND (%(q)s::text IS NULL OR position(lower(%(q)s) IN search_text(url, alias, title)) > 0)
           AND (%(domain)s::bigint IS NULL OR coalesce(domain_id, 0) = %(domain)s)
           AND (%(campaign)s::bigint IS NULL OR campaign_id = %(campaign)s)
           AND (%(channel)s::bigint IS NULL OR l.id IN (
                SELECT link_id FROM channel_items WHERE user_id = %(user_id)s AND channel_id = %(channel)s))
           AND (%(public)s::boolean IS NULL OR public = %(public)s)
           AND (%(expired)s::boolean IS NULL OR coalesce(expires <= now(), false) = %(expired)s)
           AND (%(password)s::boolean IS NULL OR (password_hash IS NOT NULL) = %(password)s)
        """,
        user_id=user_id,
        q=q,
        domain=domain,
        campaign=campaign,
        channel=channel,
        public=public,
        expired=expired,
        password=password,
        by_clicks=by_clicks,
        base=settings().base_url,
        **paging,
    )


def read(user_id: int, ids: list[int]) -> list[Row]:
    """Return the links with the names of what they belong to, newest first."""
    return rows(
        """
        SELECT coalesce(host, %(base)s) || '/' || r.alias AS shorturl, longurl, r.title, r.description,
               coalesce((SELECT name FROM campaigns c WHERE c.id = campaign), '') AS campaign,
               array_to_string(ARRAY(SELECT name FROM channels WHERE id = ANY (channel) ORDER BY id), ', ') AS channels,
               CASE WHEN public THEN 'public' ELSE 'private' END AS status, expires AS expiry,
               password_hash IS NOT NULL AS password, clicks, uniqueclicks, date
          FROM link_records r
          JOIN links l USING (user_id, id)
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
         ORDER BY id DESC
        """,
        user_id=user_id,
        ids=ids,
        base=settings().base_url,
    )


def delete(user_id: int, ids: list[int]) -> int:
    """Delete links and return their number."""
    return _number(bulk_changes.delete_links(user_id, ids, atomic=False))


def set_campaign(user_id: int, ids: list[int], campaign: int) -> int:
    """Move links to a campaign, or with 0 out of their campaigns, and return their number."""
    return _number(bulk_changes.update_links(user_id, ids, atomic=False, changed=False, campaign=campaign))


def add_to_channel(user_id: int, ids: list[int], channel: int) -> int:
    """Add links to a channel and return their number. Links that are in it stay there."""
    return _number(bulk_changes.update_links(user_id, ids, atomic=False, changed=False, channel=[channel]))


def _number(results: list[Row]) -> int:
    """Return the number of links that were changed. Raise an error that is not that a link does not exist."""
    for result in results:
        if result.get("code", "missing") != "missing":
            raise AppError(result["code"])
    return sum("id" in result for result in results)
