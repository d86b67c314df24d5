"""A subquery, which reads only an index, selects the ids, so that OFFSET skips no whole rows. Each
is then looked up (LATERAL, OFFSET 0), also by a plan that was made for empty tables."""

from typing import Any, Unpack

from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import Row, replica_row, rows, run_unsynced, timestamp
from linkmgr.core.errors import required
from linkmgr.core.fields.short_urls import parse_short_url, short_url
from linkmgr.core.fields.urls import ascii_text, is_own_host
from linkmgr.core.settings import settings

# The arguments of matching_links in schema.sql, besides the user
FILTERS = ("q", "domain", "campaign", "channel", "status", "expired", "password", "clicked", "health",
           "since", "until", "import", "source", "externalid", "ids", "target", "updated_since")  # fmt: skip
UNCHECKED: Row = {
    "state": "unchecked",
    "reason": "",
    "url": "",
    "title": "",
    "checked": None,
}  # by no check yet
LEAST_SEARCHED = 3  # characters that the index of the search finds
MAX_COMPARED = 20_000  # links by an order besides the newest first


def listed_rows(links: Page) -> Page:
    base_url = settings().base_url
    for link in links.rows:
        domain = link["domain"] = link["host"] or base_url
        link["shorturl"] = short_url(domain, link["alias"])
        link["health"] = to_health(link["health"]) if link["health"] else UNCHECKED
    return links


def to_health(columns: list[str]) -> Row:
    """Return the member of a link that a check has seen, from the columns of its row in
    `link_health`."""
    state, reason, url, title, checked = columns
    return {"state": state, "reason": reason, "url": url, "title": title, "checked": timestamp(checked)}


def number_of(user_id: int) -> int:
    counted = replica_row(
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND counted = 'links'",
        user_id=user_id,
    )
    return counted["total"] if counted else 0


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    links = page(
        """
        SELECT r.*
          FROM (SELECT id FROM links
                 WHERE user_id = %(user_id)s AND id < %(after)s
                 ORDER BY id DESC
                 LIMIT %(limit)s OFFSET %(offset)s) listed,
               LATERAL (SELECT * FROM link_records l WHERE l.id = listed.id OFFSET 0) r
         WHERE user_id = %(user_id)s
         ORDER BY r.id DESC
        """,
        counted="links",
        user_id=user_id,
        **paging,
    )
    return listed_rows(links)


def listed(
    user_id: int, filters: Row, *, order: str = "date", sort: str = "desc", **paging: Unpack[Paging]
) -> Page:
    """List the links that match all filters, by `date`, `updated` or `click`, imported ones too.
    All but a list without them, newest first, reads the index of the search or all links of the
    user. One that is not newest first has no cursor."""
    sent = {name for name in FILTERS if filters[name] is not None}
    is_newest_first = (order, sort) == ("date", "desc")
    if is_newest_first and not sent:
        return index(user_id, **paging)
    if is_newest_first and sent == {"q"}:
        return listed_rows(_found(user_id, filters["q"], **paging))
    cursor, direction = "id" if is_newest_first else None, -1 if sort == "asc" else 1
    return listed_rows(_filtered(user_id, filters, order=order, direction=direction, cursor=cursor, **paging))


def _search(q: str | None) -> Row:
    """Return what a search finds besides the text: its form in ASCII, and the link of a short
    URL."""
    short = parse_short_url(q.strip()) if q else None
    return {
        "ascii": ascii_text(q) if q and not q.isascii() else None,
        "short_host": short and short.host,
        "short_alias": short and short.alias,
    }


