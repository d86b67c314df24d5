"""Links of a bulk request or an import: one statement stores up to a thousand.

The statement looks up why it cannot store a link, so that the others are stored all the same. A constraint is violated
only if a concurrent transaction comes in between. The statement then sees its rows and is repeated.
"""

import orjson
import psycopg2

from linkmgr.core.database.halves import failure, in_halves
from linkmgr.core.database.statements import Row, run_one
from linkmgr.core.database.tables import release
from linkmgr.core.errors import AppError
from linkmgr.core.fields.aliases import new_alias
from linkmgr.core.fields.short_urls import short_url

MAX_LINKS = 1000  # of one statement
_SPARES = 16  # aliases in place of generated ones that are in use
_URL_ONLY = {"url", "targets", "imported_clicks"}


def add_links(user_id: int, links: list[Row], *, atomic: bool = False) -> list[Row]:
    """Store at most MAX_LINKS links and return their results in the same order: `id` and `shorturl`, or `code` and
    `message` of the reason why a link was not stored. With `atomic`, either all links are stored or none: if one fails,
    the results of those that would have been stored are empty.

    A link has the members that `urls.add` takes. A link of only `url` and `targets` may be an existing one. Further
    members, for imports:

    - `created`: the time at which the link was created, with its time zone.
    - `alias`: an alias that the user has not chosen. It needs the plan feature too, since it may be any.
    - `url_only`: true for a link that is returned if its URL is shortened again.
    - `imported_clicks`: the number of clicks that another service counted. An existing link keeps its own.
    - `source_clicks` and `source_host`: these clicks, and the host of the link there, if it is not ours.
    """
    first: dict[str, int] = {}  # of the same links, by URL
    same = [first.setdefault(link["url"], n) if _is_url_only(link) else n for n, link in enumerate(links)]
    distinct = [n for n, other in enumerate(same) if n == other]
    results = dict(zip(distinct, _add_all(user_id, [links[n] for n in distinct], atomic), strict=True))
    return [results[n] for n in same]


def _is_url_only(link: Row) -> bool:
    return bool(link.get("url_only")) or link.keys() <= _URL_ONLY


def _add_all(user_id: int, links: list[Row], atomic: bool) -> list[Row]:
    return in_halves(links, lambda some: _to_results(some, _insert(user_id, some, atomic)), atomic, _release_aliases)


def _release_aliases(links: list[Row], violation: psycopg2.IntegrityError) -> None:
    aliases = [link.get("custom") or link.get("alias") for link in links]
    release(violation.diag.constraint_name, aliases=aliases, link_id=None)


def _prepared(link: Row) -> Row:
    custom = link.get("custom")
    alias = custom or link.get("alias")
    return link | {
        "alias": alias or new_alias(),
        "chosen": bool(custom),
        "generated": not alias,
        "url_only": _is_url_only(link),
    }


def _to_results(links: list[Row], stored: Row) -> list[Row]:
    if links and not (stored["accepted"] or stored["refused"]):
        raise AppError("key_unknown")  # the user was deleted meanwhile
    existing = stored["existing"] or {}  # by URL
    results: list[Row] = [{} for _ in links]
    for number, domain, *added in stored["accepted"] or ():
        link = links[number - 1]
        is_existing = existing and _is_url_only(link)
        link_id, alias = existing.get(link["url"], added) if is_existing else added
        results[number - 1] = {"id": link_id, "shorturl": short_url(domain, alias)}
    for number, code, detail in stored["refused"] or ():
        results[number - 1] = failure(AppError(code, detail=detail))
    return results


