"""The budget of rows that a user may send in bulk requests, besides the limit of requests.

It bounds the bytes as well: a large row counts as several.
"""

import json

from linkmgr.core.database import transaction
from linkmgr.core.errors import AppError
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, rate_windows
from linkmgr.core.web import request as web_request
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.caller import Rows

ROW_BYTES = 8 << 10


def rows_of(element: object) -> int:
    """Return the number of rows that an element counts as."""
    return 1 + len(json.dumps(element)) // ROW_BYTES


def spend(rows: int) -> None:
    """Raise `rows_limited`, and count nothing, if the rows exceed the budget. A request with an
    Idempotency-Key does this when it has locked the key: a repeated one counts nothing."""
    transaction.on_begin(lambda: _spend(rows))


def _spend(rows: int) -> None:
    limit = limiter.parse_rate(settings().bulk_rows)
    window = limit.get_expiry()
    bucket = f"rows:{user_id()}"
    counter = rate_windows.spend(bucket, rows, limit=limit.amount, window=window)
    if counter:
        web_request.current().rows = Rows(limit, limit.amount - counter["count"], counter["seconds"])
        return
    used, seconds = rate_windows.current(bucket, window=window).values()
    web_request.current().rows = Rows(limit, max(0, limit.amount - used), seconds)
    raise AppError("rows_limited", limit=limit.amount, per=limiter.period(limit), seconds=seconds)
