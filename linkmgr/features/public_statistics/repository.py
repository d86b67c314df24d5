"""Pages of statistics. The subject of a page is the link `link_id` or the campaign `campaign_id`,
and the other one is None. A page without a token is not public."""

from typing import Any

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, row, rows, run
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import existing
from linkmgr.core.settings import settings
from linkmgr.visits.blocked import blocked

MANY = 100  # links of a campaign, whose figures take long


def _record(page: Row | None, campaign_id: int | None) -> Row:
    stored = existing(page, "campaign" if campaign_id else "link")
    url = f"{settings().base_url}/statistics/{stored['token']}" if stored["token"] else ""
    return stored | {"public": bool(url), "url": url}


def read(user_id: int, *, link_id: int | None = None, campaign_id: int | None = None) -> Row:
    """Return the page of a subject, with the `title` and the `target` that name this."""
    page = row(
        """
        SELECT token, password_hash IS NOT NULL AS haspassword, coalesce(period, '28d') AS period,
               coalesce(tables, '{country,referrer,device}') AS tables, title, target
          FROM (SELECT id AS link_id, NULL::bigint AS campaign_id, link_title(id, title) AS title,
                       url AS target
                  FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s
                 UNION ALL
                SELECT NULL, id, name, NULL
                  FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s) subject
          LEFT JOIN public_statistics p
            ON p.user_id = %(user_id)s
           AND (p.link_id = subject.link_id OR p.campaign_id = subject.campaign_id)
        """,
        user_id=user_id,
        link_id=link_id,
        campaign_id=campaign_id,
    )
    return _record(page, campaign_id)


def batch(user_id: int, after: int) -> list[Row]:
    """Return pages of links and campaigns in the order of their ids, behind one of these."""
    return rows(
        """
        SELECT coalesce(link_id, campaign_id) AS id, link_id AS link, campaign_id AS campaign,
               token IS NOT NULL AS public, token, password_hash, period, tables
          FROM ((SELECT * FROM public_statistics
                  WHERE user_id = %(user_id)s AND link_id > %(after)s
                  ORDER BY link_id LIMIT %(limit)s)
                 UNION ALL
                (SELECT * FROM public_statistics
                  WHERE user_id = %(user_id)s AND campaign_id > %(after)s
                  ORDER BY campaign_id LIMIT %(limit)s)) pages
         ORDER BY id
         FETCH FIRST %(limit)s ROWS WITH TIES
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )


def change(user_id: int, *, link_id: int | None = None, campaign_id: int | None = None, **sent: Any) -> Row:
    """Change what is not None, which is an event. `password` is a hash, or empty for none. A page
    that becomes public gets the `token`, or a new one."""
    page = run(
        """
        WITH subject AS MATERIALIZED (
            SELECT (SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s
                       FOR KEY SHARE) AS link_id,
                   (SELECT id FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s
                       FOR KEY SHARE) AS campaign_id),
        before AS MATERIALIZED (
            SELECT link_id, campaign_id, token, password_hash, coalesce(period, '28d') AS period,
                   coalesce(tables, '{country,referrer,device}') AS tables
              FROM subject
              LEFT JOIN LATERAL (
                   SELECT token, password_hash, period, tables FROM public_statistics p
                    WHERE user_id = %(user_id)s
                      AND (p.link_id = subject.link_id OR p.campaign_id = subject.campaign_id)
                      FOR NO KEY UPDATE) stored ON true
             WHERE num_nonnulls(link_id, campaign_id) = 1),
        stored AS (
            INSERT INTO public_statistics AS p
                   (user_id, link_id, campaign_id, token, password_hash, period, tables)
            SELECT %(user_id)s, link_id, campaign_id, CASE WHEN %(public)s THEN %(token)s END,
                   nullif(%(password)s::text, ''), coalesce(%(period)s, period),
                   coalesce(%(tables)s::text[], tables)
              FROM before
                ON CONFLICT (user_id, link_id, campaign_id) DO UPDATE
               SET token = CASE WHEN %(public)s::boolean IS NULL THEN p.token
                                WHEN %(public)s THEN coalesce(p.token, excluded.token) END,
                   password_hash = CASE WHEN %(password)s::text IS NULL THEN p.password_hash
                                        ELSE excluded.password_hash END,
                   period = coalesce(%(period)s, p.period),
                   tables = coalesce(%(tables)s::text[], p.tables)
            RETURNING token, password_hash, period, tables),
        noted AS (
            INSERT INTO outbox (user_id, type, object_id, stored, data)
            SELECT %(user_id)s, 'public.updated', coalesce(link_id, campaign_id),
                   members -> 1 || jsonb_build_object(
                       'link', link_id, 'campaign', campaign_id, 'name',
                       coalesce((SELECT name FROM campaigns WHERE id = campaign_id),
                                link_title(link_id, (SELECT title FROM links WHERE id = link_id)))),
                   members -> 0
              FROM before b, stored s,  -- which has the token of another request that came first
                   LATERAL (SELECT CASE WHEN s.token <> %(token)s THEN s.token
                                        ELSE b.token END) old (token),
                   LATERAL (SELECT jsonb_agg(jsonb_build_object(
                                       'public', token IS NOT NULL, 'period', period,
                                       'tables', tables, 'haspassword',
                                       password_hash IS NOT NULL) ORDER BY n)
                              FROM (VALUES (0, old.token, b.password_hash, b.period, b.tables),
                                           (1, s.token, s.password_hash, s.period, s.tables))
                                   AS of (n, token, password_hash, period, tables)) p (members)
             WHERE notes_changes(%(user_id)s)
               AND (s.token, s.password_hash, s.period, s.tables)
                   IS DISTINCT FROM (old.token, b.password_hash, b.period, b.tables))
        SELECT token, password_hash IS NOT NULL AS haspassword, period, tables FROM stored
        """,
        user_id=user_id,
        link_id=link_id,
        campaign_id=campaign_id,
        **{"token": keys.new_token()} | sent,
    )
    return _record(page, campaign_id)


def find(token: str) -> Row | None:
    """Return what a page shows, or None. It is `large` if its figures take long. A link that an
    administrator has blocked, by itself or by the host of its target, has none, nor has a user who
    is suspended with `all`."""
    page = row(
        """
        SELECT p.*, u.timezone, d.domain, l.alias, l.url, coalesce(c.name, l.metatitle) AS title,
               (SELECT count(*) FROM (SELECT FROM links i
                                       WHERE i.campaign = p.campaign_id LIMIT %(many)s) first)
                   = %(many)s AS large
          FROM public_statistics p
          JOIN users u ON u.id = p.user_id AND u.suspended <> 'all'
          LEFT JOIN links l ON l.id = p.link_id
          LEFT JOIN domains d ON d.id = l.domain_id
          LEFT JOIN campaigns c ON c.id = p.campaign_id
         WHERE token = %(token)s AND l.blocked IS NULL
        """,
        token=token,
        many=MANY,
    )
    return page if page and not blocked().has_host(page["url"] or "") else None