def _insert(user_id: int, links: list[Row], atomic: bool) -> Row:
    """`plan` has the number of links that the user may add, or null, and the features that the plan lacks. `sent` has
    the links with their rows. `checked` has their first problem. An alias that is sent twice belongs to the first
    link that can be stored. Rows are inserted in an order that all requests share, so that two requests with the same
    links do not deadlock. The LIMITs make PostgreSQL look up single rows instead of reading whole tables."""
    return run_one(
        """
        WITH plan AS MATERIALIZED (
            SELECT CASE WHEN NOT admin THEN nullif((limits ->> 'links')::bigint, 0) END AS links,
                   lacking_features(id) AS lacking,
                   coalesce((SELECT total FROM public.usage
                              WHERE user_id = %(user_id)s AND counted = 'links'), 0) AS used,
                   targets_refusal(id, %(targets)s::text[]) IS NOT NULL AS has_refused
              FROM accounts
             WHERE id = %(user_id)s),
        sent AS MATERIALIZED (
            SELECT l.*, l.ordinality AS n, coalesce(d.id, 0) AS domain_id,
                   d.domain AS base, coalesce(l.forwardquery, d.forwardquery, false) AS forwards_query,
                   denied_feature(lacking, NOT generated, devicetarget, geotarget, parameters, rules) AS feature,
                   CASE WHEN l.url_only AND plan.links IS NOT NULL
                        THEN (SELECT id FROM links o
                               WHERE o.user_id = %(user_id)s AND md5(o.url) = md5(l.url) AND o.url_only
                                 AND o.key_id IS NOT DISTINCT FROM
                                     nullif(current_setting('linkmgr.key_id', true), '')::bigint LIMIT 1)
                        END AS existing,
                   (SELECT true FROM aliases a
                     WHERE a.alias = l.alias AND a.domain_id = coalesce(d.id, 0) LIMIT 1) AS in_use
              FROM ROWS FROM (json_to_recordset(%(links)s::json) AS (
                   url text, alias text, chosen boolean, generated boolean, url_only boolean, domain text,
                   targets text[], password_hash text, expiry timestamptz, type text,
                   splash_id bigint, overlay_id bigint,
                   title text, metatitle text, metadescription text, metaimage text, description text, pixels bigint[],
                   campaign bigint, channel bigint[], status text, geotarget jsonb, devicetarget jsonb,
                   languagetarget jsonb, parameters jsonb, deeplink jsonb, variants jsonb, rules jsonb,
                   created timestamptz, starts timestamptz, maxclicks bigint, expiredurl text, forwardquery boolean,
                   imported_clicks bigint, source_clicks bigint, source_host text)) WITH ORDINALITY AS l
             CROSS JOIN plan
              LEFT JOIN LATERAL (SELECT id, domains.domain, domains.forwardquery FROM domains
                                  WHERE user_id = %(user_id)s AND domains.host = l.domain LIMIT 1) d
                     ON l.domain <> ''),
        looked_up AS MATERIALIZED (
            SELECT sent.*,
                   coalesce(
                       CASE WHEN has_refused THEN targets_refusal(%(user_id)s, targets) END,
                       image_refusal(metaimage),
                       unknown.code,
                       CASE WHEN NOT is_allowed_domain(domain_id) THEN 'domain_needed'
                            WHEN feature IS NOT NULL THEN 'plan_feature'
                            WHEN is_too_large(geotarget, devicetarget, languagetarget, parameters, deeplink, variants,
                                              rules, pixels) THEN 'too_large'
                            WHEN starts >= expiry THEN 'starts_late'
                            WHEN in_use AND NOT generated AND
                                 (SELECT true FROM aliases a JOIN users ON users.id = coalesce(
                                         owner_of_link(a.link_id), (SELECT user_id FROM bios WHERE id = a.bio_id))
                                   WHERE a.alias = sent.alias AND a.domain_id = sent.domain_id LIMIT 1)
                                 THEN 'alias_taken' END) AS refusal
              FROM sent, plan,
                   unknown_reference(%(user_id)s, domain, campaign, splash_id, overlay_id, pixels, channel) unknown),
        checked AS MATERIALIZED (
            SELECT l.*,
                   CASE WHEN NOT generated AND row_number() OVER (PARTITION BY domain_id, alias, refusal IS NULL
                                                                      ORDER BY n) > 1 THEN 'alias_taken'
                        END AS taken
              FROM looked_up l),
        counted AS MATERIALIZED (
            SELECT c.*, coalesce(refusal, taken,
                   CASE WHEN existing IS NULL
                         AND plan.used + count(*) FILTER (WHERE refusal IS NULL AND taken IS NULL AND existing IS NULL)
                                                   OVER (ORDER BY n) > plan.links
                        THEN 'plan_limit' END) AS code,
                   CASE WHEN generated AND in_use
                        THEN coalesce((%(spares)s::text[])[count(*) FILTER (WHERE generated AND in_use)
                                                           OVER (ORDER BY n)], alias)
                        ELSE alias END AS free_alias
              FROM checked c, plan),
        accepted AS MATERIALIZED (
            SELECT nextval('tracked_ids') AS id, c.*
              FROM (SELECT * FROM counted WHERE code IS NULL ORDER BY n) c
             WHERE NOT (%(atomic)s::boolean AND EXISTS (SELECT FROM counted WHERE code IS NOT NULL))),
        added AS (
            INSERT INTO links (id, user_id, campaign, domain_id, alias, custom, url_only, url, title, metatitle,
                               description, type, splash_id, overlay_id, pixels, password_hash, expiry, geotarget,
                               devicetarget, languagetarget, parameters, metadescription, metaimage, deeplink, variants,
                               rules, status, created, imported_clicks, source_clicks, source_host,
                               starts, maxclicks, expiredurl, forwardquery)
            SELECT id, %(user_id)s, nullif(campaign, 0), nullif(domain_id, 0), free_alias, chosen, url_only, url,
                   coalesce(nullif(title, ''), metatitle, ''), coalesce(metatitle, ''),
                   coalesce(description, ''), coalesce(type, 'direct'), splash_id, overlay_id,
                   nullif(pixels, '{}'), password_hash, expiry, coalesce(geotarget, '{}'), coalesce(devicetarget, '{}'),
                   coalesce(languagetarget, '{}'), coalesce(parameters, '[]'), coalesce(metadescription, ''),
                   coalesce(metaimage, ''), coalesce(deeplink, '{}'), coalesce(variants, '[]'), coalesce(rules, '[]'),
                   coalesce(status, 'public'), least(created, now()), imported_clicks, source_clicks, source_host,
                   starts, nullif(maxclicks, 0), coalesce(expiredurl, ''), forwards_query
              FROM accepted
             ORDER BY url_only, CASE WHEN url_only THEN url ELSE free_alias END COLLATE "C"
            ON CONFLICT (user_id, md5(url), key_id) WHERE url_only DO UPDATE SET url_only = true
            RETURNING id, alias, url, url_only),
        channels_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT %(user_id)s, channel_id, id FROM accepted, unnest(channel) AS ids (channel_id))
        SELECT (SELECT json_agg(json_build_array(n, base, id, free_alias)) FROM accepted) AS accepted,
               (SELECT json_agg(json_build_array(n, code,
                           CASE code WHEN 'plan_feature' THEN feature
                                     WHEN 'plan_limit' THEN plan.links || ' links' END))
                  FROM counted, plan
                 WHERE code IS NOT NULL) AS refused,
               (SELECT json_object_agg(url, json_build_array(id, alias))
                  FROM added
                 WHERE url_only AND id NOT IN (SELECT id FROM accepted)) AS existing
        """,
        user_id=user_id,
        links=orjson.dumps([_prepared(link) for link in links]).decode(),
        targets=list({target for link in links for target in link["targets"]}),
        spares=[new_alias() for _ in range(_SPARES)],
        atomic=atomic,
    )
