"""Links as clients see them: lists, single ones with their statistics, and every member of a body as it is sent."""

from typing import Any, Unpack

from linkmgr.db.statements import Page, Paging, Row, page, replica_row, row, rows, run_unsynced
from linkmgr.errors import existing
from linkmgr.fields.short_urls import ShortUrl
from linkmgr.repository import visits
from linkmgr.repository.tables import BATCH
from linkmgr.settings import settings

MAX_COMPARED = 20_000  # links by an order besides the newest first
_TOTAL = "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'links'"
_COUNT = "SELECT count(*) FROM matches"
_UNRELATED: Row = {"domain": None, "campaign": None, "pixels": [], "channel": []}


# The members of a record that are columns of the table, whose alias is `l`
COLUMNS = """
    l.version::text, l.id, alias, url AS longurl, title, description, locations AS location, devices AS device,
    expires AS expiry, l.created AS date, imported_clicks, url, CASE WHEN custom THEN alias ELSE '' END AS custom,
    password_hash IS NOT NULL AS haspassword, type, languages, parameters, metatitle, metadescription,
    metaimage, deeplink, CASE WHEN public THEN 'public' ELSE 'private' END AS status
"""


def _related(columns: str) -> str:
    """Return the column `related`: the rows that a link refers to. It is NULL for the many links without any in the
    columns, and in no channel."""
    return f"""
        CASE WHEN num_nonnulls({columns}) > 0
               OR EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id AND i.link_id = l.id)
             THEN link_references(l.user_id, l.id) END AS related
    """


def details_of(links: str) -> str:
    """Return the SELECT of links as a single read shows them. `links` is the table, or rows with the same columns."""
    return f"""
        SELECT {COLUMNS}, t.clicks, t.visitors, t.top_labels,
               {_related("domain_id, campaign_id, splash_id, overlay_id, pixel_ids")}
          FROM {links} l
          LEFT JOIN totals t ON t.tracked_id = l.id
    """  # noqa: S608 - static SQL


_BY_ID = details_of("links") + "WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s"
# `public.domains`, because a restricted key may not use the domain of its link.
_BY_SHORT_URL = f"""
    {details_of("links")}
     WHERE l.user_id = %(user_id)s
       AND l.id = (SELECT link_id FROM aliases
                    WHERE alias = %(alias)s
                      AND domain_id = CASE WHEN %(host)s::text IS NULL THEN 0
                                           ELSE (SELECT id FROM public.domains
                                                  WHERE host = %(host)s
                                                    AND scheme = coalesce(%(scheme)s::text, scheme)) END)
"""  # noqa: S608 - static SQL


def read(user_id: int, link_id: int) -> Row:
    """Return the link and its `statistics`."""
    return to_record(existing(replica_row(_BY_ID, user_id=user_id, link_id=link_id), "link"))


def read_current(user_id: int, link_id: int) -> Row:
    """Return the link as the last write left it, which a replica may not have yet."""
    return to_record(existing(row(_BY_ID, user_id=user_id, link_id=link_id), "link"))


def read_named(user_id: int, link_id: int) -> Row:
    """Return the link as read_current does. Its campaign and channels are objects of `id` and `name`."""
    statement = f"""
        SELECT link.*,
               (SELECT json_build_object('id', id, 'name', name) FROM campaigns
                 WHERE user_id = %(user_id)s AND id = (related ->> 'campaign')::bigint) AS campaign,
               (SELECT json_agg(json_build_object('id', id, 'name', name, 'color', color) ORDER BY id) FROM channels
                 WHERE user_id = %(user_id)s
                   AND id IN (SELECT value::bigint FROM json_array_elements_text(related -> 'channel'))) AS channel
          FROM ({_BY_ID}) link
    """  # noqa: S608 - static SQL
    link = existing(row(statement, user_id=user_id, link_id=link_id), "link")
    names = {name: link.pop(name) for name in ("campaign", "channel")}
    return to_record(link) | names


def find_by_short_url(user_id: int, short: ShortUrl) -> Row | None:
    """Return the user's link with this short URL as `read` does, or None."""
    link = replica_row(_BY_SHORT_URL, user_id=user_id, alias=short.alias, host=short.host, scheme=short.scheme)
    return link and to_record(link)


