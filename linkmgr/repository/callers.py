"""Who calls: the one statement that every request to the API begins with, and what else is counted."""

from linkmgr import rates
from linkmgr.database import Row, row, run
from linkmgr.settings import settings


def identify(key_digest: bytes, address: str) -> Row:
    """The caller as gate.Caller, and, where PostgreSQL keeps the counters, the request counted.

    Requests with a key that does not hold are counted by their address.
    """
    if not rates.counts_in_database():
        found = row(
            """
            WITH caller AS (
                SELECT id, admin, limits -> 'api' ->> 'enabled' = '1' AS api, rate,
                       key_created + make_interval(days => %(lifetime)s) <= now() AS expired
                  FROM accounts
                 WHERE key_digest = %(key_digest)s)
            SELECT coalesce('user:' || valid.id, 'address:' || %(address)s) AS bucket,
                   valid.id, coalesce(valid.admin, false) AS admin, coalesce(valid.api, false) AS api, valid.rate,
                   coalesce((SELECT expired FROM caller), false) AS expired
              FROM (SELECT 1) always
              LEFT JOIN caller valid ON valid.expired IS NOT TRUE
            """,
            key_digest=key_digest,
            address=address,
            lifetime=settings().key_lifetime_days,
        )
    else:
        found = row(
            """
            WITH caller AS (
                SELECT id, admin, limits -> 'api' ->> 'enabled' = '1' AS api, rate,
                       key_created + make_interval(days => %(lifetime)s) <= now() AS expired
                  FROM accounts
                 WHERE key_digest = %(key_digest)s),
            valid AS (SELECT * FROM caller WHERE expired IS NOT TRUE),
            counted AS (
                INSERT INTO hits AS h (bucket, count, until)
                SELECT coalesce('user:' || valid.id, 'address:' || %(address)s), 1,
                       clock_timestamp() + make_interval(secs =>
                           CASE WHEN valid.rate IS NULL THEN %(window)s::float8 ELSE %(plan_window)s::float8 END)
                  FROM (SELECT 1) always
                  LEFT JOIN valid ON true
                ON CONFLICT (bucket) DO UPDATE
                   SET count = CASE WHEN h.until <= clock_timestamp() THEN 1 ELSE h.count + 1 END,
                       until = CASE WHEN h.until <= clock_timestamp() THEN excluded.until ELSE h.until END
                RETURNING bucket, count, extract(epoch FROM until)::float8 AS until)
            SELECT counted.bucket, counted.count, counted.until,
                   valid.id, coalesce(valid.admin, false) AS admin, coalesce(valid.api, false) AS api, valid.rate,
                   coalesce((SELECT expired FROM caller), false) AS expired
              FROM counted
              LEFT JOIN valid ON true
            """,
            key_digest=key_digest,
            address=address,
            lifetime=settings().key_lifetime_days,
            window=rates.window(),
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


def forget_spent() -> None:
    """Callers whose window has long ended; addresses would otherwise pile up."""
    run("DELETE FROM hits WHERE until < clock_timestamp() - interval '1 hour'")
