"""Rows behind public URLs.

`host` is the host of a branded domain, or None for our own host. A branded domain serves only rows
of its owner. Rows of deleted users are not served; background jobs delete them in batches. Those of
a user who is suspended with `all` raise `link_disabled`, and the branded domains of this user
redirect nowhere.
"""

from linkmgr.core.database.lookups import public_row
from linkmgr.core.database.paging import Page, page
from linkmgr.core.database.statements import MAX_BIGINT, Row, row, run_unsynced
from linkmgr.core.errors import AppError, required
from linkmgr.core.fields.short_urls import short_url
from linkmgr.visits.blocked import blocked

disabled_users: set[int] = set()  # that this process has suspended with `all`
# The details of a link that has none
_FAST_REDIRECT: Row = {"type": "direct"} | dict.fromkeys(
    ("password_hash", "starts", "maxclicks", "confirmclick", "geotarget", "devicetarget",
     "languagetarget", "parameters", "forwardquery", "deeplink", "variants", "rules", "splash", "overlay", "pixels")
)  # fmt: skip


def _enabled(owned: Row | None) -> Row | None:
    if owned and owned.pop("disabled"):
        raise AppError("link_disabled")
    return owned


def qr_code(host: str | None, code: str) -> Row:
    """`target_branded` is True if the target is on a branded domain, and `is_own_link` if it is a
    short URL of a link of the owner, on our hosts."""
    code_row = public_row(
        """
        SELECT qrs.id, user_id, type, data, u.suspended = 'all' AS disabled,
               EXISTS (SELECT FROM domains WHERE host = host_of(data #>> '{}')) AS target_branded,
               type = 'link' AND EXISTS (
                   SELECT FROM alias_in(data #>> '{}') AS own (alias)
                     JOIN aliases a ON a.alias IN (own.alias, lower(upper(own.alias)))
                     JOIN links l ON l.id = link_id
                     LEFT JOIN domains d ON d.id = a.domain_id
                    WHERE a.alias = alias_key(own.alias, a.domain_id) AND l.user_id = qrs.user_id
                      AND (host_of(data #>> '{}') = d.host) IS NOT FALSE) AS is_own_link
          FROM qrs
          JOIN users u ON u.id = user_id
         WHERE code = %(code)s
           AND user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text),
                                  user_id)
        """,
        host=host,
        code=code,
    )
    stored = required(_enabled(code_row), "image_missing")
    return stored if stored["type"] == "link" else stored | {"data": blocked().without_urls(stored["data"])}


def short_link(host: str | None, alias: str, rest: str = "", *, can_wait: bool = True) -> Row | None:
    """Return the link, or None. An unknown host has no links. A visitor who cannot wait has another
    answer. `alias` may be that of an old short URL, and `shorturl` is today's. Only links with
    `extrapath` have a `rest` of the path behind it.

    `url_branded` is True if the URL is on a branded domain, and `fast_redirect` if the link only
    redirects, as most do: the members of `_details` would double the time.
    """
    link = _link(host, alias, can_wait=can_wait)
    if link is None or (rest and not link["extrapath"]):
        return None
    _enabled(link)
    link["shorturl"] = short_url(link["domain"], link["alias"])
    link["alias"], link["rest"] = alias, rest
    if blocked().has_host(link["url"]):
        link["state"] = "blocked"
    link["metaimage"] = link["metaimage"] and blocked().without_urls(link["metaimage"])
    if link["fast_redirect"] and not link["state"]:
        return _FAST_REDIRECT | link
    details = _details(link["id"])  # None if the link has been deleted meanwhile
    return details and details | link | {
        name: blocked().without_urls(details[name]) for name in ("splash", "overlay")
    }


