"""Changes and deletions of many links, each with one statement."""

from typing import Any

import orjson

from linkmgr.core.database.halves import failure, in_halves
from linkmgr.core.database.statements import Row, run_one
from linkmgr.core.errors import AppError, not_found
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.repository.links import to_changes


def update_links(user_id: int, ids: list[int], *, atomic: bool, **members: Any) -> list[Row]:
    """Write the same members to all links, as `urls.update` does, and return the result of each id in the same order:
    `id` and `shorturl`, or `code` and `message`. They leave the channel `unassign_channel`. With `atomic`, either all
    links are changed or none."""
    params = {"unassign_channel": 0} | to_changes(members) | {"user_id": user_id, "atomic": atomic}
    distinct = list(dict.fromkeys(ids))
    stored = in_halves(distinct, lambda some: _to_results(some, _update(some, params)), atomic)
    results = dict(zip(distinct, stored, strict=True))
    return [results[link_id] for link_id in ids]


def _to_results(ids: list[int], updated: Row) -> list[Row]:
    results = dict.fromkeys(ids, failure(not_found("link")))
    for link_id, code, detail in updated["checked"] or ():
        results[link_id] = failure(AppError(code, detail=detail)) if code else {}
    for link_id, domain, alias in updated["updated"] or ():
        results[link_id] = {"id": link_id, "shorturl": short_url(domain, alias)}
    return [results[link_id] for link_id in ids]


def _update(ids: list[int], params: Row) -> Row:
    """See `urls.update`. The rows are locked in the order of their ids, so that two requests do not wait for each
    other. An alias that several links would have on the same domain belongs to the oldest of them."""
    return run_one(
        """
        WITH plan AS MATERIALIZED (
            SELECT lacking_features(id) AS lacking,
                   unknown.code AS unknown
              FROM users,
                   unknown_reference(%(user_id)s, %(domain)s, %(campaign)s, %(splash_id)s, %(overlay_id)s, %(pixels)s,
                                     array_remove(%(channel)s::bigint[] || %(unassign_channel)s::bigint, 0)) unknown
             WHERE id = %(user_id)s),
        locked AS MATERIALIZED (
            SELECT l, new, d.host AS new_host,
                   CASE WHEN %(domain)s::text IS NULL THEN l.domain_id ELSE d.id END AS new_domain_id
              FROM links l
             CROSS JOIN jsonb_populate_record(l, %(sent)s::jsonb) AS new
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s
             WHERE l.user_id = %(user_id)s AND l.id = ANY (%(ids)s::bigint[])
             ORDER BY l.id
               FOR NO KEY UPDATE OF l),
        checked AS MATERIALIZED (
            SELECT (l).id, new_domain_id,
                   CASE WHEN wrong IS NOT NULL THEN wrong
                        WHEN plan.unknown IS NOT NULL THEN plan.unknown
                        WHEN NOT is_allowed_domain(new_domain_id) THEN 'domain_needed'
                        WHEN feature IS NOT NULL THEN 'plan_feature'
                        WHEN is_too_large((new).geotarget, (new).devicetarget, (new).languagetarget, (new).parameters,
                                          (new).deeplink, (new).variants, (new).rules, (new).pixels)
                             THEN 'too_large'
                        WHEN (new).starts >= (new).expiry THEN 'starts_late'
                        WHEN ((new).alias, new_domain_id) IS DISTINCT FROM ((l).alias, (l).domain_id)
                             AND EXISTS (SELECT FROM aliases a
                                          WHERE a.alias = (new).alias AND a.domain_id = coalesce(new_domain_id, 0))
                             THEN 'alias_taken'
                        WHEN ((new).alias, new_domain_id) IS DISTINCT FROM ((l).alias, (l).domain_id)
                             AND (new).alias = ANY (%(reserved)s::text[]) AND new_domain_id IS NULL
                             THEN 'alias_reserved' END AS refusal,
                   feature, (new).alias AS new_alias
              FROM locked, plan,
                   change_refusal(%(user_id)s, %(targets)s::text[],
                                  targets_of((l).url, (l).expiredurl, (l).geotarget, (l).devicetarget,
                                             (l).languagetarget, (l).deeplink, (l).variants, (l).rules),
                                  nullif((new).metaimage, (l).metaimage),
                                  new_host) AS wrong,
                   LATERAL (SELECT denied_feature(
                                lacking, (new).alias <> (l).alias,
                                CASE WHEN NOT (new).devicetarget <@ (l).devicetarget THEN (new).devicetarget END,
                                CASE WHEN NOT (new).geotarget <@ (l).geotarget THEN (new).geotarget END,
                                CASE WHEN NOT has_elements((l).parameters, (new).parameters) THEN (new).parameters END,
                                CASE WHEN NOT has_elements((l).rules, (new).rules) THEN (new).rules END
                            ) AS feature) denied),
        compared AS MATERIALIZED (
            SELECT id, new_domain_id AS domain_id, feature,
                   CASE WHEN refusal IS NULL
                             AND row_number() OVER (PARTITION BY new_alias, new_domain_id, refusal IS NULL
                                                        ORDER BY id) > 1
                             THEN 'alias_taken' ELSE refusal END AS refusal
              FROM checked),
        accepted AS MATERIALIZED (
            SELECT id, domain_id FROM compared
             WHERE refusal IS NULL
               AND NOT (%(atomic)s::boolean
                        AND (SELECT count(*) FROM compared WHERE refusal IS NULL) < cardinality(%(ids)s))),
        updated AS MATERIALIZED (
            SELECT changed.*
              FROM (SELECT array_agg(id) AS ids, array_agg(domain_id) AS domain_ids FROM accepted) lists,
                   change_links(%(user_id)s, ids, domain_ids, %(sent)s, %(changed)s, %(domain)s IS NOT NULL,
                                %(channel)s, %(unassign_channel)s) AS changed)
        SELECT (SELECT json_agg(json_build_array(id, refusal, feature)) FROM compared) AS checked,
               (SELECT json_agg(json_build_array(u.id, (SELECT domain FROM domains WHERE id = u.domain_id), u.alias))
                  FROM updated u) AS updated
        """,
        **params,
        ids=ids,
    )


