"""A key can neither make nor change a key that allows more than itself (`grantable` of
request/scopes.py)."""

from typing import Unpack

import orjson
from flask import has_request_context

from linkmgr.core import keys
from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, rows, run
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import AppError, existing, required
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import scopes
from linkmgr.repository import users


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        """
        SELECT *, version::text FROM key_records
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        user_id=user_id,
        **paging,
    )


def batch(user_id: int, after: int) -> list[Row]:
    return rows(
        """
        SELECT *, version::text FROM key_records
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )


def read(user_id: int, key_id: int) -> Row:
    stored = row(
        """
        SELECT *, version::text FROM key_records
         WHERE user_id = %(user_id)s AND id = %(key_id)s
        """,
        user_id=user_id,
        key_id=key_id,
    )
    return existing(stored, "key")


def default(user_id: int) -> Row:
    key = row(
        """
        SELECT NOT key_off AS active, key_created AS created,
               key_created + make_interval(days => %(lifetime)s) AS expires
          FROM users
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        lifetime=settings().key_lifetime_days,
    )
    return {"name": "default", "prefix": keys.PREFIX} | existing(key, "user")


def _limits(user_id: int, members: Row | None = None) -> str:
    """Return the limits of keys that the caller may make, as JSON: those of its own key, or those
    of the user in the console and in commands, where there is no key. Check that the `members` of a
    key may have the scope `admin`."""
    if has_request_context() and web_request.current().is_api:
        caller = web_request.current().caller
        limits = scopes.grantable(caller, is_admin=bool(caller.admin))
    else:
        # A member who works in the account of an administrator is none.
        is_admin = web_request.is_admin() and users.owner(user_id)["admin"]
        limits = scopes.grantable(None, is_admin=is_admin)
    if members and "admin" in (members["scopes"] or ()) and "admin" not in limits["scopes"]:
        raise AppError("admin_scope")
    return orjson.dumps(limits).decode()


def add(user_id: int, members: Row) -> Row:
    added = run(
        """
        INSERT INTO api_keys (user_id, name, prefix, digest, scopes, domains, own_only, expires,
                              allowed_ips, made_by)
        SELECT require_room(%(user_id)s, 'api_keys', 100, 'keys_full'), %(name)s, %(prefix)s,
               %(digest)s, scopes, domains, own_only, expires, allowed_ips,
               person_of(nullif(current_setting('linkmgr.actor', true), '')::jsonb, %(user_id)s)
          FROM (SELECT %(scopes)s::text[] AS scopes, nullif(%(domains)s::bigint[], '{}') AS domains,
                       %(own_only)s::boolean AS own_only,
                       nullif(%(expires)s, '')::timestamptz AS expires,
                       nullif(%(allowed_ips)s::text[]::cidr[], '{}') AS allowed_ips) new
         WHERE is_key_within(scopes, expires, allowed_ips, %(grantable)s::jsonb)
           AND require_rows('domains', %(user_id)s, domains, 'domains_unknown')
        RETURNING id
        """,
        **members,
        user_id=user_id,
        grantable=_limits(user_id, members),
        **_stored(members["secret"]),
    )
    return required(added, "key_exceeded")


def _stored(secret: str) -> Row:
    return {"prefix": secret[: keys.VISIBLE], "digest": keys.digest(secret)}


def _accepted(user_id: int, key_id: int, changed: Row | None) -> Row:
    if changed is None:
        read(user_id, key_id)  # raises not_found
        raise AppError("key_exceeded")
    return changed


def update(user_id: int, key_id: int, members: Row) -> Row:
    updated = run(
        """
        UPDATE api_keys k
           SET name = coalesce(%(name)s::text, name), scopes = new.scopes, domains = new.domains,
               expires = new.expires, allowed_ips = new.allowed_ips
          FROM (SELECT id, coalesce(%(scopes)s::text[], scopes) AS scopes,
                       nullif(coalesce(%(domains)s::bigint[], domains), '{}') AS domains,
                       CASE WHEN %(expires)s::text IS NULL THEN expires
                            ELSE nullif(%(expires)s, '')::timestamptz END AS expires,
                       nullif(coalesce(%(allowed_ips)s::text[]::cidr[], allowed_ips),
                              '{}') AS allowed_ips
                  FROM api_keys
                 WHERE user_id = %(user_id)s AND id = %(key_id)s
                   AND is_key_within(scopes, expires, allowed_ips, %(grantable)s::jsonb)
                   FOR NO KEY UPDATE) new
         WHERE k.user_id = %(user_id)s AND k.id = new.id
           AND is_key_within(new.scopes, new.expires, new.allowed_ips, %(grantable)s::jsonb)
           AND require_rows('domains', k.user_id,
                            ARRAY(SELECT unnest(new.domains) EXCEPT SELECT unnest(k.domains)),
                            'domains_unknown')
        RETURNING k.id
        """,
        **members,
        user_id=user_id,
        key_id=key_id,
        grantable=_limits(user_id, members),
    )
    _accepted(user_id, key_id, updated)
    return read(user_id, key_id)


def rotate(user_id: int, key_id: int, *, secret: str, overlap: int, version: str | None = None) -> Row:
    """Replace a key, unless `version` is not that of its row. The previous one works for `overlap`
    more seconds."""
    rotated = run(
        """
        UPDATE api_keys
           SET prefix = %(prefix)s, digest = %(digest)s, created = now(),
               previous_digest = CASE WHEN %(overlap)s > 0 THEN digest END,
               previous_until = CASE WHEN %(overlap)s > 0
                                       THEN now() + make_interval(secs => %(overlap)s) END
         WHERE user_id = %(user_id)s AND id = %(key_id)s
           AND version::text = coalesce(%(version)s::text, version::text)
           AND is_key_within(scopes, expires, allowed_ips, %(grantable)s::jsonb)
        RETURNING id
        """,
        user_id=user_id,
        key_id=key_id,
        overlap=overlap,
        version=version,
        grantable=_limits(user_id),
        **_stored(secret),
    )
    if rotated is None and version not in (None, read(user_id, key_id)["version"]):
        raise AppError("changed_meanwhile")
    _accepted(user_id, key_id, rotated)
    return read(user_id, key_id)


def delete(user_id: int, key_id: int) -> None:
    deleted = run(
        """
        DELETE FROM api_keys
         WHERE user_id = %(user_id)s AND id = %(key_id)s
           AND is_key_within(scopes, expires, allowed_ips, %(grantable)s::jsonb)
        RETURNING id
        """,
        user_id=user_id,
        key_id=key_id,
        grantable=_limits(user_id),
    )
    _accepted(user_id, key_id, deleted)


def set_default(user_id: int, *, active: bool) -> None:
    """Turn the key that each user has on or off. It stays on unless there is another valid key."""
    changed = run(
        """
        UPDATE users SET key_off = NOT %(active)s::boolean
         WHERE id = %(user_id)s
           AND (%(active)s OR EXISTS (SELECT FROM api_keys
                                       WHERE user_id = %(user_id)s
                                         AND (least(expires,
                                                    created + make_interval(days => %(lifetime)s)) >
                                                    now())
                                             IS NOT FALSE))
        RETURNING id
        """,
        user_id=user_id,
        lifetime=settings().key_lifetime_days,
        active=active,
    )
    required(changed, "default_key_only")
