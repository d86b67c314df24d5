"""Links of a URL alone: a user has at most one of each URL, apart from those of API keys that may not see it."""

from linkmgr.db.statements import Row, run
from linkmgr.settings import settings


def add(user_id: int, alias: str, url: str, hosts: list[str]) -> Row | None:
    """Store a link without other members than its URL, or return None if there is one or the host is branded.

    One INSERT without common table expressions takes PostgreSQL a tenth less time.
    """
    return run(
        """
        INSERT INTO links (user_id, alias, url, plain)
        SELECT %(user_id)s, %(alias)s, %(url)s, true
         WHERE NOT EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[]))
        ON CONFLICT (user_id, md5(url)) WHERE plain DO NOTHING
        RETURNING id, %(base)s::text || '/' || alias AS shorturl, NULL AS refusal, true AS is_new
        """,
        user_id=user_id,
        alias=alias,
        url=url,
        hosts=hosts,
        base=settings().base_url,
    )


def find(user_id: int, url: str, hosts: list[str]) -> Row | None:
    """Return the link that `add` did not store again, with None as `id` if the API key may not see it."""
    return run(
        """
        SELECT l.id, %(base)s::text || '/' || l.alias AS shorturl, refusal, false AS is_new
          FROM (SELECT CASE WHEN EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[]))
                            THEN 'link_branded' END AS refusal) checked
          LEFT JOIN public.links p ON p.user_id = %(user_id)s AND md5(p.url) = md5(%(url)s) AND p.plain
          LEFT JOIN links l ON l.user_id = %(user_id)s AND l.id = p.id
         WHERE refusal IS NOT NULL OR p.id IS NOT NULL
        """,
        user_id=user_id,
        url=url,
        hosts=hosts,
        base=settings().base_url,
    )


def add_own(user_id: int, alias: str, url: str, hosts: list[str]) -> Row | None:
    """Store a link of an API key without other members than its URL, or return the existing one of this key."""
    link = run(
        """
        WITH existing AS (
            SELECT * FROM own_plain_link(%(user_id)s, %(url)s)),
        added AS (
            INSERT INTO links (user_id, alias, url)
            SELECT %(user_id)s, %(alias)s, %(url)s
             WHERE NOT EXISTS (SELECT FROM existing)
               AND NOT EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[]))
            RETURNING id, alias)
        SELECT id, %(base)s::text || '/' || alias AS shorturl, NULL AS refusal, alias = %(alias)s AS is_new
          FROM (TABLE existing UNION ALL TABLE added) links
        """,
        user_id=user_id,
        alias=alias,
        url=url,
        hosts=hosts,
        base=settings().base_url,
    )
    return link or {"refusal": "link_branded"}