def delete_links(user_id: int, ids: list[int], *, atomic: bool) -> list[Row]:
    deleted = run_one(
        """
        WITH locked AS MATERIALIZED (
            SELECT id FROM links
             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
             ORDER BY id
               FOR UPDATE),
        deleted AS (
            DELETE FROM links
             WHERE user_id = %(user_id)s AND id = ANY (ARRAY(SELECT id FROM locked))
               AND NOT (%(atomic)s::boolean AND (SELECT count(*) FROM locked) < cardinality(%(ids)s))
            RETURNING id)
        SELECT ARRAY(SELECT id FROM locked) AS existing, ARRAY(SELECT id FROM deleted) AS deleted
        """,
        user_id=user_id,
        ids=list(dict.fromkeys(ids)),
        atomic=atomic,
    )
    missing = failure(not_found("link"))
    results = {link_id: {"id": link_id} for link_id in deleted["deleted"]}
    return [results.get(link_id, {} if link_id in deleted["existing"] else missing) for link_id in ids]


# --- links that are selected in the console


def set_members(user_id: int, ids: list[int], **members: Any) -> int:
    """Write the members to links, and return their number."""
    results = update_links(user_id, ids, atomic=False, **members)
    for result in results:
        if result.get("code", "missing") != "missing":
            raise AppError(result["code"])
    return sum("id" in result for result in results)


def set_parameters(user_id: int, ids: list[int], pairs: list[tuple[str, str]]) -> int:
    """Set some parameters of links, which keep their others, and return the number of links. Raise an error if a link
    would have more than a body may have: each text counts as in a query string, with the character behind it."""
    changed = run_one(
        """
        WITH locked AS MATERIALIZED (
            SELECT id, %(pairs)s::jsonb || coalesce(
                       (SELECT jsonb_agg(pair ORDER BY number)
                          FROM jsonb_array_elements(parameters) WITH ORDINALITY AS stored (pair, number)
                         WHERE pair ->> 0 <> ALL (%(names)s::text[])), '[]') AS parameters
              FROM links
             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
             ORDER BY id
               FOR UPDATE),
        changed AS (
            UPDATE links l
               SET url_only = false, parameters = locked.parameters
              FROM locked
             WHERE l.user_id = %(user_id)s AND l.id = locked.id
               AND (SELECT coalesce(sum(3 * octet_length(part)
                                        - 2 * length(regexp_replace(part, '[^A-Za-z0-9_.~ -]', '', 'g')) + 1), 1) - 1
                      FROM jsonb_array_elements(locked.parameters) AS pair, jsonb_array_elements_text(pair) AS part
                   ) <= %(most)s
            RETURNING 1)
        SELECT (SELECT count(*) FROM changed) AS number, (SELECT count(*) FROM locked) AS sent
        """,
        user_id=user_id,
        ids=ids,
        pairs=orjson.dumps(pairs).decode(),
        names=[name for name, _ in pairs],
        most=MAX_URL,
    )
    if changed["number"] < changed["sent"]:
        raise invalid(f"The parameters of a link must make a query string of at most {MAX_URL} characters")
    return int(changed["number"])
