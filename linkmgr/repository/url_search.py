"""Lists of links that contain a text, and lists by clicks."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, page, run_unsynced
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


def search_by_clicks(user_id: int, q: str, **paging: Unpack[Paging]) -> Page:
    """List the links that contain `q` by clicks, without a cursor."""
    return _without_cursor(
        page(
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
    )


def by_clicks(user_id: int, **paging: Unpack[Paging]) -> Page:
    """List the links by clicks, without a cursor. This reads all links of the user."""
    return _without_cursor(
        page(
            """
            SELECT id, alias, coalesce(host, %(base)s) || '/' || alias AS shorturl, longurl, title, description,
                   clicks, uniqueclicks, coalesce(host, %(base)s) AS domain, campaign, channel, date
              FROM link_records
             WHERE user_id = %(user_id)s AND id < %(after)s
             ORDER BY clicks DESC, id DESC
             LIMIT %(limit)s OFFSET %(offset)s
            """,
            "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'links'",
            user_id=user_id,
            base=settings().base_url,
            **paging,
        )
    )


def _without_cursor(links: Page) -> Page:
    """Remove the cursor, because the clicks of a link change while a client reads the list."""
    return links._replace(next=None)


def empty_pending_list() -> None:
    """Move the entries of new links into the index, because each search reads the list of those that wait."""
    run_unsynced("SELECT gin_clean_pending_list(to_regclass('links_search'))")
