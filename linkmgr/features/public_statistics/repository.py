"""The pages of statistics that owners show. The subject of a page is the link `link_id` or the
campaign `campaign_id`, and the other one is None."""

from typing import Any

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, row, run, run_one
from linkmgr.core.errors import existing

PERIOD, TABLES = "28d", ("country", "referrer", "device")  # by default
MANY = 100  # links of a campaign, whose figures take long


def _existing(stored: Row | None, campaign_id: int | None) -> Row:
    return existing(stored, "campaign" if campaign_id else "link")


def read(user_id: int, *, link_id: int | None = None, campaign_id: int | None = None) -> Row:
    """Return the page of a subject, without a token if it is off, and what names the subject."""
    page = row(
        """
        SELECT coalesce(token, '') AS token, password_hash IS NOT NULL AS haspassword,
               coalesce(period, %(period)s) AS period, coalesce(tables, %(tables)s) AS tables,
               title, target
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
        period=PERIOD,
        tables=[*TABLES],
    )
    return _existing(page, campaign_id)


def change(user_id: int, *, link_id: int | None = None, campaign_id: int | None = None, **sent: Any) -> Row:
    """Show the page of a subject, or change what is not None. An empty hash means no password."""
    page = run(
        """
        WITH subject AS (
            SELECT (SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s
                       FOR KEY SHARE) AS link_id,
                   (SELECT id FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s
                       FOR KEY SHARE) AS campaign_id)
        INSERT INTO public_statistics AS p
               (user_id, link_id, campaign_id, token, password_hash, period, tables)
        SELECT %(user_id)s, link_id, campaign_id, %(token)s, nullif(%(password_hash)s::text, ''),
               coalesce(%(period)s, %(default_period)s), coalesce(%(tables)s::text[], %(default_tables)s)
          FROM subject
         WHERE num_nonnulls(link_id, campaign_id) = 1
            ON CONFLICT (user_id, link_id, campaign_id) DO UPDATE
           SET password_hash = CASE WHEN %(password_hash)s::text IS NULL THEN p.password_hash
                                    ELSE excluded.password_hash END,
               period = coalesce(%(period)s, p.period),
               tables = coalesce(%(tables)s::text[], p.tables)
        RETURNING token, password_hash IS NOT NULL AS haspassword, period, tables
        """,
        user_id=user_id,
        link_id=link_id,
        campaign_id=campaign_id,
        token=keys.new_token(),
        default_period=PERIOD,
        default_tables=[*TABLES],
        **sent,
    )
    return _existing(page, campaign_id)


def delete(user_id: int, *, link_id: int | None = None, campaign_id: int | None = None) -> None:
    """Remove the page of a subject, if there is one. Its address never works again."""
    subject = run_one(
        """
        WITH deleted AS (
            DELETE FROM public_statistics
             WHERE user_id = %(user_id)s
               AND (link_id = %(link_id)s OR campaign_id = %(campaign_id)s))
        SELECT EXISTS (SELECT FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s)
               OR EXISTS (SELECT FROM campaigns
                           WHERE user_id = %(user_id)s AND id = %(campaign_id)s) AS exists
        """,
        user_id=user_id,
        link_id=link_id,
        campaign_id=campaign_id,
    )
    _existing(subject if subject["exists"] else None, campaign_id)


def find(token: str) -> Row | None:
    """Return what a page shows, or None. `link_id` and `campaign_id` say of what, and `is_large`
    that its figures take long. The page of a link that an administrator has blocked is off, as are
    those of a user who is suspended with `all`."""
    return row(
        """
        SELECT p.*, u.timezone, d.domain, l.alias, l.metatitle, c.name,
               (SELECT count(*) FROM (SELECT FROM links i
                                       WHERE i.campaign = p.campaign_id LIMIT %(many)s) first)
                   = %(many)s AS is_large
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