def to_record(link: Row) -> Row:
    """Return the record of a row of `details_of`."""
    statistics = visits.statistics({name: link.pop(name) for name in visits.TOTALS})
    related = link.pop("related") or _UNRELATED
    return _with_members(link | related | {"statistics": statistics})


def _with_members(link: Row) -> Row:
    domain = link["domain"] or settings().base_url
    link |= {
        "shorturl": f"{domain}/{link['alias']}",
        "domain": domain,
        "geotarget": _targets("location", link["location"]),
        "devicetarget": _targets("device", link["device"]),
        "languagetarget": _targets("language", link.pop("languages")),
        "parameters": [{"name": name, "value": value} for name, value in link["parameters"]],
    }
    return link


def batch(user_id: int, after: int) -> list[Row]:
    """Return the next links behind an id, oldest first: the members of a record, the names of their channels, and what
    only the export of an account contains. A batch joins the domains, so that a link with only a domain has no
    `related`."""
    links = rows(
        f"""
        SELECT {COLUMNS}, d.domain, coalesce(clicks, 0) AS clicks,
               coalesce(visitors, 0) AS uniqueclicks, password_hash, plain AND l.key_id IS NULL AS plain,
               ARRAY(SELECT name FROM channel_items i JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                      WHERE i.user_id = l.user_id AND i.link_id = l.id
                      ORDER BY channel_id) AS channels,
               {_related("campaign_id, splash_id, overlay_id, pixel_ids")}
          FROM links l
          LEFT JOIN domains d ON d.id = l.domain_id
          LEFT JOIN totals t ON t.tracked_id = l.id
         WHERE l.user_id = %(user_id)s AND l.id > %(after)s
         ORDER BY l.id
         LIMIT %(limit)s
        """,  # noqa: S608 - static SQL
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    for link in links:
        link.update(link.pop("related") or _UNRELATED | {"domain": link["domain"]})
    return [_with_members(link) for link in links]


def _targets(selector: str, urls: dict[str, str]) -> list[dict[str, Any]]:
    return [{selector: label, "link": url} for label, url in urls.items()]


def _list_of(ids: str, order: str = "id DESC") -> str:
    """Return the SELECT of a list of the links that the query `ids` selects."""
    return f"""
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
               clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
          FROM link_records
         WHERE user_id = %(user_id)s AND id = ANY (ARRAY({ids}))
         ORDER BY {order}
    """  # noqa: S608 - static SQL


# A subquery, which reads only an index, selects the ids, so that OFFSET skips no whole rows.
_INDEX = _list_of("""
    SELECT id FROM links WHERE user_id = %(user_id)s AND id < %(after)s
     ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s
""")
_FOUND = _list_of("""
    SELECT id FROM matches, unnest(ids) AS id WHERE id < %(after)s
     ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s
""")
_FOUND_BY_CLICKS = _list_of(
    """
    SELECT id FROM matches, unnest(ids) AS id LEFT JOIN totals ON tracked_id = id WHERE id < %(after)s
     ORDER BY coalesce(clicks, 0) DESC, id DESC LIMIT %(limit)s OFFSET %(offset)s
    """,
    "clicks DESC, id DESC",
)


def number_of(user_id: int) -> int:
    """Return the number of links of a user."""
    counted = replica_row(_TOTAL, user_id=user_id)
    return counted["total"] if counted else 0


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    """List links, newest first."""
    return page(_INDEX, _TOTAL, user_id=user_id, base=settings().base_url, **paging)


def search(user_id: int, q: str, *, by_clicks: bool = False, **paging: Unpack[Paging]) -> Page:
    """List the links that contain `q`, newest first or by clicks. An empty `q` reads all links of the user.

    A list by clicks has no cursor, because clicks change while a client reads it.
    """
    links = page(
        _FOUND_BY_CLICKS if by_clicks else _FOUND,
        "SELECT total FROM matches",
        matches="SELECT total, ids FROM search_links(%(user_id)s, %(q)s)",
        user_id=user_id,
        q=q,
        base=settings().base_url,
        **paging,
    )
    return links._replace(next=None) if by_clicks else links


def empty_pending_list() -> None:
    """Move the entries of new links into the index, because each search reads the list of those that wait."""
    run_unsynced("SELECT gin_clean_pending_list(to_regclass('links_search'))")


# The links that the console lists: those that match all filters that are not None. The domain 0 is our own host.
_MATCHES = """
    SELECT id
      FROM links l
     WHERE user_id = %(user_id)s
       AND (%(q)s::text IS NULL OR position(lower(%(q)s) IN search_text(url, alias, title)) > 0)
       AND (%(domain)s::bigint IS NULL OR coalesce(domain_id, 0) = %(domain)s::bigint)
       AND (%(campaign)s::bigint IS NULL OR campaign_id = %(campaign)s::bigint)
       AND (%(channel)s::bigint IS NULL OR l.id IN (
            SELECT link_id FROM channel_items WHERE user_id = %(user_id)s AND channel_id = %(channel)s::bigint))
       AND (%(status)s::text IS NULL OR public = (%(status)s = 'public'))
       AND (%(expired)s::text IS NULL OR coalesce(expires <= now(), false) = (%(expired)s = 'yes'))
       AND (%(password)s::text IS NULL OR (password_hash IS NOT NULL) = (%(password)s = 'yes'))
"""
_MATCHING = _list_of("SELECT id FROM matches WHERE id < %(after)s ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s")


def _ordered(links: str, is_listed: str) -> str:
    """Return the SELECT of a list in an order besides the newest first. `links` is the query of all that are listed,
    and `is_listed` the condition that one with recent visits is among them.

    No index has these orders, so they compare a bounded number of links, whose totals are looked up one by one: a join
    would read the totals of all users.
    """
    return f"""
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, clicks, uniqueclicks,
               date
          FROM unnest(ARRAY(
               SELECT id
                 FROM (SELECT id, NULL AS visited FROM ({links} ORDER BY id DESC LIMIT %(most)s) newest
                        UNION ALL
                       SELECT id, visited
                         FROM (SELECT label::bigint AS id, max(at) AS visited
                                 FROM (SELECT label, at
                                         FROM account_rollups
                                        WHERE user_id = %(user_id)s AND dimension = 'target' AND unit = 'quarter'
                                          AND NOT bot
                                        ORDER BY at DESC
                                        LIMIT %(most)s) visits
                                GROUP BY label) recent
                        WHERE {is_listed}) compared
                GROUP BY id
                ORDER BY CASE %(order)s
                         WHEN 'click' THEN (SELECT clicks FROM totals WHERE tracked_id = id)
                         WHEN 'visitor' THEN (SELECT visitors FROM totals WHERE tracked_id = id)
                         WHEN 'created' THEN (SELECT extract(epoch FROM created)::bigint FROM links l
                                               WHERE l.id = compared.id)
                         ELSE extract(epoch FROM max(visited))::bigint END DESC NULLS LAST, id DESC
                LIMIT %(limit)s OFFSET %(offset)s)) WITH ORDINALITY AS listed (id, place)
          JOIN link_records USING (id)
         WHERE user_id = %(user_id)s
         ORDER BY place
    """  # noqa: S608 - static SQL


_ALL_ORDERED = _ordered(
    "SELECT id FROM links WHERE user_id = %(user_id)s",
    "EXISTS (SELECT FROM links l WHERE l.user_id = %(user_id)s AND l.id = recent.id OFFSET 0)",
)
_MATCHES_ORDERED = _ordered("SELECT id FROM matches", "id IN (SELECT id FROM matches)")


def matching(user_id: int, filters: Row, *, order: str | None = None, **paging: Unpack[Paging]) -> Page:
    """List the links that match all filters, newest first, or by `click`, `visitor`, `visit` or `created`. Filters read
    all links of the user. An order compares the MAX_COMPARED newest links, and those with as many latest visits."""
    is_filtered = any(value is not None for value in filters.values())
    if not is_filtered and not order:
        return index(user_id, **paging)
    shared: Any = {"user_id": user_id, "base": settings().base_url, **paging}
    if is_filtered:
        shared |= {"matches": _MATCHES, **filters}
    if order:
        shared |= {"order": order, "most": MAX_COMPARED}
        return page(_MATCHES_ORDERED if is_filtered else _ALL_ORDERED, _COUNT if is_filtered else _TOTAL, **shared)
    return page(_MATCHING, _COUNT, **shared)


def matched_ids(user_id: int, filters: Row, below: int, limit: int) -> list[int]:
    """Return the ids of the newest links with ids below a number that match all filters."""
    statement = f"{_MATCHES} AND id < %(below)s ORDER BY id DESC LIMIT %(limit)s"
    return [link["id"] for link in rows(statement, user_id=user_id, below=below, limit=limit, **filters)]
