"""Callers of the API by scoped keys."""

import ipaddress

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, run_repeatable, run_unsynced
from linkmgr.core.errors import required
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import scopes
from linkmgr.core.web.auth import find
from linkmgr.core.web.caller import Key
from linkmgr.core.web.operation import Operation
from linkmgr.features.scoped_keys import restricted


def find_key(key: str, by: int) -> Row:
    if not keys.is_well_formed(key):  # a mistyped key is not looked up
        return find(keys.digest(""), by)
    try:
        address = str(ipaddress.ip_address(web_request.address()))
    except ValueError:
        address = None
    return _find(keys.digest(key), web_request.network(), address, by)


def _find(key_digest: bytes, network: str, address: str | None, by: int) -> Row:
    """Do what `find` of auth.py does, for a scoped key. One that does not allow the request counts
    for the network."""
    caller = run_repeatable(
        """
        WITH caller AS (
            SELECT CASE WHEN is_valid THEN a.id END AS id, a.admin
               AND 'admin' = ANY (scopes) AS admin,
                   a.api OR a.admin AS api, CASE WHEN is_valid THEN rate END AS plan_rate,
                   is_current AS key_valid,
                   suspended <> 'no' AS suspended, email, username, status, a.expires, registered,
                   a.updated, domain, a.version,
                   json_build_object(
                       'id', k.id, 'scopes', scopes, 'domains', domains, 'own_only', own_only,
                       'expires', k.expires,
                       'allowed_ips', allowed_ips, 'is_admin', a.admin, 'is_allowed', is_allowed,
                       'is_first_use', (last_used = date_trunc('minute', now())) IS NOT TRUE) AS key
              FROM api_keys k
              JOIN accounts a ON a.id = k.user_id,
                   LATERAL (SELECT (least(k.expires,
                                          k.created + make_interval(days => %(lifetime)s)) > now())
                                   IS NOT FALSE AND suspended = 'no' AS is_current,
                                   allowed_ips IS NULL
                                   OR coalesce(%(address)s::inet <<= ANY (allowed_ips),
                                               false) AS is_allowed) checked,
                   LATERAL (SELECT is_current AND is_allowed AS is_valid) both_checked
             WHERE k.digest = %(key_digest)s
                OR (k.previous_digest = %(key_digest)s AND k.previous_until > now())),
        bucket AS (
            SELECT coalesce('user:' || id || coalesce(' at ' || plan_rate, ''),
                            'address:' || %(source)s) AS bucket,
                   CASE WHEN plan_rate IS NULL OR %(window)s::float8 IS NULL THEN %(window)s::float8
                        ELSE 60 END AS seconds  -- a plan's rate is per minute
              FROM (SELECT 1) always
              LEFT JOIN caller ON true)
        SELECT bucket, coalesce(plan_rate || ' per minute', %(rate)s) AS rate, count,
               date_part('epoch', until) AS until, date_part('epoch', clock_timestamp()) AS now,
               caller.*
          FROM bucket
          LEFT JOIN count_in_window(bucket, %(by)s, seconds) ON true
          LEFT JOIN caller ON true
        """,
        key_digest=key_digest,
        source=network,
        address=address,
        by=by,
        **settings().of_callers,
    )
    assert caller is not None
    return caller


def use_key(key: Key, stated: Operation | None) -> None:
    if key.is_first_use:
        _note_use(key.id, web_request.address())
    if stated:
        scopes.require(key, stated.scope, stated.restricted, stated.selections)
    if key.is_restricted:
        restriction = restricted.restrict(key.id, own_only=key.own_only, domains=key.domains)
        web_request.current().at_end.enter_context(restriction)


def _note_use(key_id: int, address: str) -> None:
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
