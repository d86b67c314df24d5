"""Counters of requests and attempts per window, which limit rates. `count_in_window` in schema.sql has their rules."""

from linkmgr.db.statements import Row, rows, run, run_unsynced

_COUNT = """
    SELECT count, least(ceil(extract(epoch FROM until - clock_timestamp())), %(window)s)::integer AS seconds
      FROM count_in_window(%(bucket)s, %(by)s, %(window)s, %(limit)s)
"""


def count(bucket: str, *, window: int, by: int = 1) -> Row:
    """Return the `count` and the `seconds` until its window ends. `by=0` adds nothing but still locks the row, so that
    concurrent requests are counted one after another."""
    counter = run(_COUNT, bucket=bucket, by=by, window=window, limit=None)
    assert counter is not None
    return counter


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