def _found(user_id: int, q: str, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT r.*
          FROM (SELECT id FROM matches, unnest(ids) AS id
                 WHERE id < %(after)s
                 ORDER BY id DESC
                 LIMIT %(limit)s OFFSET %(offset)s) listed,
               LATERAL (SELECT * FROM link_records l WHERE l.id = listed.id OFFSET 0) r
         WHERE user_id = %(user_id)s
         ORDER BY r.id DESC
        """,
        "SELECT total FROM matches",
        matches="""
        SELECT total, ids
          FROM search_links(%(user_id)s, %(q)s, %(ascii)s, %(short_host)s, %(short_alias)s)
        """,
        user_id=user_id,
        q=q,
        **_search(q),
        **paging,
    )


def _filtered(user_id: int, filters: Row, **params: Any) -> Page:
    return page(
        """
        SELECT r.*
          FROM unnest(ARRAY(
               SELECT id FROM matches
                WHERE id < %(after)s
                ORDER BY CASE %(order)s
                         WHEN 'click'
                           THEN coalesce((SELECT clicks FROM totals WHERE tracked_id = id), 0)
                                + coalesce((SELECT imported_clicks FROM links l
                                             WHERE l.id = matches.id), 0)
                         WHEN 'updated'
                           THEN (SELECT (1e6 * extract(epoch FROM updated))::bigint FROM links l
                                  WHERE l.id = matches.id)
                         END * %(direction)s::int DESC,
                         id * %(direction)s DESC
                LIMIT %(limit)s OFFSET %(offset)s)) WITH ORDINALITY AS listed (id, place),
               LATERAL (SELECT * FROM link_records l WHERE l.id = listed.id OFFSET 0) r
         WHERE user_id = %(user_id)s
         ORDER BY place
        """,
        "SELECT count(*) FROM matches",
        matches="""
        SELECT id
          FROM matching_links(%(user_id)s, %(q)s, %(ascii)s, %(short_host)s, %(short_alias)s,
                              %(domain)s, %(campaign)s, %(channel)s, %(status)s, %(expired)s,
                              %(password)s, %(clicked)s, %(health)s, %(since)s, %(until)s,
                              %(import)s, %(source)s, %(externalid)s, %(ids)s::bigint[],
                              %(target)s, %(updated_since)s)
        """,
        user_id=user_id,
        **filters,
        **_search(filters["q"]),
        **params,
    )


def domain_id(user_id: int, host: str) -> int:
    """Return the id of a domain for the filter. Our own host is 0."""
    if is_own_host(host):
        return 0
    domain = replica_row(
        "SELECT id FROM domains WHERE user_id = %(user_id)s AND host = %(host)s",
        user_id=user_id,
        host=host,
    )
    return int(required(domain, "domain_unknown")["id"])


def empty_pending_list() -> None:
    """Move the entries of new links into the index, because each search reads the list of those
    that wait."""
    run_unsynced("SELECT gin_clean_pending_list(to_regclass('links_search'))")


# --- lists of the console


def find(q: str, limit: int) -> list[Row]:
    """Return the newest links of all users, at most `limit`, in which a text is part of the URL,
    the alias or the title, and first the one that has this short URL."""
    links = rows(
        """
        SELECT r.*, username, blocked
          FROM (SELECT link_id AS id, 1 AS place FROM alias_at(%(short_host)s, %(short_alias)s)
                 UNION ALL
                SELECT id, 2
                  FROM find_links(%(q)s, %(ascii)s, %(limit)s) AS id
                 WHERE length(%(q)s) >= %(least)s
               ) matching,
               LATERAL (SELECT * FROM link_records l WHERE l.id = matching.id OFFSET 0) r
          JOIN users ON users.id = r.user_id
          JOIN links ON links.id = r.id
         ORDER BY place, r.id DESC
        """,
        q=q,
        **_search(q),
        limit=limit,
        least=LEAST_SEARCHED,
    )
    unique = [*{link["id"]: link for link in links}.values()]
    return listed_rows(Page(unique, len(unique), limit, 1, None)).rows


def matching(
    user_id: int, filters: Row, *, order: str | None = None, recent: str = "", **paging: Unpack[Paging]
) -> Page:
    """List the links that match all filters, newest first, or by another order of the console. An
    order compares the MAX_COMPARED newest links, and those with as many latest visits. The one by
    `recent` clicks counts those since this time, a full quarter of an hour."""
    if not order:
        return listed(user_id, filters, **paging)
    params = {"order": order, "recent": recent or None, "is_filtered": {*filters.values()} != {None}}
    return listed_rows(_ordered(user_id, filters, **params, **paging))


def _ordered(user_id: int, filters: Row, **params: Any) -> Page:
    """No index has these orders, so they compare a bounded number of links, whose totals are looked
    up one by one: a join would read the totals of all users."""
    return page(
        """
        SELECT r.*
          FROM unnest(ARRAY(
               SELECT id
                 FROM (SELECT id, NULL AS visited
                         FROM ((SELECT id FROM links
                                 WHERE user_id = %(user_id)s AND NOT %(is_filtered)s
                                 ORDER BY id DESC LIMIT %(most)s)
                                UNION ALL
                               (SELECT id FROM matches WHERE %(is_filtered)s ORDER BY id DESC
                                 LIMIT %(most)s)) newest
                        UNION ALL
                       SELECT id, visited
                         FROM (SELECT target AS id, max(at + last * interval '15 minutes') AS visited
                                 FROM (SELECT target, at,
                                              coalesce(quarter, array_upper(quarters, 1)) AS last
                                         FROM account_targets
                                        WHERE user_id = %(user_id)s AND NOT bot
                                        ORDER BY at DESC, last DESC
                                        LIMIT %(most)s) visits
                                GROUP BY target) recent
                        WHERE CASE WHEN %(is_filtered)s THEN id IN (SELECT id FROM matches)
                                   ELSE EXISTS (SELECT FROM links l
                                                 WHERE l.user_id = %(user_id)s AND l.id = recent.id
                                                OFFSET 0) END
                      ) compared
                GROUP BY id
                ORDER BY CASE %(order)s
                         WHEN 'click'
                           THEN coalesce((SELECT clicks FROM totals WHERE tracked_id = id), 0)
                             + coalesce((SELECT imported_clicks FROM links l
                                          WHERE l.id = compared.id), 0)
                         WHEN 'fewest'
                           THEN -coalesce((SELECT clicks FROM totals WHERE tracked_id = id), 0)
                             - coalesce((SELECT imported_clicks FROM links l
                                          WHERE l.id = compared.id), 0)
                         WHEN 'recent'
                           THEN (SELECT sum(CASE WHEN at >= %(recent)s::timestamptz THEN visits ELSE (
                                            SELECT sum(number)
                                              FROM unnest((quarters_of(quarter, quarters, visits))
                                                          [quarter_of(%(recent)s) :]) AS number) END)
                                   FROM account_targets
                                  WHERE target = compared.id AND NOT bot
                                    AND at > %(recent)s::timestamptz - interval '24 hours')
                         WHEN 'oldest'
                           THEN (SELECT -(1e6 * extract(epoch FROM created))::bigint FROM links l
                                              WHERE l.id = compared.id)
                         WHEN 'visitor' THEN (SELECT visitors FROM totals WHERE tracked_id = id)
                         WHEN 'created'
                           THEN (SELECT (1e6 * extract(epoch FROM created))::bigint FROM links l
                                               WHERE l.id = compared.id)
                         ELSE extract(epoch FROM max(visited))::bigint END DESC NULLS LAST, id DESC
                LIMIT %(limit)s OFFSET %(offset)s)) WITH ORDINALITY AS listed (id, place),
               LATERAL (SELECT * FROM link_records l WHERE l.id = listed.id OFFSET 0) r
         WHERE user_id = %(user_id)s
         ORDER BY place
        """,
        """
        CASE WHEN %(is_filtered)s THEN (SELECT count(*) FROM matches)
             ELSE (SELECT total FROM usage WHERE user_id = %(user_id)s AND counted = 'links') END
        """,
        matches="""
        SELECT id
          FROM matching_links(%(user_id)s, %(q)s, %(ascii)s, %(short_host)s, %(short_alias)s,
                              %(domain)s, %(campaign)s, %(channel)s, %(status)s, %(expired)s,
                              %(password)s, %(clicked)s, %(health)s, %(since)s, %(until)s,
                              %(import)s, %(source)s, %(externalid)s, %(ids)s::bigint[],
                              %(target)s, %(updated_since)s)
        """,
        user_id=user_id,
        most=MAX_COMPARED,
        **filters,
        **_search(filters["q"]),
        **params,
    )


def matched_ids(user_id: int, filters: Row, below: int, limit: int) -> list[int]:
    links = rows(
        """
        SELECT id
          FROM matching_links(%(user_id)s, %(q)s, %(ascii)s, %(short_host)s, %(short_alias)s,
                              %(domain)s, %(campaign)s, %(channel)s, %(status)s, %(expired)s,
                              %(password)s, %(clicked)s, %(health)s, %(since)s, %(until)s,
                              %(import)s, %(source)s, %(externalid)s, %(ids)s::bigint[],
                              %(target)s, %(updated_since)s)
         WHERE id < %(below)s
         ORDER BY id DESC
         LIMIT %(limit)s
        """,
        user_id=user_id,
        below=below,
        limit=limit,
        **filters,
        **_search(filters["q"]),
    )
    return [link["id"] for link in links]
