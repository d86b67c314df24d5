"""Rows that visitors ask for by a public URL.

A branded host serves only what its owner has.  What a deleted user leaves behind is not served: it waits to be deleted
in batches.
"""

from linkmgr.db.statements import Page, Row, page, row
from linkmgr.settings import settings


def scanned(host: str | None, code: str) -> Row | None:
    """The QR code behind a picture."""
    return row(
        """
        SELECT id, user_id, type, data,
               EXISTS (SELECT FROM domains WHERE host = host_of(data #>> '{}')) AS target_branded
          FROM qrs
         WHERE code = %(code)s AND EXISTS (SELECT FROM users WHERE users.id = user_id)
           AND user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text), user_id)
        """,
        host=host,
        code=code,
    )


def short_link(host: str | None, alias: str) -> Row | None:
    """Return the link and everything that decides what its visitor gets.  `host` is None for our own host; one that is
    no branded domain has no links.  `base` is what the short URL begins with.  `url_branded`: the URL is on a branded
    domain.  A link whose splash page or overlay has been deleted is direct."""
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
               EXISTS (SELECT FROM domains WHERE host = host_of(url)) AS url_branded,
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
    """Return the short URL of a random link of the public campaign that has not expired.

    The time does not depend on the number of links.  `hashint8(id)` scatters the links over 2^32 places.  A try draws a
    span of places that holds about 4 links and accepts it with a probability proportional to the number of unexpired
    links in it, at most 20; then each of these is as likely as any other link of the campaign.  In a campaign of fewer
    than 32 links, or after 200 tries in vain, it is one of the 1,000 links that expire last.

    All unexpired links are equally likely, with one exception: where more than about 95 % have expired and more than
    1,000 have not, the 1,000 that expire last are preferred.
    """
    return row(
        """
        WITH campaign AS MATERIALIZED (
            SELECT id, (SELECT (hashint8(l.id) + 2147483648) / 8
                          FROM links l
                         WHERE l.campaign_id = c.id
                         ORDER BY hashint8(l.id)
                        OFFSET 31 LIMIT 1) AS span
              FROM campaigns c
             WHERE slug = %(slug)s AND public AND EXISTS (SELECT FROM users WHERE users.id = user_id)
               AND user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text), user_id))
        SELECT l.id, coalesce(d.scheme || '://' || d.host, %(base)s) || '/' || l.alias AS shorturl
          FROM campaign c
         CROSS JOIN LATERAL (
              (SELECT accepted.id, accepted.domain_id, accepted.alias
                 FROM (SELECT floor(random() * (4294967296 + c.span) - c.span)::bigint - 2147483648 AS start
                         FROM generate_series(1, CASE WHEN c.span > 0 THEN 200 END)) try,
                      LATERAL (SELECT id, domain_id, alias, count(*) OVER () AS unexpired
                                 FROM (SELECT id, domain_id, alias, expires
                                         FROM links
                                        WHERE campaign_id = c.id
                                          AND hashint8(id) >= try.start AND hashint8(id) < try.start + c.span
                                        LIMIT 20) spanned
                                WHERE (expires > now()) IS NOT FALSE
                                ORDER BY random()
                                LIMIT 1) accepted
                WHERE random() < unexpired / 20.0
                LIMIT 1)
              UNION ALL
              (SELECT id, domain_id, alias
                 FROM (SELECT id, domain_id, alias, expires
                         FROM links
                        WHERE campaign_id = c.id
                        ORDER BY expires DESC
                        LIMIT 1000) last
                WHERE (expires > now()) IS NOT FALSE
                ORDER BY random()
                LIMIT 1)
               LIMIT 1) l
          LEFT JOIN domains d ON d.id = l.domain_id
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
    """Return the domain, if the host is one.  `redirects_branded`: one of its redirects leads to a branded domain."""
    return row(
        """
        SELECT redirectroot, redirect404,
               EXISTS (SELECT FROM domains other
                        WHERE other.host IN (host_of(d.redirectroot), host_of(d.redirect404))) AS redirects_branded
          FROM live_domains d
         WHERE host = %(host)s
        """,
        host=host,
    )
