"""Who calls: the one statement that every request to the API begins with, and what else is counted."""

from linkmgr import rates
from linkmgr.database import Row, row, run, run_aside
from linkmgr.settings import settings


def identify(key_digest: bytes, address: str) -> Row:
    """The caller as gate.Caller, and, where PostgreSQL keeps the counters, the request counted.

    Requests with a key that does not hold are counted by their address, those of a user anew under another rate.
    """
    window = rates.window()
    if window is None:
        found = row(
            """
            SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(address)s) AS bucket,
                   caller.*
              FROM (SELECT 1) always
              LEFT JOIN (SELECT CASE WHEN holds THEN id END AS id, admin, api,
                                CASE WHEN holds THEN rate END AS rate, holds,
                                email, username, status, expires, registered
                           FROM accounts,
                                LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                                IS NOT FALSE AS holds) key
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
                SELECT CASE WHEN holds THEN id END AS id, admin, api, CASE WHEN holds THEN rate END AS rate, holds,
                       email, username, status, expires, registered
                  FROM accounts,
                       LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                       IS NOT FALSE AS holds) key
                 WHERE key_digest = %(key_digest)s),
            counted AS (
                INSERT INTO hits AS h (bucket, count, until)
                SELECT coalesce('user:' || id || coalesce(' at ' || rate, ''), 'address:' || %(address)s), 1,
                       clock_timestamp() + make_interval(secs =>
                           CASE WHEN rate IS NULL THEN %(window)s::float8 ELSE %(plan_window)s::float8 END)
                  FROM (SELECT 1) always
                  LEFT JOIN caller ON true
                ON CONFLICT (bucket) DO UPDATE
                   SET count = CASE WHEN h.until <= clock_timestamp() THEN 1 ELSE h.count + 1 END,
                       until = CASE WHEN h.until <= clock_timestamp() THEN excluded.until ELSE h.until END
                RETURNING bucket, count, date_part('epoch', until) AS until)
            SELECT counted.*, caller.* FROM counted LEFT JOIN caller ON true
            """,
            key_digest=key_digest,
            address=address,
            lifetime=settings().key_lifetime_days,
            window=window,
            plan_window=rates.PLAN_WINDOW,
        )
    assert found is not None
    return found


def count(bucket: str, *, window: int) -> Row:
    """How often something was tried in the current window of seconds, this time included, and how many are left."""
    counted = run(
        """
        INSERT INTO hits AS h (bucket, count, until)
        VALUES (%(bucket)s, 1, clock_timestamp() + make_interval(secs => %(window)s::float8))
        ON CONFLICT (bucket) DO UPDATE
           SET count = CASE WHEN h.until <= clock_timestamp() THEN 1 ELSE h.count + 1 END,
               until = CASE WHEN h.until <= clock_timestamp() THEN excluded.until ELSE h.until END
        RETURNING count, ceil(extract(epoch FROM until - clock_timestamp()))::integer AS seconds
        """,
        bucket=bucket,
        window=window,
    )
    assert counted is not None
    return counted


def take_back(bucket: str) -> None:
    """One of what was counted in the current window."""
    run("UPDATE hits SET count = count - 1 WHERE bucket = %(bucket)s AND count > 0", bucket=bucket)


def delete_expired(most: int) -> int:
    """Delete at most that many counters whose window ended long ago, and return how many were deleted."""
    deleted = run_aside(
        """
        WITH expired AS (
            DELETE FROM hits
             WHERE bucket = ANY (ARRAY(SELECT bucket FROM hits WHERE until < now() - interval '1 hour'
                                        ORDER BY until LIMIT %(most)s FOR UPDATE SKIP LOCKED))
               AND until < now() - interval '1 hour'
            RETURNING 1)
        SELECT count(*) AS number FROM expired
        """,
        most=most,
    )
    assert deleted is not None
    return int(deleted["number"])
