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
from linkmgr.errors import RETRY_SECONDS, AppError, existing, not_found
from linkmgr.fields.aliases import new_alias
from linkmgr.repository.tables import run_with_name
from linkmgr.repository.url_records import COLUMNS, details_of, to_record
from linkmgr.settings import settings

T = TypeVar("T")
_TRIES = 5  # random aliases of 35 bits, until one is free

# Members of a body that are parameters of the statements. A parameter is None if its member was not sent.
_MEMBERS = ("url", "custom", "domain", "password_hash", "expiry", "type", "splash_id", "overlay_id", "title",
            "metatitle", "metadescription", "metaimage", "description", "pixels", "campaign", "channel",
            "public")  # fmt: skip
_JSON = ("geotarget", "devicetarget", "languagetarget", "parameters", "deeplink")

# Parts of the statements that change one link and many. Triggers do not check a reference that the link has already.
UNKNOWN = """
    CASE WHEN NOT EXISTS (SELECT FROM splash_pages WHERE user_id = %(user_id)s AND id = %(splash_id)s)
              AND %(splash_id)s::bigint IS NOT NULL THEN 'splash_unknown'
         WHEN NOT EXISTS (SELECT FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s)
              AND %(overlay_id)s::bigint IS NOT NULL THEN 'overlay_unknown'
         WHEN NOT EXISTS (SELECT FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign)s)
              AND %(campaign)s::bigint <> 0 THEN 'campaign_unknown'
         WHEN cardinality(%(pixels)s::bigint[])
              > (SELECT count(*) FROM pixels WHERE user_id = %(user_id)s AND id = ANY (%(pixels)s))
              THEN 'pixel_unknown'
         WHEN cardinality(%(channel)s::bigint[])
              > (SELECT count(*) FROM channels WHERE user_id = %(user_id)s AND id = ANY (%(channel)s))
              THEN 'channel_unknown'
         WHEN %(domain)s::text <> ''
              AND NOT EXISTS (SELECT FROM domains WHERE user_id = %(user_id)s AND host = %(domain)s)
              THEN 'domain_unknown' END
"""
CHANGES = """
    SET plain = plain AND NOT %(changed)s::boolean
                AND url = coalesce(%(url)s::text, url)
                AND campaign_id IS NOT DISTINCT FROM nullif(coalesce(%(campaign)s, campaign_id), 0)
                AND NOT EXISTS (SELECT unnest(%(channel)s::bigint[]) EXCEPT
                                SELECT channel_id FROM channel_items
                                 WHERE user_id = %(user_id)s AND link_id = l.id),
        url = coalesce(%(url)s, url),
        alias = coalesce(nullif(%(custom)s, ''), alias),
        custom = custom OR coalesce(nullif(%(custom)s, '') <> alias, false),
        domain_id = CASE WHEN %(domain)s::text IS NULL THEN l.domain_id ELSE accepted.domain_id END,
        campaign_id = nullif(coalesce(%(campaign)s, campaign_id), 0),
        type = coalesce(%(type)s::text, type),
        splash_id = CASE WHEN %(type)s IS NULL THEN splash_id ELSE %(splash_id)s::bigint END,
        overlay_id = CASE WHEN %(type)s IS NULL THEN overlay_id ELSE %(overlay_id)s::bigint END,
        password_hash = nullif(coalesce(%(password_hash)s::text, password_hash), ''),
        expires = CASE WHEN %(expiry)s::text IS NULL THEN expires
                       ELSE nullif(%(expiry)s, '')::timestamptz END,
        locations = coalesce(%(geotarget)s, locations),
        devices = coalesce(%(devicetarget)s, devices),
        languages = coalesce(%(languagetarget)s::jsonb, languages),
        parameters = coalesce(%(parameters)s, parameters),
        title = CASE WHEN %(title)s::text <> '' THEN %(title)s
                     WHEN %(title)s = '' OR title = metatitle THEN coalesce(%(metatitle)s::text, metatitle)
                     ELSE title END,
        metatitle = coalesce(%(metatitle)s, metatitle),
        description = coalesce(%(description)s::text, description),
        metadescription = coalesce(%(metadescription)s::text, metadescription),
        metaimage = coalesce(%(metaimage)s::text, metaimage),
        deeplink = coalesce(%(deeplink)s::jsonb, deeplink),
        public = coalesce(%(public)s::boolean, public),
        pixel_ids = nullif(coalesce(%(pixels)s, pixel_ids), '{}')
"""
# New channels of changed links, and their events.
CHANNELS_ADDED = """
        channels_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT %(user_id)s, channel_id, id FROM updated, unnest(%(channel)s::bigint[]) AS channels (channel_id)
            ON CONFLICT DO NOTHING
            RETURNING link_id),
        recorded AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT DISTINCT %(user_id)s::bigint, 'link.updated', link_id FROM channels_added
             WHERE has_webhooks(%(user_id)s))
"""


