"""The visits of a link or a QR code, one by one."""

from typing import NamedTuple

from linkmgr.db.statements import Row, rows
from linkmgr.web.errors import not_found

COLUMNS = ["time", "country", "city", "referrer", "browser", "os", "device", "language", "bot"]


_ALL = """
    WITH target AS (
        SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(target_id)s AND %(what)s = 'link'
         UNION ALL
        SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = %(target_id)s AND %(what)s = 'QR code')
    SELECT to_char(at, 'YYYYMMDD"T"HH24MISS.US') AS position, at AS time, country, city, referrer, browser, os,
           device, language, bot
      FROM target
      LEFT JOIN LATERAL (
           SELECT visits.* FROM visits
            WHERE target_id = target.id AND at <= coalesce((%(at)s || 'Z')::timestamptz, 'infinity')
              AND bot = ANY (%(bots)s::boolean[])
            ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language, bot
            LIMIT %(limit)s + 1 OFFSET %(skip)s) newest ON true
     ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language, bot
"""
# Bots may be few among millions of visits, so their rollups tell where they are: at least one in each span. A position
# is inside a span, some of whose bots were returned before, so this one does not count towards the needed number.
_BOTS = """
    WITH target AS (
        SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(target_id)s AND %(what)s = 'link'
         UNION ALL
        SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = %(target_id)s AND %(what)s = 'QR code'),
    position AS (
        SELECT coalesce((%(at)s || 'Z')::timestamptz, 'infinity') AS at, %(limit)s::bigint + %(skip)s + 1 AS needed),
    quarters AS (
        (SELECT q.at, visits
           FROM target, position, target_quarters q
          WHERE target_id = target.id AND bot AND q.at <= position.at
          ORDER BY q.at DESC
          LIMIT (SELECT needed + 1 FROM position))
         UNION ALL
        SELECT date_bin('15 minutes', p.at, 'epoch'), 1
          FROM target, position, pending_visits p
         WHERE target_id = target.id AND bot AND p.at <= position.at),
    days AS (
        SELECT day, visits
          FROM target, position, target_folds
         WHERE target_id = target.id AND bot AND day <= (position.at AT TIME ZONE 'UTC')::date
         ORDER BY day DESC
         LIMIT (SELECT needed + 1 FROM position)),
    spans AS (
        SELECT at AS since, at + interval '15 minutes' AS until, sum(visits) AS visits
          FROM quarters
         WHERE (at AT TIME ZONE 'UTC')::date NOT IN (SELECT day FROM days)
         GROUP BY at
         UNION ALL
        SELECT day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC', visits FROM days),
    chosen AS MATERIALIZED (
        SELECT since, until
          FROM (SELECT spans.*, sum(CASE WHEN until <= position.at THEN visits ELSE 0 END)
                                OVER (ORDER BY since DESC ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS newer
                  FROM spans, position) counted, position
         WHERE coalesce(newer, 0) < needed)
    SELECT to_char(at, 'YYYYMMDD"T"HH24MISS.US') AS position, at AS time, country, city, referrer, browser, os,
           device, language, bot
      FROM target
      LEFT JOIN LATERAL (
           SELECT found.*
             FROM chosen, position,
                  LATERAL (SELECT * FROM visits
                            WHERE target_id = target.id AND bot
                              AND at >= chosen.since AND at < chosen.until AND at <= position.at
                           OFFSET 0) found
            ORDER BY found.at DESC, visitor, country, city, referrer, browser, os, device, language
            LIMIT %(limit)s + 1 OFFSET %(skip)s) newest ON true
     ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language
"""


class VisitPage(NamedTuple):
    rows: list[Row]
    next: str | None  # the position of the next page


def index(
    user_id: int, target_id: int, *, what: str, limit: int, after: tuple[str, int] | None, bots: list[bool]
) -> VisitPage:
    """List visits, newest first. `what` is "link" or "QR code".

    Visits have no id. A position is the time of the last visit and the number of visits that have this time and were
    returned. Visits of the same time have a fixed order.
    """
    at, skip = after or (None, 0)
    visits = rows(
        _BOTS if bots == [True] else _ALL,
        user_id=user_id,
        target_id=target_id,
        what=what,
        limit=limit,
        at=at,
        skip=skip,
        **({} if bots == [True] else {"bots": bots}),
    )
    if not visits:
        raise not_found(what)
    positions = [visit.pop("position") for visit in visits if visit["time"] is not None]
    if len(positions) <= limit:
        return VisitPage(visits[: len(positions)], None)
    last = positions[limit - 1]
    returned = positions[:limit].count(last) + (skip if last == at else 0)
    return VisitPage(visits[:limit], f"{last}-{returned}")
