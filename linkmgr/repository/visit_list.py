"""The visits of a link or a QR code, one by one."""

from typing import NamedTuple

from linkmgr.db.statements import Row, rows
from linkmgr.errors import not_found

COLUMNS = ["time", "country", "city", "referrer", "browser", "os", "device", "language", "bot"]


class VisitPage(NamedTuple):
    rows: list[Row]
    next: str | None  # the position of the next page


def index(
    user_id: int, tracked_id: int, *, what: str, limit: int, after: tuple[str, int] | None, bots: list[bool]
) -> VisitPage:
    """List visits, newest first. `what` is "link" or "QR code".

    Visits have no id. A position is the time of the last visit and the number of visits that have this time and were
    returned. Visits of the same time have a fixed order.
    """
    at, skip = after or (None, 0)
    visits = rows(
        """
        WITH tracked AS (
            SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(tracked_id)s AND %(what)s = 'link'
             UNION ALL
            SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = %(tracked_id)s AND %(what)s = 'QR code')
        SELECT to_char(at, 'YYYYMMDD"T"HH24MISS.US') AS position, at AS time, country, city, referrer, browser, os,
               device, language, bot
          FROM tracked
          LEFT JOIN LATERAL (
               SELECT newest.*
                 FROM unnest(%(bots)s::boolean[]) AS kinds (is_bot),
                      LATERAL (SELECT * FROM visits
                                WHERE tracked_id = tracked.id AND bot = is_bot
                                  AND at <= coalesce((%(at)s || 'Z')::timestamptz, 'infinity')
                                ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language
                                LIMIT %(limit)s + 1 + %(skip)s) newest
                ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language, bot
                LIMIT %(limit)s + 1 OFFSET %(skip)s) listed ON true
         ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language, bot
        """,
        user_id=user_id,
        tracked_id=tracked_id,
        what=what,
        limit=limit,
        at=at,
        skip=skip,
        bots=bots,
    )
    if not visits:
        raise not_found(what)
    positions = [visit.pop("position") for visit in visits if visit["time"] is not None]
    if len(positions) <= limit:
        return VisitPage(visits[: len(positions)], None)
    last = positions[limit - 1]
    returned = positions[:limit].count(last) + (skip if last == at else 0)
    return VisitPage(visits[:limit], f"{last}-{returned}")
