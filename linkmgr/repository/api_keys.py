"""The caller of a request by its key, and scoped keys: API keys that users make for their programs.

A key can neither make nor change a key that allows more than itself (`grantable` of request/scopes.py).
"""

from typing import Any

import orjson
from flask import has_request_context

from linkmgr import keys
from linkmgr.db.statements import Row, row, run, run_repeatable, run_unsynced
from linkmgr.errors import AppError, existing, required
from linkmgr.repository.tables import Table
from linkmgr.request import rate_limit, scopes
from linkmgr.request import request as web_request
from linkmgr.settings import settings

KEYS = Table(
    "api_keys",
    "key",
    columns="""
    *, coalesce(domains, '{}') AS domains, coalesce(allowed_ips::text[], '{}') AS allowed_ips,
    CASE WHEN previous_until > now() THEN previous_until END AS previous_until, version::text
    """,
    has_usage=False,
)
index, batch, read = KEYS.index, KEYS.batch, KEYS.read
_WITHIN = "is_key_within(scopes, domains, own_only, expires, allowed_ips, %(grantable)s::jsonb)"


# The statement after `caller`, the caller of the request. Requests without a valid key count against the IP address or
# network `source`. The bucket of a user contains the plan's rate, so that a new rate begins a new window.
_COUNTED = """
    bucket AS (
        SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(source)s) AS bucket,
               CASE WHEN rate IS NULL OR %(window)s::float8 IS NULL THEN %(window)s::float8
                    ELSE %(plan_window)s::float8 END AS seconds
          FROM (SELECT 1) always
          LEFT JOIN caller ON true)
    SELECT bucket, count, date_part('epoch', until) AS until, date_part('epoch', clock_timestamp()) AS now, caller.*
      FROM bucket
      LEFT JOIN count_in_window(bucket, %(by)s, seconds) ON true
      LEFT JOIN caller ON true
"""
_BY_KEY = f"""
    WITH caller AS (
        SELECT CASE WHEN key_valid THEN id END AS id, admin, api, CASE WHEN key_valid THEN rate END AS rate,
               key_valid, suspended <> 'no' AS suspended, email, username, status, expires, registered, version
          FROM accounts,
               LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                               IS NOT FALSE AND suspended = 'no' AS key_valid) key
         WHERE key_digest = %(key_digest)s AND NOT key_off),
    {_COUNTED}
"""  # noqa: S608 - static SQL
_BY_SCOPED_KEY = f"""
    WITH caller AS (
        SELECT CASE WHEN is_valid THEN a.id END AS id, a.admin AND 'admin' = ANY (scopes) AS admin,
               a.api OR a.admin AS api, CASE WHEN is_valid THEN rate END AS rate, is_current AS key_valid,
               suspended <> 'no' AS suspended, email, username, status, a.expires, registered, a.version,
               json_build_object(
                   'id', k.id, 'scopes', scopes, 'domains', domains, 'own_only', own_only, 'expires', k.expires,
                   'allowed_ips', allowed_ips, 'is_admin', a.admin, 'is_allowed', is_allowed,
                   'is_first_use', (last_used = date_trunc('minute', now())) IS NOT TRUE) AS key
          FROM api_keys k
          JOIN accounts a ON a.id = k.user_id,
               LATERAL (SELECT (least(k.expires, k.created + make_interval(days => %(lifetime)s)) > now())
                               IS NOT FALSE AND suspended = 'no' AS is_current,
                               allowed_ips IS NULL
                               OR coalesce(%(address)s::inet <<= ANY (allowed_ips), false) AS is_allowed) checked,
               LATERAL (SELECT is_current AND is_allowed AS is_valid) both_checked
         WHERE k.digest = %(key_digest)s
            OR (k.previous_digest = %(key_digest)s AND k.previous_until > now())),
    {_COUNTED}
"""  # noqa: S608


def identify(key_digest: bytes, address: str, by: int) -> Row:
    """Return the members of a `Caller`. If PostgreSQL keeps the counters, count `by` requests and return
    `count`, `until` and `now` too, which are None otherwise."""
    return _identify(_BY_KEY, key_digest=key_digest, source=address, by=by)


def identify_scoped(key_digest: bytes, network: str, address: str | None, by: int) -> Row:
    """Return the members of a `Caller` for a scoped key, like identify. A request that the key does not allow
    counts against the network."""
    return _identify(_BY_SCOPED_KEY, key_digest=key_digest, source=network, address=address, by=by)


def _identify(sql: str, **params: Any) -> Row:
    lifetime, window = settings().key_lifetime_days, rate_limit.window()
    caller = run_repeatable(sql, **params, lifetime=lifetime, window=window, plan_window=rate_limit.PLAN_WINDOW)
    assert caller is not None
    return caller


