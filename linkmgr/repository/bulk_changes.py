"""Changes and deletions of many links, each with one statement."""

from typing import Any

from linkmgr.db.statements import Row, run
from linkmgr.errors import AppError, not_found
from linkmgr.repository.bulk import failure, in_halves
from linkmgr.repository.urls import CHANGES, CHANNELS_ADDED, UNKNOWN, to_params
from linkmgr.settings import settings


def update_links(user_id: int, ids: list[int], *, atomic: bool, **members: Any) -> list[Row]:
    """Write the same members to all links, as `urls.update` does, and return the result of each id in the same order:
    `id` and `shorturl`, or `code` and `message`. With `atomic`, either all links are changed or none."""
    params = to_params({name: value for name, value in members.items() if name != "changed"})
    params |= {"user_id": user_id, "atomic": atomic, "changed": members["changed"], "base": settings().base_url}
    distinct = list(dict.fromkeys(ids))
    stored = in_halves(distinct, lambda some: _to_results(some, _update(some, params)), atomic)
    results = dict(zip(distinct, stored, strict=True))
    return [results[link_id] for link_id in ids]


def _to_results(ids: list[int], updated: Row) -> list[Row]:
    results = dict.fromkeys(ids, failure(not_found("link")))
    for link_id, code, detail in updated["checked"] or ():
        results[link_id] = failure(AppError(code, detail=detail)) if code else {}
    for link_id, short in updated["updated"] or ():
        results[link_id] = {"id": link_id, "shorturl": short}
    return [results[link_id] for link_id in ids]


def _update(ids: list[int], params: Row) -> Row:
    """See `urls.update`. The rows are locked in the order of their ids, so that two requests do not wait for each
    other. An alias that several links would have on the same domain belongs to the oldest of them."""
    updated = run(
        f"""
        WITH plan AS MATERIALIZED (
            SELECT lacking_features(id) AS lacking,
                   ARRAY(SELECT host FROM live_domains
                          WHERE host = ANY (ARRAY(SELECT host_of(target)
                                                    FROM unnest(%(targets)s::text[]) AS target))) AS branded
              FROM accounts
             WHERE id = %(user_id)s),
        unknown AS MATERIALIZED (
            SELECT {UNKNOWN} AS refusal),
        locked AS MATERIALIZED (
            SELECT l.*, coalesce(nullif(%(custom)s::text, ''), l.alias) AS new_alias,
                   CASE WHEN %(domain)s::text IS NULL THEN l.domain_id ELSE d.id END AS new_domain_id,
                   d.host AS new_host
              FROM links l
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s
             WHERE l.user_id = %(user_id)s AND l.id = ANY (%(ids)s::bigint[])
             ORDER BY l.id
               FOR NO KEY UPDATE OF l),
        stored AS (
            SELECT id, ARRAY(SELECT target #>> '{{}}'
                               FROM jsonb_path_query(jsonb_build_array(url, locations, devices, languages, deeplink),
                                                     'strict $.** ? (@.type() == "string")') target) AS urls
              FROM locked),
        checked AS MATERIALIZED (
            SELECT l.id, l.new_domain_id,
                   CASE WHEN plan.branded <> '{{}}' AND EXISTS (
                                 SELECT FROM unnest(%(targets)s::text[]) AS target
                                  WHERE host_of(target) = ANY (plan.branded)
                                    AND target <> ALL ((SELECT urls FROM stored WHERE stored.id = l.id)::text[]))
                             THEN 'link_branded'
                        WHEN new_host IN (SELECT host_of(url) FROM stored, unnest(urls) AS url WHERE stored.id = l.id)
                             THEN 'link_branded'
                        WHEN unknown.refusal IS NOT NULL THEN unknown.refusal
                        WHEN feature IS NOT NULL THEN 'plan_feature'
                        WHEN (new_alias, new_domain_id) IS DISTINCT FROM (alias, domain_id)
                             AND EXISTS (SELECT FROM aliases a
                                          WHERE a.alias = new_alias AND a.domain_id = coalesce(new_domain_id, 0))
                             THEN 'alias_taken'
                        WHEN (new_alias, new_domain_id) IS DISTINCT FROM (alias, domain_id)
                             AND new_alias = ANY (%(reserved)s::text[]) AND new_domain_id IS NULL
                             THEN 'alias_reserved' END AS refusal,
                   feature, new_alias
              FROM locked l, plan, unknown,
                   LATERAL (SELECT denied_feature(
                                lacking, new_alias <> alias,
                                CASE WHEN NOT %(devicetarget)s::jsonb <@ devices THEN %(devicetarget)s::jsonb END,
                                CASE WHEN NOT %(geotarget)s::jsonb <@ locations THEN %(geotarget)s::jsonb END,
                                CASE WHEN NOT has_elements(l.parameters, %(parameters)s::jsonb)
                                     THEN %(parameters)s::jsonb END
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
        updated AS (
            UPDATE links l
           {CHANGES}
              FROM accepted
             WHERE l.user_id = %(user_id)s AND l.id = accepted.id
            RETURNING l.id, l.alias, l.domain_id),
        {CHANNELS_ADDED}
        SELECT (SELECT json_agg(json_build_array(id, refusal, feature)) FROM compared) AS checked,
               (SELECT json_agg(json_build_array(
                           u.id, coalesce((SELECT domain FROM domains WHERE id = u.domain_id), %(base)s::text)
                                 || '/' || u.alias))
                  FROM updated u) AS updated
        """,  # noqa: S608 - static SQL
        **params,
        ids=ids,
    )
    assert updated
    return updated


def delete_links(user_id: int, ids: list[int], *, atomic: bool) -> list[Row]:
    """Delete links and return the result of each id in the same order: `id`, or `code` and `message`."""
    deleted = run(
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
    assert deleted
    missing = failure(not_found("link"))
    results = {link_id: {"id": link_id} for link_id in deleted["deleted"]}
    return [results.get(link_id, {} if link_id in deleted["existing"] else missing) for link_id in ids]


# --- links that are selected in the console


def delete_selected(user_id: int, ids: list[int]) -> int:
    """Delete links and return their number."""
    return _number(delete_links(user_id, ids, atomic=False))


def set_campaign(user_id: int, ids: list[int], campaign: int) -> int:
    """Move links to a campaign, or with 0 out of their campaigns, and return their number."""
    return _number(update_links(user_id, ids, atomic=False, changed=False, campaign=campaign))


def add_to_channel(user_id: int, ids: list[int], channel: int) -> int:
    """Add links to a channel and return their number. Links that are in it stay there."""
    return _number(update_links(user_id, ids, atomic=False, changed=False, channel=[channel]))


def _number(results: list[Row]) -> int:
    """Return the number of links that were changed. Raise an error that is not that a link does not exist."""
    for result in results:
        if result.get("code", "missing") != "missing":
            raise AppError(result["code"])
    return sum("id" in result for result in results)
