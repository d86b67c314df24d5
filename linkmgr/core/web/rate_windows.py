"""The caller of a request by its key, and the counter of its requests.

Requests without a valid key count against the IP address or network `source`. The bucket of a user contains the plan's
rate, so that a new rate begins a new window.
"""

from typing import Any

from linkmgr.core.database.statements import Row, rows, run_one, run_repeatable, run_unsynced
from linkmgr.core.errors import required
from linkmgr.core.settings import settings

PLAN_WINDOW = 60  # seconds: a plan's own rate is per minute


def identify(key_digest: bytes, address: str, by: int) -> Row:
    """Return the members of a `Caller`, and the `bucket` and the `rate` of its limit. If PostgreSQL keeps the counters,
    count `by` requests and return `count`, `until` and `now` too, which are None otherwise."""
    return _identify(
        """
        WITH caller AS (
            SELECT CASE WHEN key_valid THEN id END AS id, admin, api, CASE WHEN key_valid THEN rate END AS rate,
                   key_valid, suspended <> 'no' AS suspended, email, username, status, expires, registered, updated,
                   domain, version
              FROM accounts,
                   LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                   IS NOT FALSE AND suspended = 'no' AS key_valid) key
             WHERE key_digest = %(key_digest)s AND NOT key_off),
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
        """,
        key_digest=key_digest,
        source=address,
        by=by,
    )


def identify_scoped(key_digest: bytes, network: str, address: str | None, by: int) -> Row:
    """Return the same for a scoped key. A request that the key does not allow counts against the network."""
    return _identify(
        """
        WITH caller AS (
            SELECT CASE WHEN is_valid THEN a.id END AS id, a.admin AND 'admin' = ANY (scopes) AS admin,
                   a.api OR a.admin AS api, CASE WHEN is_valid THEN rate END AS rate, is_current AS key_valid,
                   suspended <> 'no' AS suspended, email, username, status, a.expires, registered,
                   a.updated, domain, a.version,
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
        """,
        key_digest=key_digest,
        source=network,
        address=address,
        by=by,
    )


def _identify(sql: str, **params: Any) -> Row:
    defaults = settings()
    lifetime, window = defaults.key_lifetime_days, defaults.rate_window
    caller = run_repeatable(sql, **params, lifetime=lifetime, window=window, plan_window=PLAN_WINDOW)
    assert caller is not None
    caller["rate"] = f"{caller['rate']} per minute" if caller["rate"] else defaults.rate_limit
    return caller


def note_use(key_id: int, address: str) -> None:
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


# --- counters of requests and attempts per window. `count_in_window` in schema.sql has their rules.

_COUNT = """
    SELECT count, least(ceil(extract(epoch FROM until - clock_timestamp())), %(window)s)::integer AS seconds
      FROM count_in_window(%(bucket)s, %(by)s, %(window)s, %(limit)s)
"""


def count(bucket: str, *, window: int, by: int = 1) -> Row:
    """Return the `count` and the `seconds` until its window ends. `by=0` adds nothing but still locks the row, so that
    concurrent requests are counted one after another."""
    return run_one(_COUNT, bucket=bucket, by=by, window=window, limit=None)


def counts(buckets: list[str], *, window: int) -> list[Row]:
    return rows(
        """
        SELECT bucket, count, ceil(extract(epoch FROM until - clock_timestamp()))::integer AS seconds
          FROM rate_windows
         WHERE bucket = ANY (%(buckets)s::text[])
           AND until BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
        """,
        buckets=buckets,
        window=window,
    )


def spend(bucket: str, amount: int, *, limit: int, window: int) -> Row | None:
    """Add `amount` to a counter and return its `count` and the `seconds` until its window ends. If the count would
    exceed `limit`, add nothing and return None. The count does not depend on the transaction of the request."""
    return run_unsynced(_COUNT, bucket=bucket, by=amount, window=window, limit=limit)


def give_back(bucket: str, amount: int, *, until: float) -> None:
    run_unsynced(
        """
        UPDATE rate_windows SET count = count - %(amount)s
         WHERE bucket = %(bucket)s AND until = to_timestamp(%(until)s)
        RETURNING count
        """,
        bucket=bucket,
        amount=amount,
        until=until,
    )