def record_use(key_id: int, address: str) -> None:
    """Store the time and the IP address of a use. The first request of each minute calls this."""
    used = run_unsynced(
        """
        UPDATE api_keys SET last_used = date_trunc('minute', now()), last_address = %(address)s
         WHERE id = %(key_id)s
        RETURNING id
        """,
        key_id=key_id,
        address=address,
    )
    required(used, "key_unknown")  # deleted meanwhile


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
    return {"name": "default", "prefix": keys.PREFIX} | existing(key, "user")


def owner(user_id: int) -> Row:
    return existing(row("SELECT admin, email FROM users WHERE id = %(user_id)s", user_id=user_id), "user")


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
    added = run(
        f"""
        INSERT INTO api_keys (user_id, name, prefix, digest, scopes, domains, own_only, expires, allowed_ips)
        SELECT %(user_id)s, %(name)s, %(prefix)s, %(digest)s, scopes, domains, own_only, expires, allowed_ips
          FROM (SELECT %(scopes)s::text[] AS scopes, nullif(%(domains)s::bigint[], '{{}}') AS domains,
                       %(own_only)s::boolean AS own_only, nullif(%(expires)s, '')::timestamptz AS expires,
                       nullif(%(allowed_ips)s::text[]::cidr[], '{{}}') AS allowed_ips) new
         WHERE {_WITHIN}
        RETURNING id
        """,  # noqa: S608 - static SQL
        **members,
        user_id=user_id,
        grantable=_limits(user_id, members),
        **_stored(members["secret"]),
    )
    return required(added, "key_exceeded")


def _stored(secret: str) -> Row:
    return {"prefix": secret[: keys.SHOWN], "digest": keys.digest(secret)}


def _accepted(user_id: int, key_id: int, changed: Row | None) -> Row:
    """Return the changed row. Raise an error if there is none, because the caller may not make such a key."""
    if changed is None:
        read(user_id, key_id)  # raises not_found
        raise AppError("key_exceeded")
    return changed


def update(user_id: int, key_id: int, members: Row) -> Row:
    """Change the members that were sent, if the caller may make both the old and the new key."""
    updated = run(
        f"""
        UPDATE api_keys k
           SET name = coalesce(%(name)s::text, name), scopes = new.scopes, domains = new.domains,
               expires = new.expires, allowed_ips = new.allowed_ips
          FROM (SELECT id, own_only, coalesce(%(scopes)s::text[], scopes) AS scopes,
                       nullif(coalesce(%(domains)s::bigint[], domains), '{{}}') AS domains,
                       CASE WHEN %(expires)s::text IS NULL THEN expires
                            ELSE nullif(%(expires)s, '')::timestamptz END AS expires,
                       nullif(coalesce(%(allowed_ips)s::text[]::cidr[], allowed_ips), '{{}}') AS allowed_ips
                  FROM api_keys
                 WHERE user_id = %(user_id)s AND id = %(key_id)s AND {_WITHIN}
                   FOR NO KEY UPDATE) new
         WHERE k.user_id = %(user_id)s AND k.id = new.id
           AND is_key_within(new.scopes, new.domains, new.own_only, new.expires, new.allowed_ips, %(grantable)s::jsonb)
        RETURNING k.id
        """,  # noqa: S608
        **members,
        user_id=user_id,
        key_id=key_id,
        grantable=_limits(user_id, members),
    )
    _accepted(user_id, key_id, updated)
    return read(user_id, key_id)


def rotate(user_id: int, key_id: int, *, secret: str, overlap: int, version: str | None = None) -> Row:
    """Replace a key, unless `version` is not that of its row. The previous one works for `overlap` more seconds. Return
    the new prefix and this time."""
    rotated = run(
        f"""
        UPDATE api_keys
           SET prefix = %(prefix)s, digest = %(digest)s, created = now(),
               previous_digest = CASE WHEN %(overlap)s > 0 THEN digest END,
               previous_until = CASE WHEN %(overlap)s > 0 THEN now() + make_interval(secs => %(overlap)s) END
         WHERE user_id = %(user_id)s AND id = %(key_id)s AND version::text = coalesce(%(version)s::text, version::text)
           AND {_WITHIN}
        RETURNING prefix, previous_until
        """,  # noqa: S608
        user_id=user_id,
        key_id=key_id,
        overlap=overlap,
        version=version,
        grantable=_limits(user_id),
        **_stored(secret),
    )
    if rotated is None and version not in (None, read(user_id, key_id)["version"]):
        raise AppError("changed_meanwhile")
    return _accepted(user_id, key_id, rotated)


def delete(user_id: int, key_id: int) -> None:
    deleted = run(
        f"DELETE FROM api_keys WHERE user_id = %(user_id)s AND id = %(key_id)s AND {_WITHIN} RETURNING id",  # noqa: S608
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
                                         AND (least(expires, created + make_interval(days => %(lifetime)s)) > now())
                                             IS NOT FALSE))
        RETURNING id
        """,
        user_id=user_id,
        lifetime=settings().key_lifetime_days,
        active=active,
    )
    required(changed, "default_key_only")