def to_params(members: Row) -> Row:
    """Return the parameters of the statements that store links."""
    encoded = {name: orjson.dumps(members[name]).decode() for name in _JSON if name in members}
    defaults: Row = {"hosts": [], "targets": [], "reserved": []}
    return dict.fromkeys((*_MEMBERS, *_JSON)) | defaults | members | encoded


def _accepted(link: Row | None) -> Row:
    """Return the row of a statement, or raise its refusal."""
    assert link is not None
    if refusal := link.pop("refusal"):
        raise AppError(refusal)
    if link["id"] is None:
        raise not_found("link")
    return link


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
    """Store a link and return the record as url_records.read does, and as `is_new` if there was none like it."""
    if not members.keys() - {"hosts"}:
        return _add_url_only(user_id, url, members.get("hosts", []))
    params = to_params({"url": url} | members)
    if params["custom"]:
        return _added(_add(user_id, params["custom"], params))
    return _added(with_random_alias(lambda alias: _add(user_id, alias, params)))


def _added(link: Row | None) -> Row:
    stored = _accepted(link)
    return {"is_new": stored.pop("is_new", True)} | to_record(stored)


def _add_url_only(user_id: int, url: str, hosts: list[str]) -> Row:
    """Store a link of a URL alone, or return the existing one, which is not written, so that it keeps its version."""
    for _ in range(_TRIES):
        link = with_random_alias(lambda alias: _add_plain(user_id, alias, url, hosts))
        if link := link or _find_plain(user_id, url, hosts):
            return _added(link)
    raise AppError("busy", seconds=RETRY_SECONDS)  # each time, the existing link was deleted before it was read


def _add_plain(user_id: int, alias: str, url: str, hosts: list[str]) -> Row | None:
    """Store a link without other members than its URL, or return None if there is one or the host is branded.

    One INSERT without common table expressions takes PostgreSQL a tenth less time.
    """
    return run(
        f"""
        INSERT INTO links AS l (user_id, alias, url, plain)
        SELECT %(user_id)s, %(alias)s, %(url)s, true
         WHERE NOT EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[]))
        ON CONFLICT (user_id, md5(url), key_id) WHERE plain DO NOTHING
        RETURNING {COLUMNS}, NULL AS clicks, NULL AS visitors, NULL AS top_labels, NULL AS related, NULL AS refusal
        """,  # noqa: S608 - static SQL
        user_id=user_id,
        alias=alias,
        url=url,
        hosts=hosts,
    )


def _find_plain(user_id: int, url: str, hosts: list[str]) -> Row | None:
    """Return the link that `add` did not store again."""
    return run(
        f"""
        SELECT refusal, details.*, false AS is_new
          FROM (SELECT CASE WHEN EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[]))
                            THEN 'link_branded' END AS refusal) checked
          LEFT JOIN ({details_of("links")}
                      WHERE user_id = %(user_id)s AND md5(url) = md5(%(url)s) AND plain
                        AND key_id IS NOT DISTINCT FROM
                            nullif(current_setting('linkmgr.key_id', true), '')::bigint) details ON true
         WHERE refusal IS NOT NULL OR details.id IS NOT NULL
        """,  # noqa: S608 - static SQL
        user_id=user_id,
        url=url,
        hosts=hosts,
    )


