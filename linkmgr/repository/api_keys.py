"""Scoped keys: API keys that users make for their programs.

A key can neither make nor change a key that allows more than itself (`grantable` of web/scopes.py).
"""

import orjson
from flask import has_request_context

from linkmgr import keys
from linkmgr.db.statements import Row, row, run
from linkmgr.errors import AppError, existing, not_found
from linkmgr.repository.tables import Table
from linkmgr.settings import settings
from linkmgr.web import request as web_request
from linkmgr.web import scopes

KEYS = Table(
    "api_keys",
    "key",
    """
    *, coalesce(domains, '{}') AS domains, coalesce(allowed_ips::text[], '{}') AS allowed_ips,
    CASE WHEN previous_until > now() THEN previous_until END AS previous_until, version::text
    """,
    has_usage=False,
)
index, batch, read = KEYS.index, KEYS.batch, KEYS.read


def default(user_id: int) -> Row:
    """Return the key that each user has."""
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
    if key is None:
        raise not_found("user")
    return {"name": "default", "prefix": keys.PREFIX} | key


def owner(user_id: int) -> Row:
    user = row("SELECT admin, email FROM users WHERE id = %(user_id)s", user_id=user_id)
    if user is None:
        raise not_found("user")
    return user


def _limits(user_id: int, members: Row | None = None) -> str:
    """Return the limits of keys that the caller may make, as JSON: those of its own key, or those of the user in the
    console and in commands, where there is no key. Check that the `members` of a key may have the scope `admin`."""
    if has_request_context() and web_request.current().is_api:
        caller = web_request.current().caller
        limits = scopes.grantable(caller, is_admin=bool(caller.admin))
    else:
        limits = scopes.grantable(None, is_admin=owner(user_id)["admin"])
    if members and "admin" in (members["scopes"] or ()) and "admin" not in limits["scopes"]:
        raise AppError("admin_scope")
    return orjson.dumps(limits).decode()


def add(user_id: int, members: Row) -> Row:
    """Store the digest of the key `secret`, and return the id."""
    limits, secret = _limits(user_id, members), members["secret"]
    result = run(
        """
        WITH new AS (
            SELECT %(scopes)s::text[] AS scopes, nullif(%(domains)s::bigint[], '{}') AS domains,
                   %(own_only)s::boolean AS own_only, nullif(%(expires)s, '')::timestamptz AS expires,
                   nullif(%(allowed_ips)s::text[]::cidr[], '{}') AS allowed_ips),
        checked AS (
            SELECT CASE WHEN is_key_within(scopes, domains, own_only, expires, allowed_ips,
                                           %(grantable)s::jsonb) IS NOT TRUE THEN 'key_exceeded'
                        WHEN EXISTS (SELECT FROM unnest(domains) AS domain_id
                                      WHERE domain_id NOT IN (SELECT id FROM domains WHERE user_id = %(user_id)s))
                        THEN 'domains_unknown' END AS refusal
              FROM new),
        added AS (
            INSERT INTO api_keys (user_id, name, prefix, digest, scopes, domains, own_only, expires, allowed_ips)
            SELECT %(user_id)s, %(name)s, %(prefix)s, %(digest)s, new.* FROM new, checked WHERE refusal IS NULL
            RETURNING id)
        SELECT id, refusal FROM checked LEFT JOIN added ON true
        """,
        **members,
        user_id=user_id,
        prefix=secret[: keys.SHOWN],
        digest=keys.digest(secret),
        grantable=limits,
    )
    assert result is not None
    if result["refusal"]:
        raise AppError(result["refusal"])
    return {"id": result["id"]}


