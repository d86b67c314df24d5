"""Deletions and changes of many links, each with one statement."""

from typing import Any

import orjson

from linkmgr.core.database.halves import failure
from linkmgr.core.database.statements import Row, run_one
from linkmgr.core.errors import AppError, not_found
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.repository import link_bin, links


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
               AND NOT (%(atomic)s::boolean
                        AND (SELECT count(*) FROM locked) < cardinality(%(ids)s))
            RETURNING id)
        SELECT ARRAY(SELECT id FROM locked) AS existing, ARRAY(SELECT id FROM deleted) AS deleted
        """,
        user_id=user_id,
        ids=list(dict.fromkeys(ids)),
        atomic=atomic,
    )
    return _results(ids, deleted)


def put_into_bin(user_id: int, ids: list[int], *, atomic: bool) -> list[Row]:
    return _results(ids, link_bin.put_all(user_id, list(dict.fromkeys(ids)), atomic=atomic))


def _results(ids: list[int], deleted: Row) -> list[Row]:
    missing = failure(not_found("link"))
    results = {link_id: {"id": link_id} for link_id in deleted["deleted"]}
    return [results.get(link_id, {} if link_id in deleted["existing"] else missing) for link_id in ids]


# --- links that are selected in the console


def set_members(user_id: int, ids: list[int], **members: Any) -> list[Row]:
    """Write the members to links, and return their results."""
    results = links.update_links(user_id, ids, members, atomic=False)
    for result in results:
        if result.get("code", "missing") != "missing":
            raise AppError(result["code"])
    return results


def set_parameters(user_id: int, ids: list[int], pairs: list[tuple[str, str]]) -> list[Row]:
    """Set some parameters of links, which keep their others, and return their results. Raise
    an error if a link would have more than a body may have: each text counts as in a query string,
    with the character behind it."""
    changed = run_one(
        """
        WITH locked AS MATERIALIZED (
            SELECT l AS stored, jsonb_populate_record(l, jsonb_build_object(
                       'url_only', false,
                       'parameters', %(pairs)s::jsonb || coalesce(
                           (SELECT jsonb_agg(pair ORDER BY number)
                              FROM jsonb_array_elements(parameters)
                                   WITH ORDINALITY AS stored (pair, number)
                             WHERE pair ->> 0 <> ALL (%(names)s::text[])), '[]'))) AS link
              FROM links l
             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
             ORDER BY id
               FOR UPDATE),
        checked AS MATERIALIZED (
            SELECT link, CASE WHEN code IS NOT NULL THEN refuse(code, detail) END
              FROM locked,
                   link_refusal(link, stored, '{"parameters": true}', false, NULL, '{}', NULL)),
        changed AS (
            UPDATE links l
               SET url_only = (link).url_only, parameters = (link).parameters
              FROM checked
             WHERE l.user_id = %(user_id)s AND l.id = (link).id
               AND (SELECT coalesce(
                               sum(3 * octet_length(part) + 1
                                   - 2 * length(regexp_replace(part, '[^A-Za-z0-9_.~ -]', '', 'g'))),
                               1) - 1
                      FROM jsonb_array_elements((link).parameters) AS pair,
                           jsonb_array_elements_text(pair) AS part
                   ) <= %(most)s
            RETURNING l.id)
        SELECT ARRAY(SELECT id FROM changed) AS ids, (SELECT count(*) FROM locked) AS sent
        """,
        user_id=user_id,
        ids=ids,
        pairs=orjson.dumps(pairs).decode(),
        names=[name for name, _ in pairs],
        most=MAX_URL,
    )
    if len(changed["ids"]) < changed["sent"]:
        raise invalid(f"The parameters of a link must make a query string of at most {MAX_URL} characters")
    return [{"id": link_id} for link_id in changed["ids"]]
