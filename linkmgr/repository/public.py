"""Rows that visitors ask for by a public URL.

A branded host serves only what its owner has.  What a deleted user leaves behind is not served: it waits to be deleted
in batches.
"""

from linkmgr.database import Page, Row, page, row
from linkmgr.settings import settings


def scanned(host: str | None, code: str) -> Row | None:
    """The QR code behind a picture."""
    return row(
        """
        SELECT id, user_id, type, data
          FROM qrs
         WHERE code = %(code)s AND EXISTS (SELECT FROM users WHERE users.id = user_id)
           AND user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text), user_id)
        """,
        host=host,
        code=code,
    )


def short_link(host: str | None, alias: str) -> Row | None:
    """Return the link and everything that decides what its visitor gets.  `host` is None for our own host.  `base` is
    what the short URL begins with.  A link whose splash page or overlay has been deleted is direct."""
    return row(
        """
        SELECT l.id, l.user_id, coalesce(d.scheme || '://' || d.host, %(base)s) AS base, l.alias, url, title,
               metadescription, metaimage, splash_id, overlay_id, password_hash,
               CASE WHEN splash_id IS NOT NULL
                         AND NOT EXISTS (SELECT FROM splash_pages s WHERE s.user_id = l.user_id AND s.id = splash_id)
                      OR overlay_id IS NOT NULL
                         AND NOT EXISTS (SELECT FROM overlays o WHERE o.user_id = l.user_id AND o.id = overlay_id)
                    THEN 'direct' ELSE type END AS type,
               coalesce(expires <= now(), false) AS expired,
               locations, devices, languages, parameters, deeplink,
               (SELECT json_agg(json_build_object('type', p.type, 'tag', p.tag) ORDER BY p.id)
                  FROM link_pixels lp
                  JOIN pixels p ON p.id = lp.pixel_id
                 WHERE lp.link_id = l.id) AS pixels
          FROM aliases a
          JOIN links l ON l.id = a.link_id
          LEFT JOIN domains d ON d.id = l.domain_id
         WHERE a.alias = %(alias)s AND EXISTS (SELECT FROM users WHERE users.id = l.user_id)
           AND a.domain_id = CASE WHEN %(host)s::text IS NULL THEN 0
                                  ELSE (SELECT id FROM live_domains WHERE host = %(host)s) END
        """,
        host=host,
        alias=alias,
        base=settings().base_url,
    )


def bio(host: str | None, alias: str) -> Row | None:
    """Return the bio page.  Branded hosts have none."""
    return row(
        """
        SELECT b.id, b.user_id, b.alias, name, bio, theme, links
          FROM aliases a
          JOIN bios b ON b.id = a.bio_id
         WHERE a.alias = %(alias)s AND a.domain_id = 0 AND %(host)s::text IS NULL
           AND EXISTS (SELECT FROM users WHERE users.id = b.user_id)
        """,
        host=host,
        alias=alias,
    )


def rotated(host: str | None, slug: str) -> Row | None:
    """The short address of any link of the public campaign that is not over, each as likely as the others."""
    return row(
        """
        SELECT l.id, coalesce(d.scheme || '://' || d.host, %(base)s) || '/' || l.alias AS shorturl
          FROM campaigns c
         CROSS JOIN LATERAL (
               SELECT id, domain_id, alias
                 FROM links
                WHERE campaign_id = c.id AND (expires > now()) IS NOT FALSE
               OFFSET floor(random() * (SELECT count(*) FROM links
                                         WHERE campaign_id = c.id AND (expires > now()) IS NOT FALSE))::bigint
                LIMIT 1) l
          LEFT JOIN domains d ON d.id = l.domain_id
         WHERE c.slug = %(slug)s AND c.public AND EXISTS (SELECT FROM users WHERE users.id = c.user_id)
           AND c.user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text), c.user_id)
        """,
        host=host,
        slug=slug,
        base=settings().base_url,
    )


def campaign(host: str | None, username: str, slug: str, campaign_id: int) -> Row | None:
    """The public campaign that all three parts of its list's address name."""
    return row(
        """
        SELECT c.id, c.name, u.username
          FROM campaigns c
          JOIN users u ON u.id = c.user_id
         WHERE c.id = %(campaign_id)s AND c.public
           AND u.username = %(username)s AND coalesce(c.slug, 'list') = %(slug)s
           AND u.id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text), u.id)
        """,
        host=host,
        username=username,
        slug=slug,
        campaign_id=campaign_id,
    )


def campaign_links(campaign_id: int, *, limit: int, number: int) -> Page:
    """Those that are to be shown and not over.  Where one with a password leads is not told."""
    return page(
        """
        SELECT l.id, coalesce(d.scheme || '://' || d.host, %(base)s::text) || '/' || alias AS shorturl, title,
               CASE WHEN password_hash IS NULL THEN url END AS url
          FROM links l
          LEFT JOIN domains d ON d.id = l.domain_id
         WHERE campaign_id = %(campaign_id)s AND public AND (expires > now()) IS NOT FALSE
         ORDER BY l.id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM links
         WHERE campaign_id = %(campaign_id)s AND public AND (expires > now()) IS NOT FALSE
        """,
        limit=limit,
        number=number,
        campaign_id=campaign_id,
        base=settings().base_url,
    )


def branded(host: str) -> Row | None:
    return row("SELECT redirectroot, redirect404 FROM live_domains WHERE host = %(host)s", host=host)
