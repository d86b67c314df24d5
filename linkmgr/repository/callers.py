"""The caller of a request, read by one statement, and counters of requests and attempts.

A window that ends later than one that began now is left from a longer setting or from before the clock was set back:
a new one begins. The 5 seconds are more than a statement takes, whose concurrent one may have begun the window later.
"""

from linkmgr.db.statements import Row, row, rows, run, run_unsynced
from linkmgr.settings import settings
from linkmgr.web import rate_limit


def identify(key_digest: bytes, address: str) -> Row:
    """The caller as web.caller.Caller, and, where PostgreSQL keeps the counters, the request counted.

    Requests with a key that does not hold are counted by their address, those of a user anew under another rate.
    """
    window = rate_limit.window()
    if window is None:
        found = row(
            """
            SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(address)s) AS bucket,
                   caller.*
              FROM (SELECT 1) always
              LEFT JOIN (SELECT CASE WHEN key_valid THEN id END AS id, admin, api,
                                CASE WHEN key_valid THEN rate END AS rate, key_valid,
                                email, username, status, expires, registered
                           FROM accounts,
                                LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                                IS NOT FALSE AS key_valid) key
                          WHERE key_digest = %(key_digest)s) caller ON true
            """,
            key_digest=key_digest,
            address=address,
            lifetime=settings().key_lifetime_days,
        )
    else:
        found = row(
            """
            WITH caller AS (
                SELECT CASE WHEN key_valid THEN id END AS id, admin, api,
                       CASE WHEN key_valid THEN rate END AS rate, key_valid,
                       email, username, status, expires, registered
                  FROM accounts,
                       LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                       IS NOT FALSE AS key_valid) key
                 WHERE key_digest = %(key_digest)s),
            counted AS (
                INSERT INTO rate_windows AS w (bucket, count, until)
                SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(address)s), 1,
                       clock_timestamp() + make_interval(secs =>
                           CASE WHEN rate IS NULL THEN %(window)s::float8 ELSE %(plan_window)s::float8 END)
                  FROM (SELECT 1) always
                  LEFT JOIN caller ON true
                ON CONFLICT (bucket) DO UPDATE
                   SET count = CASE WHEN w.until BETWEEN clock_timestamp() AND excluded.until + interval '5 seconds'
                                    THEN w.count + 1 ELSE 1 END,
                       until = CASE WHEN w.until BETWEEN clock_timestamp() AND excluded.until + interval '5 seconds'
                                    THEN w.until ELSE excluded.until END
                RETURNING bucket, count, date_part('epoch', until) AS until,
                          date_part('epoch', clock_timestamp()) AS now)
            SELECT counted.*, caller.* FROM counted LEFT JOIN caller ON true
            """,
            key_digest=key_digest,
            address=address,
            lifetime=settings().key_lifetime_days,
            window=window,
            plan_window=rate_limit.PLAN_WINDOW,
        )
    assert found is not None
    return found


def count(bucket: str, *, window: int, by: int = 1) -> Row:
    """Add to a counter.  Return its count, and the seconds that are left of its window.

    With `by=0` nothing is added, but the row is locked all the same, so that concurrent callers get an order.
    """
    counted = run(
        """
        INSERT INTO rate_windows AS w (bucket, count, until)
        VALUES (%(bucket)s, %(by)s::integer,
                clock_timestamp() + sign(%(by)s::integer) * make_interval(secs => %(window)s::float8))
        ON CONFLICT (bucket) DO UPDATE
           SET count = CASE WHEN w.until BETWEEN clock_timestamp()
                                             AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
                            THEN w.count ELSE 0 END + excluded.count,
               until = CASE WHEN w.until BETWEEN clock_timestamp()
                                             AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
                            THEN w.until ELSE excluded.until END
        RETURNING count, least(ceil(extract(epoch FROM until - clock_timestamp())), %(window)s)::integer AS seconds
        """,
        bucket=bucket,
        by=by,
        window=window,
    )
    assert counted is not None
    return counted


def counts(buckets: list[str], *, window: int) -> list[Row]:
    """Return the counters of these buckets whose window has not ended."""
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


def delete_expired(most: int) -> int:
    """Delete at most that many counters whose window ended long ago, and return how many were deleted."""
    deleted = run_unsynced(
        """
        WITH expired AS (
            DELETE FROM rate_windows
             WHERE bucket = ANY (ARRAY(SELECT bucket FROM rate_windows WHERE until < now() - interval '1 hour'
                                        ORDER BY until LIMIT %(most)s FOR UPDATE SKIP LOCKED))
               AND until < now() - interval '1 hour'
            RETURNING 1)
        SELECT count(*) AS number FROM expired
        """,
        most=most,
    )
    assert deleted is not None
    return int(deleted["number"])
