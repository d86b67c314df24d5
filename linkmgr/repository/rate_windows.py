"""Counters of requests and attempts per window, which limit rates.

If a stored window ends later than a window that begins now, it is invalid: a setting was shortened or the clock was set
back. The statements then begin a new window. They allow 5 seconds, more than a statement takes, because a concurrent
statement may have begun its window later.
"""

from linkmgr.db.statements import Row, rows, run, run_unsynced


def count(bucket: str, *, window: int, by: int = 1) -> Row:
    """Add `by` to a counter. Return its `count` and the `seconds` until its window ends.

    `by=0` adds nothing but still locks the row, so that concurrent requests are counted one after another.
    """
    counter = run(
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
    assert counter is not None
    return counter


def counts(buckets: list[str], *, window: int) -> list[Row]:
    """Return the `bucket`, `count` and `seconds` of each counter whose window has not ended."""
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
    return run_unsynced(
        """
        INSERT INTO rate_windows AS w (bucket, count, until)
        SELECT %(bucket)s, %(amount)s::integer, clock_timestamp() + make_interval(secs => %(window)s::float8)
         WHERE %(amount)s::integer <= %(limit)s::integer
        ON CONFLICT (bucket) DO UPDATE
           SET count = CASE WHEN w.until BETWEEN clock_timestamp()
                                             AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
                            THEN w.count ELSE 0 END + excluded.count,
               until = CASE WHEN w.until BETWEEN clock_timestamp()
                                             AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
                            THEN w.until ELSE excluded.until END
         WHERE CASE WHEN w.until BETWEEN clock_timestamp()
                                     AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
                    THEN w.count ELSE 0 END + excluded.count <= %(limit)s::integer
        RETURNING count, least(ceil(extract(epoch FROM until - clock_timestamp())), %(window)s)::integer AS seconds
        """,
        bucket=bucket,
        amount=amount,
        limit=limit,
        window=window,
    )
