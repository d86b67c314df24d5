"""The caller of a request by its key, and the count of its requests. See repository/rate_windows.py."""

from linkmgr.db.statements import Row, run_repeatable, run_unsynced
from linkmgr.errors import AppError
from linkmgr.settings import settings
from linkmgr.web import rate_limit


def identify(key_digest: bytes, address: str, by: int) -> Row:
    """Return the members of web.caller.Caller. If PostgreSQL keeps the counters, count `by` requests and return
    `count`, `until` and `now` too, which are None otherwise.

    Requests without a valid key count against the IP address. The bucket of a user contains the plan's rate, so that
    a new rate begins a new window.
    """
    caller = run_repeatable(
        """
        WITH caller AS (
            SELECT CASE WHEN key_valid THEN id END AS id, admin, api, CASE WHEN key_valid THEN rate END AS rate,
                   key_valid, email, username, status, expires, registered, version
              FROM accounts,
                   LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                   IS NOT FALSE AS key_valid) key
             WHERE key_digest = %(key_digest)s AND NOT key_off),
        bucket AS (
            SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(address)s) AS bucket, rate
              FROM (SELECT 1) always
              LEFT JOIN caller ON true),
        counter AS (
            INSERT INTO rate_windows AS w (bucket, count, until)
            SELECT bucket, %(by)s::integer,
                   clock_timestamp() + make_interval(secs =>
                       CASE WHEN rate IS NULL THEN %(window)s::float8 ELSE %(plan_window)s::float8 END)
              FROM bucket
             WHERE %(window)s::float8 IS NOT NULL
            ON CONFLICT (bucket) DO UPDATE
               SET count = CASE WHEN w.until BETWEEN clock_timestamp() AND excluded.until + interval '5 seconds'
                                THEN w.count ELSE 0 END + excluded.count,
                   until = CASE WHEN w.until BETWEEN clock_timestamp() AND excluded.until + interval '5 seconds'
                                THEN w.until ELSE excluded.until END
            RETURNING count, date_part('epoch', until) AS until, date_part('epoch', clock_timestamp()) AS now)
        SELECT bucket.bucket, counter.*, caller.*
          FROM bucket
          LEFT JOIN counter ON true
          LEFT JOIN caller ON true
        """,
        key_digest=key_digest,
        address=address,
        lifetime=settings().key_lifetime_days,
        window=rate_limit.window(),
        plan_window=rate_limit.PLAN_WINDOW,
        by=by,
    )
    assert caller is not None
    return caller


def identify_scoped(key_digest: bytes, network: str, address: str | None, by: int) -> Row:
    """Return the members of web.caller.Caller for a scoped key, like identify. A request that the key does not allow
    counts against the network."""
    caller = run_repeatable(
        """
        WITH caller AS (
            SELECT CASE WHEN is_valid THEN a.id END AS id, a.admin AND 'admin' = ANY (scopes) AS admin,
                   a.api OR a.admin AS api, CASE WHEN is_valid THEN rate END AS rate, is_current AS key_valid,
                   email, username, status, a.expires, registered, a.version,
                   json_build_object(
                       'id', k.id, 'scopes', scopes, 'domains', domains, 'own_only', own_only, 'expires', k.expires,
                       'allowed_ips', allowed_ips, 'is_admin', a.admin, 'is_allowed', is_allowed,
                       'is_first_use', (last_used = date_trunc('minute', now())) IS NOT TRUE) AS key
              FROM api_keys k
              JOIN accounts a ON a.id = k.user_id,
                   LATERAL (SELECT (least(k.expires, k.created + make_interval(days => %(lifetime)s)) > now())
                                   IS NOT FALSE AS is_current,
                                   allowed_ips IS NULL
                                   OR coalesce(%(address)s::inet <<= ANY (allowed_ips), false) AS is_allowed) checked,
                   LATERAL (SELECT is_current AND is_allowed AS is_valid) both_checked
             WHERE k.digest = %(key_digest)s
                OR (k.previous_digest = %(key_digest)s AND k.previous_until > now())),
        bucket AS (
            SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(network)s) AS bucket, rate
              FROM (SELECT 1) always
              LEFT JOIN caller ON true),
        counter AS (
            INSERT INTO rate_windows AS w (bucket, count, until)
            SELECT bucket, %(by)s::integer,
                   clock_timestamp() + make_interval(secs =>
                       CASE WHEN rate IS NULL THEN %(window)s::float8 ELSE %(plan_window)s::float8 END)
              FROM bucket
             WHERE %(window)s::float8 IS NOT NULL
            ON CONFLICT (bucket) DO UPDATE
               SET count = CASE WHEN w.until BETWEEN clock_timestamp() AND excluded.until + interval '5 seconds'
                                THEN w.count ELSE 0 END + excluded.count,
                   until = CASE WHEN w.until BETWEEN clock_timestamp() AND excluded.until + interval '5 seconds'
                                THEN w.until ELSE excluded.until END
            RETURNING count, date_part('epoch', until) AS until, date_part('epoch', clock_timestamp()) AS now)
        SELECT bucket.bucket, counter.*, caller.*
          FROM bucket
          LEFT JOIN counter ON true
          LEFT JOIN caller ON true
        """,
        key_digest=key_digest,
        network=network,
        address=address,
        lifetime=settings().key_lifetime_days,
        window=rate_limit.window(),
        plan_window=rate_limit.PLAN_WINDOW,
        by=by,
    )
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
    if used is None:  # deleted meanwhile
        raise AppError("key_unknown")
