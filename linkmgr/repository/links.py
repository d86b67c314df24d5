"""One statement stores a link with its channels. Functions in schema.sql have the rules: what a link must not refer
to."""

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from psycopg2.errors import UniqueViolation

from linkmgr.core.database.statements import Row, run, run_repaired, undoable
from linkmgr.core.database.tables import release_name
from linkmgr.core.errors import RETRY_SECONDS, AppError, existing, not_found
from linkmgr.core.fields.aliases import new_alias
from linkmgr.repository import link_lists
from linkmgr.repository import link_records as url_records
from linkmgr.repository.link_records import to_record

# The statements that read links, so that this module has all functions that modules of rows have
index, read, batch = link_lists.index, url_records.read, url_records.batch

T = TypeVar("T")
_TRIES = 5  # random aliases of 35 bits, until one is free

# Members of a body that are parameters of the statements. A parameter is None if its member was not sent.
_MEMBERS = ("url", "custom", "domain", "password_hash", "expiry", "type", "splash_id", "overlay_id", "title",
            "metatitle", "metadescription", "metaimage", "description", "pixels", "campaign", "channel",
            "status", "starts", "maxclicks", "expiredurl", "forwardquery")  # fmt: skip
_JSON = ("geotarget", "devicetarget", "languagetarget", "parameters", "deeplink", "variants", "rules")

# Columns of members with other names, and those that have NULL for "", 0 or []
_COLUMNS = {"custom": "alias"}
_NULLABLE = {"campaign", "pixels", "starts", "expiry", "maxclicks", "password_hash"}
_UNSENT: Row = {"targets": [], "reserved": []} | dict.fromkeys(
    ("custom", "domain", "campaign", "splash_id", "overlay_id", "pixels", "channel")
)


def to_params(members: Row) -> Row:
    encoded = {name: orjson.dumps(members[name]).decode() for name in _JSON if name in members}
    return dict.fromkeys((*_MEMBERS, *_JSON)) | {"targets": []} | members | encoded


def to_changes(members: Row) -> Row:
    """Return the parameters of an update. `sent` has the columns that it writes."""
    columns = {_COLUMNS.get(name, name): members[name] for name in members.keys() - {"targets", "reserved"}}
    if members.get("custom") == "":
        del columns["alias"]
    columns |= {name: columns[name] or None for name in _NULLABLE & columns.keys()}
    return _UNSENT | members | {"sent": orjson.dumps(columns).decode()}


def with_random_alias(store: Callable[[str], T]) -> T:
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
    if not members.keys() - {"targets"}:
        return _add_url_only(user_id, url)
    params = to_params({"url": url} | members)
    if params["custom"]:
        link = _add(user_id, params["custom"], params)
    else:
        link = with_random_alias(lambda alias: _add(user_id, alias, params))
    return {"is_new": True} | to_record(link)


def _add_url_only(user_id: int, url: str) -> Row:
    """Store a link of a URL alone, or return the existing one, which is not written, so that it keeps its version."""
    for _ in range(_TRIES):
        link = with_random_alias(lambda alias: _add_first(user_id, alias, url))
        if link:
            return {"is_new": True} | to_record(link)
        if link := _find_url_only(user_id, url):
            return {"is_new": False} | to_record(link)
    raise AppError("busy", seconds=RETRY_SECONDS)  # each time, the existing link was deleted before it was read


def _add_first(user_id: int, alias: str, url: str) -> Row | None:
    """Return None if there is such a link. One INSERT without common table expressions takes a tenth less time."""
    return run(
        """
        INSERT INTO links (user_id, alias, url, url_only)
        SELECT %(user_id)s, %(alias)s, %(url)s, true FROM require_usable_targets(%(user_id)s, ARRAY[%(url)s])
        ON CONFLICT (user_id, md5(url), key_id) WHERE url_only DO NOTHING
        RETURNING *, NULL AS clicks, NULL AS visitors, NULL AS top_labels, NULL AS related
        """,
        user_id=user_id,
        alias=alias,
        url=url,
    )


def _find_url_only(user_id: int, url: str) -> Row | None:
    return run(
        """
        SELECT l.*, clicks, visitors, top_labels
          FROM link_details l
          LEFT JOIN totals ON tracked_id = id
         WHERE user_id = %(user_id)s AND md5(url) = md5(%(url)s) AND url_only
           AND key_id IS NOT DISTINCT FROM nullif(current_setting('linkmgr.key_id', true), '')::bigint
        """,
        user_id=user_id,
        url=url,
    )