def _add(user_id: int, alias: str, params: Row) -> Row | None:
    return run_with_name(
        f"""
        WITH checked AS (
            SELECT d.id AS domain_id,
                   CASE WHEN EXISTS (SELECT FROM live_domains WHERE host = ANY (%(hosts)s::text[])) THEN 'link_branded'
                        WHEN %(domain)s::text <> '' AND d.id IS NULL THEN 'domain_unknown' END AS refusal
              FROM (SELECT) always
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s),
        added AS (
            INSERT INTO links (user_id, campaign_id, domain_id, alias, custom, url, title, metatitle, description, type,
                               splash_id, overlay_id, pixel_ids, password_hash, expires, locations, devices, languages,
                               parameters, metadescription, metaimage, deeplink, public)
            SELECT %(user_id)s, nullif(%(campaign)s::bigint, 0), domain_id, %(alias)s, %(custom)s::text IS NOT NULL,
                   %(url)s, coalesce(nullif(%(title)s::text, ''), %(metatitle)s::text, ''),
                   coalesce(%(metatitle)s, ''), coalesce(%(description)s::text, ''),
                   coalesce(%(type)s::text, 'direct'), %(splash_id)s::bigint, %(overlay_id)s::bigint,
                   nullif(%(pixels)s::bigint[], '{{}}'),
                   %(password_hash)s::text, %(expiry)s::timestamptz, coalesce(%(geotarget)s::jsonb, '{{}}'),
                   coalesce(%(devicetarget)s::jsonb, '{{}}'), coalesce(%(languagetarget)s::jsonb, '{{}}'),
                   coalesce(%(parameters)s::jsonb, '[]'), coalesce(%(metadescription)s::text, ''),
                   coalesce(%(metaimage)s::text, ''), coalesce(%(deeplink)s::jsonb, '{{}}'),
                   coalesce(%(public)s::boolean, true)
              FROM checked
             WHERE refusal IS NULL
            RETURNING *),
        channel_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT %(user_id)s, channel_id, id FROM added, unnest(%(channel)s::bigint[]) AS channels (channel_id)
            RETURNING link_id)
        SELECT refusal, details.*,
               CASE WHEN (SELECT count(*) FROM channel_added) > 0 THEN link_references(%(user_id)s, id)
                    ELSE related END AS related
          FROM checked
          LEFT JOIN ({details_of("added")}) details ON true
        """,  # noqa: S608 - static SQL
        **(params | {"user_id": user_id, "alias": alias}),
    )


def update(user_id: int, link_id: int, *, changed: bool, **members: Any) -> Row:
    """Write the members that were sent, and return the record as url_records.read does.

    `changed` is False if members without a default value were not sent, apart from `url`, `campaign` and `channel`.
    A changed link is no longer plain: a new link with the same URL must not return it. A stored target must not be
    on the new domain of the link. It may be on a host that has become a branded domain since it was stored.
    """
    updated = run_with_name(
        f"""
        WITH stored AS (
            SELECT target #>> '{{}}' AS url
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
                        WHEN EXISTS (SELECT FROM links
                                      WHERE user_id = %(user_id)s AND id = %(link_id)s
                                        AND coalesce(nullif(%(custom)s::text, ''), alias) = ANY (%(reserved)s::text[])
                                        AND (nullif(%(custom)s, '') <> alias OR domain_id IS NOT NULL)
                                        AND CASE WHEN %(domain)s::text IS NULL THEN domain_id IS NULL
                                                 ELSE %(domain)s = '' END)
                             THEN 'alias_reserved'
                        ELSE {UNKNOWN} END AS refusal
              FROM (SELECT) always
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s),
        updated AS (
            UPDATE links l
           {CHANGES}
              FROM checked AS accepted
             WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s AND refusal IS NULL
            RETURNING l.*),
        {CHANNELS_ADDED}
        -- The second `related` replaces the first one, which may have been read before the channels were added.
        SELECT refusal, details.*,
               CASE WHEN (SELECT count(*) FROM channels_added) > 0 THEN link_references(%(user_id)s, %(link_id)s)
                    ELSE related END AS related
          FROM checked
          LEFT JOIN ({details_of("updated")}) details ON true
        """,  # noqa: S608 - static SQL
        **(to_params(members) | {"user_id": user_id, "link_id": link_id, "base": settings().base_url}),
        alias=members.get("custom"),
        changed=changed,
    )
    return to_record(_accepted(updated))


def delete(user_id: int, link_id: int) -> None:
    deleted = run(
        "DELETE FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s RETURNING id",
        user_id=user_id,
        link_id=link_id,
    )
    existing(deleted, "link")
