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
            ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language, bot
            LIMIT %(limit)s + 1 OFFSET %(skip)s) newest ON true
     ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language, bot
"""
# People may be few among millions of bots, or bots among people, so the rollups tell where visits of a kind are: at
# least one in each span. A position is inside a span, some of whose visits were returned before, so this one does not
# count towards the needed number. Visits stored before there were rollups may not be in them yet: one span has all.
_ONE_KIND = """
    WITH target AS (
        SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(target_id)s AND %(what)s = 'link'
         UNION ALL
        SELECT id FROM qrs WHERE user_id = %(user_id)s AND id = %(target_id)s AND %(what)s = 'QR code'),
    position AS (
        SELECT coalesce((%(at)s || 'Z')::timestamptz, 'infinity') AS at, %(limit)s::bigint + %(skip)s + 1 AS needed),
    unfilled AS MATERIALIZED (SELECT FROM jobs WHERE kind = 'fill_rollups' LIMIT 1),
    quarters AS (
        SELECT newest.at, visits
          FROM target,
               LATERAL (SELECT at, visits FROM target_quarters
                         WHERE target_id = target.id AND bot = %(bot)s AND at <= (SELECT at FROM position)
                         ORDER BY at DESC
                         LIMIT (SELECT needed + 1 FROM position)) newest
         UNION ALL
        SELECT date_bin('15 minutes', p.at, 'epoch'), 1
          FROM target, position, pending_visits p
         WHERE target_id = target.id AND bot = %(bot)s AND p.at <= position.at),
    days AS (
        SELECT newest.day, visits
          FROM target,
               LATERAL (SELECT day, visits FROM target_folds
                         WHERE target_id = target.id AND bot = %(bot)s
                           AND day <= ((SELECT at FROM position) AT TIME ZONE 'UTC')::date
                         ORDER BY day DESC
                         LIMIT (SELECT needed + 1 FROM position)) newest),
    spans AS (
        SELECT at AS since, at + interval '15 minutes' AS until, sum(visits) AS visits
          FROM quarters
         WHERE (at AT TIME ZONE 'UTC')::date NOT IN (SELECT day FROM days)
         GROUP BY at
         UNION ALL
        SELECT day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC', visits FROM days),
    chosen AS MATERIALIZED (
        SELECT since, until
          FROM (SELECT since, until, sum(complete) OVER (ORDER BY since DESC) - complete AS newer
                  FROM (SELECT spans.*, CASE WHEN until <= position.at THEN visits ELSE 0 END AS complete
                          FROM spans, position) spans) counted, position
         WHERE newer < needed AND NOT EXISTS (SELECT FROM unfilled)
         UNION ALL
        SELECT '-infinity', 'infinity' FROM unfilled)
    SELECT to_char(at, 'YYYYMMDD"T"HH24MISS.US') AS position, at AS time, country, city, referrer, browser, os,
           device, language, bot
      FROM target
      LEFT JOIN LATERAL (
           SELECT newest_of_span.*
             FROM chosen, position,
                  LATERAL (SELECT * FROM visits
                            WHERE target_id = target.id AND bot = %(bot)s
                              AND at >= chosen.since AND at < chosen.until AND at <= position.at
                            ORDER BY at DESC, visitor, country, city, referrer, browser, os, device, language
                            LIMIT (SELECT needed FROM position)) newest_of_span
            ORDER BY newest_of_span.at DESC, visitor, country, city, referrer, browser, os, device, language
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
        _ONE_KIND if len(bots) == 1 else _ALL,
        user_id=user_id,
        target_id=target_id,
        what=what,
        limit=limit,
        at=at,
        skip=skip,
        **({"bot": bots[0]} if len(bots) == 1 else {}),
    )
    if not visits:
        raise not_found(what)
    positions = [visit.pop("position") for visit in visits if visit["time"] is not None]
    if len(positions) <= limit:
        return VisitPage(visits[: len(positions)], None)
    last = positions[limit - 1]
    returned = positions[:limit].count(last) + (skip if last == at else 0)
    return VisitPage(visits[:limit], f"{last}-{returned}")