def update(user_id: int, key_id: int, members: Row) -> Row:
    """Change the members that were sent, if the caller may make both the old and the new key."""
    result = run(
        """
        WITH stored AS (
            SELECT * FROM api_keys WHERE user_id = %(user_id)s AND id = %(key_id)s FOR NO KEY UPDATE),
        new AS (
            SELECT id, coalesce(%(name)s::text, name) AS name, coalesce(%(scopes)s::text[], scopes) AS scopes,
                   nullif(coalesce(%(domains)s::bigint[], domains), '{}') AS domains,
                   CASE WHEN %(expires)s::text IS NULL THEN expires
                        ELSE nullif(%(expires)s, '')::timestamptz END AS expires,
                   nullif(coalesce(%(allowed_ips)s::text[]::cidr[], allowed_ips), '{}') AS allowed_ips
              FROM stored),
        checked AS (
            SELECT CASE WHEN (is_key_within(s.scopes, s.domains, own_only, s.expires, s.allowed_ips,
                                            %(grantable)s::jsonb)
                              AND is_key_within(n.scopes, n.domains, own_only, n.expires, n.allowed_ips,
                                                %(grantable)s::jsonb)) IS NOT TRUE THEN 'key_exceeded'
                        -- A stored domain may have been deleted since.
                        WHEN EXISTS (SELECT FROM unnest(n.domains) AS domain_id
                                      WHERE domain_id <> ALL (coalesce(s.domains, '{}'))
                                        AND domain_id NOT IN (SELECT id FROM domains WHERE user_id = %(user_id)s))
                        THEN 'domains_unknown' END AS refusal
              FROM stored s, new n),
        updated AS (
            UPDATE api_keys k
               SET name = new.name, scopes = new.scopes, domains = new.domains, expires = new.expires,
                   allowed_ips = new.allowed_ips
              FROM new, checked
             WHERE k.user_id = %(user_id)s AND k.id = new.id AND refusal IS NULL)
        SELECT refusal FROM checked
        """,
        **members,
        user_id=user_id,
        key_id=key_id,
        grantable=_limits(user_id, members),
    )
    refusal = existing(result, "key")["refusal"]
    if refusal:
        raise AppError(refusal)
    return read(user_id, key_id)


def rotate(user_id: int, key_id: int, *, secret: str, overlap: int, version: str | None = None) -> Row:
    """Replace a key, unless `version` is not that of its row. The previous one works for `overlap` more seconds. Return
    the new prefix and this time."""
    rotated = run(
        """
        UPDATE api_keys
           SET prefix = %(prefix)s, digest = %(digest)s, created = now(),
               previous_digest = CASE WHEN %(overlap)s > 0 THEN digest END,
               previous_until = CASE WHEN %(overlap)s > 0 THEN now() + make_interval(secs => %(overlap)s) END
         WHERE user_id = %(user_id)s AND id = %(key_id)s
           AND (%(version)s::text IS NULL OR version::text = %(version)s)
           AND is_key_within(scopes, domains, own_only, expires, allowed_ips, %(grantable)s::jsonb)
        RETURNING prefix, previous_until
        """,
        user_id=user_id,
        key_id=key_id,
        prefix=secret[: keys.SHOWN],
        digest=keys.digest(secret),
        overlap=overlap,
        version=version,
        grantable=_limits(user_id),
    )
    if rotated is None:
        stored = read(user_id, key_id)  # raises not_found
        raise AppError("key_exceeded" if version in (None, stored["version"]) else "changed_meanwhile")
    return rotated


def delete(user_id: int, key_id: int) -> None:
    deleted = run(
        """
        DELETE FROM api_keys
         WHERE user_id = %(user_id)s AND id = %(key_id)s
           AND is_key_within(scopes, domains, own_only, expires, allowed_ips, %(grantable)s::jsonb)
        RETURNING id
        """,
        user_id=user_id,
        key_id=key_id,
        grantable=_limits(user_id),
    )
    if deleted is None:
        read(user_id, key_id)  # raises not_found
        raise AppError("key_exceeded")


def set_default(user_id: int, *, active: bool) -> None:
    """Turn the key that each user has on or off. It stays on unless there is another valid key."""
    changed = run(
        """
        UPDATE users SET key_off = NOT %(active)s::boolean
         WHERE id = %(user_id)s
           AND (%(active)s OR EXISTS (SELECT FROM api_keys
                                       WHERE user_id = %(user_id)s
                                         AND (least(expires, created + make_interval(days => %(lifetime)s)) > now())
                                             IS NOT FALSE))
        RETURNING id
        """,
        user_id=user_id,
        lifetime=settings().key_lifetime_days,
        active=active,
    )
    if changed is None:
        raise AppError("default_key_only")
