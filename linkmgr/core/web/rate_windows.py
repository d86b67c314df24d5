"""The caller of a request by its key, and the counter of its requests.

Requests without a valid key count against the IP address or network `source`. The bucket of a user contains the plan's
rate, so that a new rate begins a new window.
"""

from typing import Any

from linkmgr.core.database.statements import Row, row, run_one, run_repeatable, run_unsynced
from linkmgr.core.settings import settings

PLAN_WINDOW = 60  # seconds: a plan's own rate is per minute


def identify(key_digest: bytes, address: str, by: int) -> Row:
    """Return the members of a `Caller`, and the `bucket` and the `rate` of its limit. If PostgreSQL keeps the counters,
    count `by` requests and return `count`, `until` and `now` too, which are None otherwise."""
    return counted_caller(
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


def counted_caller(sql: str, **params: Any) -> Row:
    defaults = settings()
    lifetime, window = defaults.key_lifetime_days, defaults.rate_window
    caller = run_repeatable(sql, **params, lifetime=lifetime, window=window, plan_window=PLAN_WINDOW)
    assert caller is not None
    caller["rate"] = f"{caller['rate']} per minute" if caller["rate"] else defaults.rate_limit
    return caller


# --- counters of requests and attempts per window. `count_in_window` in schema.sql has their rules.

_COUNT = """
    SELECT count, least(ceil(extract(epoch FROM until - clock_timestamp())), %(window)s)::integer AS seconds
      FROM count_in_window(%(bucket)s, %(by)s, %(window)s, %(limit)s)
"""


def count(bucket: str, *, window: int, by: int = 1) -> Row:
    """Return the `count` and the `seconds` until its window ends. `by=0` adds nothing but still locks the row, so that
    concurrent requests are counted one after another."""
    return run_one(_COUNT, bucket=bucket, by=by, window=window, limit=None)


def current(bucket: str, *, window: int) -> Row:
    """Return the `count` and the `seconds` until its window ends, at least 1, and count nothing."""
    counter = row(
        """
        SELECT count,
               greatest(1, least(ceil(extract(epoch FROM until - clock_timestamp())), %(window)s))::integer AS seconds
          FROM rate_windows
         WHERE bucket = %(bucket)s
           AND until BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
        """,
        bucket=bucket,
        window=window,
    )
    return counter or {"count": 0, "seconds": 1}


def spend(bucket: str, amount: int, *, limit: int, window: int) -> Row | None:
    """Add `amount` to a counter and return its `count` and the `seconds` until its window ends. If the count would
    exceed `limit`, add nothing and return None. The count does not depend on the transaction of the request."""
    return run_unsynced(_COUNT, bucket=bucket, by=amount, window=window, limit=limit)