def _link(host: str | None, alias: str, *, can_wait: bool) -> Row | None:
    """Return a link without its details. Its domain belongs to its owner, so that one check covers
    deleted users."""
    return public_row(
        """
        SELECT l.id, l.user_id, u.suspended = 'all' AS disabled, l.alias, d.domain,
               l.clickid OR u.clickid OR coalesce(d.clickid, false) AS clickid, l.extrapath,
               url, metatitle, metadescription, metaimage, expiredurl,
               link_state(l.id, starts, l.expiry, maxclicks, blocked) AS state,
               EXISTS (SELECT FROM domains WHERE host = host_of(url)) AS url_branded,
               NOT l.forwardquery
                   AND num_nonnulls(maxclicks, l.password_hash, pixels, nullif(type, 'direct'),
                                    nullif(geotarget, '{}'), nullif(devicetarget, '{}'),
                                    nullif(languagetarget, '{}'),
                                    nullif(parameters, '[]'), nullif(deeplink, '{}'),
                                    nullif(variants, '[]'),
                                    nullif(rules, '[]')) = 0 AS fast_redirect
          FROM aliases a
          JOIN links l ON l.id = a.link_id
          JOIN users u ON u.id = l.user_id
          LEFT JOIN domains d ON d.id = l.domain_id
         WHERE a.alias = CASE WHEN coalesce((SELECT ignorecase FROM domains WHERE host = %(host)s),
                                            (SELECT ignorecase FROM service))
                              THEN lower(upper(%(alias)s)) ELSE %(alias)s END  -- see alias_key()
           AND a.domain_id = CASE WHEN %(host)s::text IS NULL THEN 0
                                  ELSE (SELECT id FROM domains WHERE host = %(host)s) END
           AND (a.until IS NULL OR a.until > now())
        """,
        can_wait=can_wait,
        host=host,
        alias=alias,
    )


def clicks(link_id: int) -> int:
    totals = public_row("SELECT clicks FROM totals WHERE tracked_id = %(link_id)s", link_id=link_id)
    return totals["clicks"] if totals else 0


def preview(link_id: int) -> Row:
    """Return when a link was created, and its targets."""
    stored = public_row(
        "SELECT created, listed_targets(l) AS targets FROM links l WHERE id = %(link_id)s",
        link_id=link_id,
    )
    return required(stored, "no_such_page")


def take_click(link_id: int, maxclicks: int) -> bool:
    """Count a redirect of a link with a limit. Return False, and count nothing, if the limit is
    reached. Concurrent statements wait at the row of the counter, which the first one adds."""
    taken = run_unsynced(
        """
        WITH taken AS (
            INSERT INTO taken_clicks AS t (link_id, total)
            SELECT id, used_clicks(id) + 1 FROM links WHERE id = %(link_id)s
               AND used_clicks(id) < %(maxclicks)s
            ON CONFLICT (link_id) DO UPDATE SET total = greatest(t.total + 1, excluded.total)
             WHERE t.total < %(maxclicks)s
            RETURNING total),
        announced AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'link.expired', id
              FROM links
             WHERE id = %(link_id)s AND (SELECT total FROM taken) = %(maxclicks)s
               AND has_webhooks(user_id))
        SELECT true AS done FROM taken
        """,
        link_id=link_id,
        maxclicks=maxclicks,
    )
    return taken is not None


def _details(link_id: int) -> Row | None:
    """Return what a link does besides its redirect, among it the `splash` page, the `overlay` and
    the `pixels` that it shows, or None.

    If the splash page or the overlay has been deleted, the type is direct, until a background job
    updates the link.
    """
    return public_row(
        """
        SELECT password_hash, starts, maxclicks, confirmclick, geotarget, devicetarget,
               languagetarget, parameters, forwardquery, deeplink, variants, rules,
               to_json(splash) AS splash, to_json(overlay) AS overlay,
               CASE WHEN splash_id IS NOT NULL AND splash.id IS NULL
                      OR overlay_id IS NOT NULL AND overlay.id IS NULL
                    THEN 'direct' ELSE l.type END AS type,
               (SELECT json_agg(json_build_object('type', p.type, 'tag', p.tag) ORDER BY p.id)
                  FROM pixels p
                 WHERE p.user_id = l.user_id AND p.id = ANY (l.pixels)) AS pixels
          FROM links l
          LEFT JOIN splash_pages splash ON splash.user_id = l.user_id AND splash.id = l.splash_id
          LEFT
          JOIN LATERAL (SELECT id, type, name, message, link, label, position, color, background
                               FROM overlays o
                              WHERE o.user_id = l.user_id AND o.id = l.overlay_id) overlay ON true
         WHERE l.id = %(link_id)s
        """,
        link_id=link_id,
    )


