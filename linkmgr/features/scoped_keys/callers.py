"""Callers of the API by scoped keys."""

import ipaddress

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, run_repeatable, run_unsynced
from linkmgr.core.errors import required
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import scopes
from linkmgr.core.web.caller import Key
from linkmgr.core.web.operation import Operation
from linkmgr.features.scoped_keys import restricted


def find_key(key: str, by: int) -> Row | None:
    if not keys.is_well_formed(key):  # a mistyped key is not looked up
        return None
    try:
        address = str(ipaddress.ip_address(web_request.address()))
    except ValueError:
        address = None
    return _find(keys.digest(key), address, by)


def _find(key_digest: bytes, address: str | None, by: int) -> Row | None:
    """Do what `_find` of auth.py does, for a scoped key. One that does not allow the request counts
    for the network."""
    return run_repeatable(
        """
        SELECT caller.*, coalesce(plan_rate || ' per minute', %(rate)s) AS rate, count,
               date_part('epoch', until) AS until, date_part('epoch', clock_timestamp()) AS now
          FROM (SELECT CASE WHEN is_valid THEN a.id END AS id,
                       a.admin AND 'admin' = ANY (scopes) AS admin, a.api OR a.admin AS api,
                       plan_rate, is_current AS key_valid, suspended <> 'no' AS suspended, email,
                       username, status, a.expires, registered, a.updated, domain, a.version,
                       json_build_object(
                           'id', k.id, 'scopes', scopes, 'domains', domains, 'own_only', own_only,
                           'expires', k.expires, 'allowed_ips', allowed_ips, 'is_admin', a.admin,
                           'is_allowed', is_allowed,
                           'is_first_use', (last_used = date_trunc('minute', now())) IS NOT TRUE
                       ) AS key,
                       bucket_of(CASE WHEN is_valid THEN a.id END, plan_rate, %(source)s) AS bucket
                  FROM api_keys k
                  JOIN accounts a ON a.id = k.user_id,
                       LATERAL (SELECT (least(k.expires,
                                              k.created + make_interval(days => %(lifetime)s))
                                        > now()) IS NOT FALSE AND suspended = 'no' AS is_current,
                                       allowed_ips IS NULL
                                       OR coalesce(%(address)s::inet <<= ANY (allowed_ips),
                                                   false) AS is_allowed) checked,
                       LATERAL (SELECT is_current AND is_allowed AS is_valid) both_checked,
                       LATERAL (SELECT CASE WHEN is_valid THEN rate END AS plan_rate) limited
                 WHERE k.digest = %(key_digest)s
                    OR (k.previous_digest = %(key_digest)s AND k.previous_until > now())
                OFFSET 0) caller
          LEFT JOIN count_in_window(bucket, %(by)s,
                                    CASE WHEN plan_rate IS NULL THEN %(window)s::float8
                                         ELSE %(plan_window)s::float8 END) ON true
        """,
        key_digest=key_digest,
        source=web_request.network(),
        address=address,
        by=by,
        **settings().of_callers,
    )


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