def _add(user_id: int, alias: str, params: Row) -> Row:
    added = run_repaired(
        """
        WITH added AS (
            INSERT INTO links (user_id, campaign, domain_id, alias, custom, url, title, metatitle, description, type,
                               splash_id, overlay_id, pixels, password_hash, expiry, geotarget, devicetarget,
                               languagetarget, parameters, metadescription, metaimage, deeplink, variants, rules,
                               status, starts, maxclicks, expiredurl, forwardquery)
            SELECT %(user_id)s, nullif(%(campaign)s::bigint, 0), require_domain(%(user_id)s, %(domain)s), %(alias)s,
                   %(custom)s::text IS NOT NULL, %(url)s,
                   coalesce(nullif(%(title)s::text, ''), %(metatitle)s::text, ''), coalesce(%(metatitle)s, ''),
                   coalesce(%(description)s::text, ''), coalesce(%(type)s::text, 'direct'), %(splash_id)s::bigint,
                   %(overlay_id)s::bigint, nullif(%(pixels)s::bigint[], '{}'), %(password_hash)s::text,
                   %(expiry)s::timestamptz, coalesce(%(geotarget)s::jsonb, '{}'),
                   coalesce(%(devicetarget)s::jsonb, '{}'), coalesce(%(languagetarget)s::jsonb, '{}'),
                   coalesce(%(parameters)s::jsonb, '[]'), coalesce(%(metadescription)s::text, ''),
                   coalesce(%(metaimage)s::text, ''), coalesce(%(deeplink)s::jsonb, '{}'),
                   coalesce(%(variants)s::jsonb, '[]'), coalesce(%(rules)s::jsonb, '[]'),
                   coalesce(%(status)s::text, 'public'),
                   %(starts)s::timestamptz, nullif(%(maxclicks)s::bigint, 0), coalesce(%(expiredurl)s::text, ''),
                   coalesce(%(forwardquery)s::boolean, (SELECT forwardquery FROM domains d
                                                         WHERE d.user_id = %(user_id)s AND d.host = %(domain)s), false)
              FROM require_usable_targets(%(user_id)s, %(targets)s::text[], %(metaimage)s)
            RETURNING *),
        channels_added AS (
            INSERT INTO channel_items (user_id, channel_id, link_id)
            SELECT %(user_id)s, channel_id, id FROM added, unnest(%(channel)s::bigint[]) AS channels (channel_id)
            RETURNING link_id)
        SELECT *, NULL AS clicks, NULL AS visitors, NULL AS top_labels,
               CASE WHEN (SELECT count(*) FROM channels_added) > 0
                      OR num_nonnulls(domain_id, campaign, splash_id, overlay_id, pixels) > 0
                    THEN link_references(user_id, id) END AS related
          FROM added
        """,
        release_name,
        **(params | {"user_id": user_id, "alias": alias}),
    )
    assert added
    return added


def update(user_id: int, link_id: int, *, changed: bool, **members: Any) -> Row:
    """Write the members that were sent, and return the record as url_records.read does.

    `changed` is False if members without a default value were not sent, apart from `url`, `campaign` and `channel`.
    A stored target must not be on the new domain of the link. It, or its host, may have been blocked since it was
    stored, or become a branded domain.
    """
    updated = run_repaired(
        """
        WITH checked AS (
            SELECT d.id AS domain_id,
                   CASE WHEN wrong IS NOT NULL THEN wrong
                        WHEN coalesce(nullif(%(custom)s::text, ''), alias) = ANY (%(reserved)s::text[])
                             AND (nullif(%(custom)s, '') <> alias OR l.domain_id IS NOT NULL)
                             AND CASE WHEN %(domain)s::text IS NULL THEN l.domain_id IS NULL ELSE %(domain)s = '' END
                             THEN 'alias_reserved'
                        ELSE (SELECT code FROM unknown_reference(%(user_id)s, %(domain)s, %(campaign)s, %(splash_id)s,
                                                                 %(overlay_id)s, %(pixels)s, %(channel)s))
                        END AS refusal
              FROM (SELECT) always
              LEFT JOIN domains d ON d.user_id = %(user_id)s AND d.host = %(domain)s
              LEFT JOIN links l ON l.user_id = %(user_id)s AND l.id = %(link_id)s
             CROSS JOIN change_refusal(%(user_id)s, %(targets)s::text[],
                                       targets_of(url, expiredurl, geotarget, devicetarget, languagetarget, deeplink,
                                                  variants, rules),
                                       nullif(%(sent)s::jsonb ->> 'metaimage', metaimage),
                                       d.host) AS wrong)
        SELECT refusal, updated.*, clicks, visitors, top_labels, health,
               CASE WHEN %(channel)s::bigint[] <> '{}'
                      OR num_nonnulls(updated.domain_id, campaign, splash_id, overlay_id, pixels) > 0
                      OR EXISTS (SELECT FROM channel_items i
                                  WHERE i.user_id = %(user_id)s AND i.link_id = %(link_id)s)
                    THEN link_references(%(user_id)s, %(link_id)s) END AS related
          FROM checked
          LEFT JOIN LATERAL change_links(
                    %(user_id)s, CASE WHEN refusal IS NULL THEN ARRAY[%(link_id)s::bigint] END,
                    ARRAY[checked.domain_id], %(sent)s, %(changed)s, %(domain)s IS NOT NULL, %(channel)s, 0)
                 AS updated ON true
          LEFT JOIN totals t ON t.tracked_id = updated.id
          LEFT JOIN link_health h ON h.link_id = updated.id AND updated.url = (SELECT url FROM links l  -- as it was
                                                                                WHERE l.id = updated.id)
        """,
        release_name,
        **to_changes(members),
        user_id=user_id,
        link_id=link_id,
        alias=members.get("custom"),
        changed=changed,
    )
    assert updated
    if updated["refusal"]:
        raise AppError(updated["refusal"])
    if updated["id"] is None:
        raise not_found("link")
    return to_record(updated)


def delete(user_id: int, link_id: int) -> None:
    """Delete a link, or one in the bin, forever. Look twice: a statement does not see where a link has moved since it
    began."""
    statement = """
        WITH binned AS (
            DELETE FROM binned_links WHERE user_id = %(user_id)s AND id = %(link_id)s RETURNING id),
        deleted AS (
            DELETE FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s RETURNING id)
        SELECT id FROM binned UNION ALL SELECT id FROM deleted
        """
    ids = {"user_id": user_id, "link_id": link_id}
    existing(run(statement, **ids) or run(statement, **ids), "link")