def bio(host: str | None, alias: str) -> Row | None:
    if host is not None:
        return None
    page = public_row(
        """
        SELECT b.id, b.user_id, b.alias, name, bio, theme, links, u.suspended = 'all' AS disabled
          FROM alias_at(NULL, %(alias)s) a
          JOIN bios b ON b.id = a.bio_id
          JOIN users u ON u.id = b.user_id
        """,
        alias=alias,
    )
    if page := _enabled(page):
        page["links"] = [link for link in page["links"] if not blocked().has_host(link["url"])]
    return page


def random_link(host: str | None, slug: str) -> Row:
    """Return the id and short URL of a random link of the public campaign that works now: one of
    1,000 from a random id on, with some before it if fewer follow, or, if none of these works, one
    of the 1,000 newest or oldest. So a visitor never waits for the reading of more. Equal campaigns
    are compared with <= and >=, because PostgreSQL would look for a few links of a small one among
    all links of large ones: only one index has this order."""
    link = public_row(
        """
        SELECT l.id, d.domain, l.alias
          FROM campaigns c JOIN users ON users.id = c.user_id
         CROSS
         JOIN LATERAL (SELECT min(id) AS first, max(id) AS last FROM links
                        WHERE campaign = c.id) ids
         CROSS JOIN unnest(ARRAY[first + (random() * (last - first))::bigint, last, first]) AS start
         CROSS JOIN LATERAL (
              SELECT *
                FROM ((SELECT * FROM links WHERE campaign <= c.id
                          AND (campaign, id) >= (c.id, start)
                               ORDER BY campaign, id LIMIT 1000) UNION ALL
                             (SELECT * FROM links WHERE campaign >= c.id
                                 AND (campaign, id) < (c.id, start)
                               ORDER BY campaign DESC, id DESC LIMIT 1000) LIMIT 1000) near
               WHERE link_state(id, starts, expiry, maxclicks, blocked) IS NULL
               ORDER BY random() LIMIT 1) l
          LEFT JOIN domains d ON d.id = l.domain_id
         WHERE slug = %(slug)s AND c.public
           AND c.user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text),
                                    c.user_id)
         LIMIT 1
        """,
        host=host,
        slug=slug,
    )
    chosen = required(link, "campaign_missing")
    return {"id": chosen["id"], "shorturl": short_url(chosen["domain"], chosen["alias"])}


def campaign(host: str | None, username: str, slug: str, campaign_id: int) -> Row:
    stored = row(
        """
        SELECT c.id, c.name, listorder, listsize, u.username, u.suspended = 'all' AS disabled
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
    return required(_enabled(stored), "campaign_missing")


def campaign_links(campaign: Row, after: int | None) -> Page:
    """List the public links behind an id that work now, without their total. `url` is None if
    visitors get it only for a password or a counted click. PostgreSQL estimates these conditions
    well, unlike `link_state`, and so reads the links by their index."""
    is_newest = campaign["listorder"] == "newest"
    links = page(
        """
        WITH shown AS NOT MATERIALIZED (
            SELECT id, domain_id, alias, metatitle,
                   CASE WHEN num_nonnulls(password_hash, maxclicks) = 0 THEN url END AS url
              FROM links
             WHERE campaign = %(campaign_id)s AND status = 'public'
               AND (starts IS NULL OR starts <= now()) AND (expiry IS NULL OR expiry > now())
               AND (maxclicks IS NULL OR maxclicks > used_clicks(id))
               AND blocked IS NULL)
        SELECT l.id, d.domain, alias, metatitle AS title, url
          FROM ((SELECT * FROM shown WHERE %(is_newest)s AND id < %(after)s
                  ORDER BY id DESC LIMIT %(limit)s)
                 UNION ALL
                (SELECT * FROM shown WHERE NOT %(is_newest)s AND id > %(after)s
                  ORDER BY id LIMIT %(limit)s)) l
          LEFT JOIN domains d ON d.id = l.domain_id
         ORDER BY CASE WHEN %(is_newest)s THEN -l.id ELSE l.id END
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "NULL",
        limit=campaign["listsize"],
        number=1,
        after=after or (MAX_BIGINT if is_newest else 0),
        campaign_id=campaign["id"],
        is_newest=is_newest,
    )
    for link in links.rows:
        link["shorturl"] = short_url(link["domain"], link["alias"])
        link["url"] = link["url"] and blocked().without_urls(link["url"])
    return links


def is_username(username: str) -> bool:
    return (
        row("SELECT 1 FROM users WHERE lower(username) = lower(%(username)s)", username=username) is not None
    )
