"""Links as clients see them: lists, single ones with their statistics, and every member of a body as it is sent."""

from collections.abc import Callable
from typing import Any, Unpack

from linkmgr.db.statements import Page, Paging, Row, page, replica_row, row, rows, run_unsynced
from linkmgr.errors import existing
from linkmgr.fields.short_urls import ShortUrl
from linkmgr.repository import visits
from linkmgr.settings import settings

# `related` is None for the many links that refer to no other rows.
_LINK = """
    SELECT l.version::text, l.id, alias, url AS longurl, title, description, locations AS location,
           devices AS device, expires AS expiry, created AS date, imported_clicks, url,
           t.clicks, t.visitors, t.counted, t.top_labels,
           CASE WHEN custom THEN alias ELSE '' END AS custom, password_hash IS NOT NULL AS haspassword, type,
           languages, parameters, title AS metatitle, metadescription, metaimage, deeplink,
           CASE WHEN public THEN 'public' ELSE 'private' END AS status,
           CASE WHEN num_nonnulls(domain_id, campaign_id, splash_id, overlay_id, pixel_ids) > 0
                  OR EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id AND i.link_id = l.id)
                THEN link_references(l.user_id, l.id) END AS related
      FROM links l
      LEFT JOIN totals t ON t.tracked_id = l.id
     WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s
"""
_UNRELATED: Row = {"domain": None, "campaign": None, "pixels": [], "channel": []}


def read(user_id: int, link_id: int) -> Row:
    """Return the link. Its statistics are the member `data`."""
    return _read(replica_row, user_id, link_id)


def read_current(user_id: int, link_id: int) -> Row:
    """Return the link as the last write left it, which a replica may not have yet."""
    return _read(row, user_id, link_id)


def _read(fetch: Callable[..., Row | None], user_id: int, link_id: int) -> Row:
    link = fetch(_LINK, user_id=user_id, link_id=link_id)
    link = existing(link, "link")
    data = visits.statistics(fetch, link_id, {name: link.pop(name) for name in visits.TOTALS})
    related = link.pop("related") or _UNRELATED
    return _with_members(link | related | {"data": data})


def _with_members(link: Row) -> Row:
    domain = link["domain"] or settings().base_url
    return link | {
        "shorturl": f"{domain}/{link['alias']}",
        "domain": domain,
        "geotarget": targets("location", link["location"]),
        "devicetarget": targets("device", link["device"]),
        "languagetarget": targets("language", link.pop("languages")),
        "parameters": [{"name": name, "value": value} for name, value in link["parameters"]],
    }


def targets(selector: str, urls: dict[str, str]) -> list[dict[str, Any]]:
    return [{selector: label, "link": url} for label, url in urls.items()]


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    """List links, newest first. An index-only subquery selects the ids, so that OFFSET skips no whole rows."""
    return page(
        """
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
               clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
          FROM link_records
         WHERE user_id = %(user_id)s
           AND id = ANY (ARRAY(SELECT id FROM links WHERE user_id = %(user_id)s AND id < %(after)s
                                ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s))
         ORDER BY id DESC
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'links'",
        user_id=user_id,
        base=settings().base_url,
        **paging,
    )


def find_by_short_url(user_id: int, short: ShortUrl) -> Row | None:
    """Return the user's link with this short URL as lists have it, or None.

    `public.domains`, because a restricted key may not use the domain of its link.
    """
    return replica_row(
        """
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
               clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
          FROM link_records
         WHERE user_id = %(user_id)s
           AND id = (SELECT link_id FROM aliases
                      WHERE alias = %(alias)s
                        AND domain_id = CASE WHEN %(host)s::text IS NULL THEN 0
                                             ELSE (SELECT id FROM public.domains
                                                    WHERE host = %(host)s
                                                      AND scheme = coalesce(%(scheme)s::text, scheme)) END)
        """,
        user_id=user_id,
        alias=short.alias,
        host=short.host,
        scheme=short.scheme,
        base=settings().base_url,
    )


def search(user_id: int, q: str, **paging: Unpack[Paging]) -> Page:
    """List the links that contain `q`, newest first."""
    return page(
        """
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
               clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
          FROM link_records
         WHERE user_id = %(user_id)s
           AND id = ANY (ARRAY(SELECT id FROM matches, unnest(ids) AS id WHERE id < %(after)s
                                ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s))
         ORDER BY id DESC
        """,
        "SELECT total FROM matches",
        matches="SELECT total, ids FROM search_links(%(user_id)s, %(q)s)",
        user_id=user_id,
        q=q,
        base=settings().base_url,
        **paging,
    )


def search_by_clicks(user_id: int, q: str, **paging: Unpack[Paging]) -> Page:
    """List the links that contain `q` by clicks, without a cursor, because clicks change while a client reads the list.
    An empty `q` reads all links of the user."""
    links = page(
        """
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
               clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
          FROM link_records
         WHERE user_id = %(user_id)s
           AND id = ANY (ARRAY(SELECT id FROM matches, unnest(ids) AS id LEFT JOIN totals ON tracked_id = id
                                WHERE id < %(after)s
                                ORDER BY coalesce(clicks, 0) DESC, id DESC LIMIT %(limit)s OFFSET %(offset)s))
         ORDER BY clicks DESC, id DESC
        """,
        "SELECT total FROM matches",
        matches="SELECT total, ids FROM search_links(%(user_id)s, %(q)s)",
        user_id=user_id,
        q=q,
        base=settings().base_url,
        **paging,
    )
    return links._replace(next=None)


def empty_pending_list() -> None:
    """Move the entries of new links into the index, because each search reads the list of those that wait."""
    run_unsynced("SELECT gin_clean_pending_list(to_regclass('links_search'))")


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


def selected(user_id: int, ids: list[int]) -> list[Row]:
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
