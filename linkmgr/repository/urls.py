"""Short links.

One statement stores a link with its channels. If it stores nothing and no constraint was violated, it
returns an error code of errors.CATALOGUE as `refusal`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Row, run
from linkmgr.db.transaction import undoable
from linkmgr.errors import RETRY_SECONDS, AppError, not_found
from linkmgr.fields.aliases import new_alias
from linkmgr.repository.names import run_with_name
from linkmgr.repository.tables import Table
from linkmgr.settings import settings

delete = Table("links", "link").delete
T = TypeVar("T")
_TRIES = 5  # random aliases of 35 bits, until one is free

# Members of a body that are parameters of the statements. A parameter is None if its member was not sent.
_MEMBERS = ("url", "custom", "domain", "password_hash", "expiry", "type", "splash_id", "overlay_id", "metatitle",
            "metadescription", "metaimage", "description", "pixels", "campaign", "channel", "public")  # fmt: skip
_JSON = ("geotarget", "devicetarget", "languagetarget", "parameters", "deeplink")


def to_params(members: Row) -> Row:
    """Return the parameters of the statements that store links."""
    encoded = {name: orjson.dumps(members[name]).decode() for name in _JSON if name in members}
    return dict.fromkeys((*_MEMBERS, *_JSON)) | {"hosts": [], "targets": []} | members | encoded


def _to_result(link: Row | None) -> Row:
    """Return `id`, `shorturl` and `short` from the row of a statement, or raise its refusal."""
    assert link is not None
    if link["refusal"]:
        raise AppError(link["refusal"])
    if link["id"] is None:
        raise not_found("link")
    return {"id": link["id"], "shorturl": link["shorturl"], "short": link["shorturl"]}


def with_random_alias(store: Callable[[str], T]) -> T:
    """Return the result of `store`, called with random aliases until one is free."""
    for _ in range(_TRIES - 1):
        try:
            with undoable():
                return store(new_alias())
        except UniqueViolation as error:
            if error.diag.constraint_name != "alias_taken":
                raise
    return store(new_alias())


def add(user_id: int, *, url: str, **members: Any) -> Row:
    """Store a link and return its `id`, `shorturl` and `short`, and as `is_new` if there was none like it."""
    if not members.keys() - {"hosts"}:
        return _added(_add_url_only(user_id, url, members.get("hosts", [])))
    params = to_params({"url": url} | members)
    if params["custom"]:
        return _added(_add(user_id, params["custom"], params))
    return _added(with_random_alias(lambda alias: _add(user_id, alias, params)))


def _added(link: Row | None) -> Row:
    return _to_result(link) | {"is_new": link is None or link.get("is_new", True)}


def _add_url_only(user_id: int, url: str, hosts: list[str]) -> Row | None:
    """Store a link of a URL alone, or return the existing one, which is not written, so that it keeps its version."""
    for _ in range(_TRIES):
        link = with_random_alias(lambda alias: _add_plain(user_id, alias, url, hosts))
        if link := link or _find_plain(user_id, url, hosts):
            if link["id"] or link["refusal"]:
                return link
            return with_random_alias(lambda alias: _add_own_plain(user_id, alias, url, hosts))
    raise AppError("busy", seconds=RETRY_SECONDS)  # each time, the existing link was deleted before it was read


def _add_plain(user_id: int, alias: str, url: str, hosts: list[str]) -> Row | None:
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


def _find_plain(user_id: int, url: str, hosts: list[str]) -> Row | None:
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


def _add_own_plain(user_id: int, alias: str, url: str, hosts: list[str]) -> Row | None:
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


def _add(user_id: int, alias: str, params: Row) -> Row | None:
    return run_with_name(
        """
        WITH checked AS (
            SELECT d.id AS domain_id, coalesce(d.scheme || '://' || d.host, %(base)s) AS host,
                   CASE WHEN EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[])) THEN 'link_branded'
                        WHEN %(domain)s::text <> '' AND d.id IS NULL THEN 'domain_unknown' END AS refusal
              FROM (SELECT) always
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s),
        added AS (
            INSERT INTO links (user_id, campaign_id, domain_id, alias, custom, url, title, description, type, splash_id,
                               overlay_id, pixel_ids, password_hash, expires, locations, devices, languages, parameters,
                               metadescription, metaimage, deeplink, public)
            SELECT %(user_id)s, nullif(%(campaign)s::bigint, 0), domain_id, %(alias)s, %(custom)s::text IS NOT NULL,
                   %(url)s, coalesce(%(metatitle)s::text, ''), coalesce(%(description)s::text, ''),
                   coalesce(%(type)s::text, 'direct'), %(splash_id)s::bigint, %(overlay_id)s::bigint,
                   nullif(%(pixels)s::bigint[], '{}'),
                   %(password_hash)s::text, %(expiry)s::timestamptz, coalesce(%(geotarget)s::jsonb, '{}'),
                   coalesce(%(devicetarget)s::jsonb, '{}'), coalesce(%(languagetarget)s::jsonb, '{}'),
                   coalesce(%(parameters)s::jsonb, '[]'), coalesce(%(metadescription)s::text, ''),
                   coalesce(%(metaimage)s::text, ''), coalesce(%(deeplink)s::jsonb, '{}'),
                   coalesce(%(public)s::boolean, true)
              FROM checked
             WHERE refusal IS NULL
            RETURNING id, alias),
        channel_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT %(user_id)s, channel_id, id FROM added, unnest(%(channel)s::bigint[]) AS channels (channel_id))
        SELECT id, host || '/' || alias AS shorturl, refusal FROM checked LEFT JOIN added ON true
        """,
        **(params | {"user_id": user_id, "alias": alias, "base": settings().base_url}),
    )


def update(user_id: int, link_id: int, *, changed: bool, **members: Any) -> Row:
    """Write the members that were sent, and return `id`, `shorturl` and `short`. `changed` is False if members without
    a default value were not sent, apart from `url`, `campaign` and `channel`.

    A changed link is no longer plain: a new link with the same URL must not return it. A stored target must not be
    on the new domain of the link. It may be on a host that has become a branded domain since it was stored.
    """
    updated = run_with_name(
        """
        WITH stored AS (
            SELECT target #>> '{}' AS url
              FROM links l,
                   jsonb_path_query(jsonb_build_array(l.url, l.locations, l.devices, l.languages, l.deeplink),
                                    'strict $.** ? (@.type() == "string")') target
             WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s),
        checked AS (
            SELECT d.id AS domain_id,
                   CASE WHEN EXISTS (SELECT FROM live_domains
                                      WHERE host = ANY (ARRAY(SELECT host_of(target)
                                                                FROM unnest(%(targets)s::text[]) AS target
                                                               WHERE target NOT IN (SELECT url FROM stored))))
                             THEN 'link_branded'
                        WHEN d.host IN (SELECT host_of(url) FROM stored) THEN 'link_branded'
                        -- The triggers of links do not check a reference that the link has already.
                        WHEN NOT EXISTS (SELECT FROM splash_pages WHERE user_id = %(user_id)s AND id = %(splash_id)s)
                             AND %(splash_id)s::bigint IS NOT NULL THEN 'splash_unknown'
                        WHEN NOT EXISTS (SELECT FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s)
                             AND %(overlay_id)s::bigint IS NOT NULL THEN 'overlay_unknown'
                        WHEN NOT EXISTS (SELECT FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign)s)
                             AND %(campaign)s::bigint <> 0 THEN 'campaign_unknown'
                        WHEN cardinality(%(pixels)s::bigint[])
                             > (SELECT count(*) FROM pixels WHERE user_id = %(user_id)s AND id = ANY (%(pixels)s))
                             THEN 'pixel_unknown'
                        WHEN %(domain)s::text <> '' AND d.id IS NULL THEN 'domain_unknown' END AS refusal
              FROM (SELECT) always
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s),
        updated AS (
            UPDATE links l
               SET plain = plain AND NOT %(changed)s::boolean
                           AND url = coalesce(%(url)s, url)
                           AND campaign_id IS NOT DISTINCT FROM nullif(coalesce(%(campaign)s, campaign_id), 0)
                           AND NOT EXISTS (SELECT unnest(%(channel)s::bigint[]) EXCEPT
                                           SELECT channel_id FROM channel_items
                                            WHERE user_id = %(user_id)s AND link_id = %(link_id)s),
                   url = coalesce(%(url)s, url),
                   alias = coalesce(nullif(%(custom)s, ''), alias),
                   custom = custom OR coalesce(nullif(%(custom)s::text, '') <> alias, false),
                   domain_id = CASE WHEN %(domain)s IS NULL THEN l.domain_id ELSE checked.domain_id END,
                   campaign_id = CASE WHEN %(campaign)s::bigint IS NULL THEN campaign_id
                                      ELSE nullif(%(campaign)s, 0) END,
                   type = coalesce(%(type)s, type),
                   splash_id = CASE WHEN %(type)s IS NULL THEN splash_id ELSE %(splash_id)s::bigint END,
                   overlay_id = CASE WHEN %(type)s IS NULL THEN overlay_id ELSE %(overlay_id)s::bigint END,
                   password_hash = nullif(coalesce(%(password_hash)s, password_hash), ''),
                   expires = CASE WHEN %(expiry)s::text IS NULL THEN expires
                                  ELSE nullif(%(expiry)s, '')::timestamptz END,
                   locations = coalesce(%(geotarget)s, locations),
                   devices = coalesce(%(devicetarget)s, devices),
                   languages = coalesce(%(languagetarget)s, languages),
                   parameters = coalesce(%(parameters)s, parameters),
                   title = coalesce(%(metatitle)s, title),
                   description = coalesce(%(description)s, description),
                   metadescription = coalesce(%(metadescription)s, metadescription),
                   metaimage = coalesce(%(metaimage)s, metaimage),
                   deeplink = coalesce(%(deeplink)s, deeplink),
                   public = coalesce(%(public)s, public),
                   pixel_ids = nullif(coalesce(%(pixels)s, pixel_ids), '{}')
              FROM checked
             WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s AND refusal IS NULL
            RETURNING l.id, l.alias, l.domain_id),
        channel_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT %(user_id)s, channel_id, id FROM updated, unnest(%(channel)s::bigint[]) AS channels (channel_id)
            ON CONFLICT DO NOTHING
            RETURNING link_id),
        recorded AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT DISTINCT %(user_id)s::bigint, 'link.updated', link_id FROM channel_added
             WHERE has_webhooks(%(user_id)s))
        SELECT updated.id, coalesce(scheme || '://' || host, %(base)s) || '/' || alias AS shorturl, refusal
          FROM checked
          LEFT JOIN updated ON true
          LEFT JOIN public.domains d ON d.id = updated.domain_id
        """,
        **(to_params(members) | {"user_id": user_id, "link_id": link_id, "base": settings().base_url}),
        alias=members.get("custom"),
        changed=changed,
    )
    return _to_result(updated)
