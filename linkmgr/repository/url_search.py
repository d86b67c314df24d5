"""Lists of links that contain a text, and lists by clicks."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, page
from linkmgr.settings import settings


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


def by_clicks(user_id: int, q: str | None, **paging: Unpack[Paging]) -> Page:
    """List the links, or those that contain `q`, by clicks. This reads all links of the user. There is no cursor,
    because the clicks of a link change while a client reads the list."""
    links = page(
        """
        SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
               clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
          FROM link_records
         WHERE user_id = %(user_id)s AND id < %(after)s
           AND (%(q)s::text IS NULL OR position(lower(%(q)s) IN lower(concat_ws(chr(10), longurl, alias, title))) > 0)
         ORDER BY clicks DESC, id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        CASE WHEN %(q)s::text IS NULL THEN (SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'links')
             ELSE (SELECT count(*) FROM links
                    WHERE user_id = %(user_id)s
                      AND position(lower(%(q)s) IN lower(concat_ws(chr(10), url, alias, title))) > 0) END
        """,
        user_id=user_id,
        q=q,
        base=settings().base_url,
        **paging,
    )
    return links._replace(next=None)
