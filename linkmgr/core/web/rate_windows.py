"""Counters of requests, rows and attempts per window. `count_in_window` in schema.sql has their
rules."""

from linkmgr.core.database.statements import Row, row, run_one, run_unsynced

_COUNT = """
    SELECT count,
           least(ceil(extract(epoch FROM until - clock_timestamp())),
                 %(window)s)::integer AS seconds
      FROM count_in_window(%(bucket)s, %(by)s, %(window)s, %(limit)s)
"""


def count(bucket: str, *, window: int, by: int = 1) -> Row:
    """Return the `count` and the `seconds` until its window ends. `by=0` adds nothing but still
    locks the row, so that concurrent requests are counted one after another."""
    return run_one(_COUNT, bucket=bucket, by=by, window=window, limit=None)


def current(bucket: str, *, window: int) -> Row:
    """Return the `count` and the `seconds` until its window ends, at least 1, and count nothing."""
    counter = row(
        """
        SELECT count,
               greatest(1,
                        least(ceil(extract(epoch FROM until - clock_timestamp())),
                              %(window)s))::integer AS seconds
          FROM rate_windows
         WHERE bucket = %(bucket)s
           AND until BETWEEN clock_timestamp()
                         AND clock_timestamp() + make_interval(secs => %(window)s::float8 + 5)
        """,
        bucket=bucket,
        window=window,
    )
    return counter or {"count": 0, "seconds": 1}


def spend(bucket: str, amount: int, *, limit: int, window: int) -> Row | None:
    """Add `amount` to a counter and return its `count` and the `seconds` until its window ends. If
    the count would exceed `limit`, add nothing and return None. The count does not depend on the
    transaction of the request."""
    return run_unsynced(_COUNT, bucket=bucket, by=amount, window=window, limit=limit)
