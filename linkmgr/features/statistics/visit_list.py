"""Visits of links and QR codes and answers to overlays: lists, and batches for exports."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from linkmgr.core.database.paging import fitting
from linkmgr.core.database.statements import Row, rows
from linkmgr.core.database.tables import BATCH, in_batches
from linkmgr.core.errors import not_found
from linkmgr.repository import overlay
from linkmgr.visits.dimensions import BY_NAME, UNKNOWN

COLUMNS = ["time", *BY_NAME, "bot"]
_EXPORTED = ["target", "time", "visitor", *BY_NAME, "bot"]


class VisitPage(NamedTuple):
    rows: list[Row]
    next: str | None  # the position of the next page


def index(
    user_id: int, tracked_id: int, *, what: str, limit: int, after: tuple[str, int] | None, bots: list[bool]
) -> VisitPage:
    """List visits, newest first. `what` is "link" or "QR code".

    Visits have no id. A position is the time of the last visit and the number of visits that have
    this time and were returned. Visits of the same time have a fixed order.
    """
    at, skip = after or (None, 0)
    visits, is_cut = fitting(
        """
        WITH tracked AS (
            SELECT id FROM tracked_rows WHERE user_id = %(user_id)s AND id = %(tracked_id)s
               AND noun = %(what)s)
        SELECT to_char(at, 'YYYYMMDD"T"HH24MISS.US') AS position, at AS time, listed.*
          FROM tracked
          LEFT JOIN LATERAL (
               SELECT newest.*
                 FROM unnest(%(bots)s::boolean[]) AS halves (is_bot),
                      LATERAL (SELECT visits.* FROM visits
                                WHERE tracked_id = tracked.id AND bot = is_bot
                                  AND at <= coalesce((%(at)s || 'Z')::timestamptz, 'infinity')
                                ORDER BY at DESC, visits
                                LIMIT %(limit)s + 1 + %(skip)s) newest
                ORDER BY at DESC, newest
                LIMIT %(limit)s + 1 OFFSET %(skip)s) listed ON true
         ORDER BY at DESC, listed
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
    positions = [visit["position"] for visit in visits if visit["time"] is not None]
    returned = positions[:limit]
    page = [_labeled(visit, COLUMNS) for visit in visits[: len(returned)]]
    if len(positions) <= limit and not is_cut:
        return VisitPage(page, None)
    last = returned[-1]
    skip = returned.count(last) + (skip if last == at else 0)
    return VisitPage(page, f"{last}-{skip}")


def _labeled(visit: Row, columns: list[str]) -> Row:
    return {name: UNKNOWN if visit[name] is None else visit[name] for name in columns}


def answers(user_id: int) -> Iterator[list[Row]]:
    for batch in in_batches(overlay.batch, user_id):
        for form in batch:
            after = 0
            while stored := _answers(user_id, form["id"], after):
                after = stored[-1]["id"]
                yield stored


def _answers(user_id: int, overlay_id: int, after: int) -> list[Row]:
    return rows(
        """
        SELECT a.id, o.id AS overlay, o.name, a.answer, a.created AS date
          FROM overlays o
          JOIN overlay_answers a ON a.overlay_id = o.id AND a.id > %(after)s
         WHERE o.user_id = %(user_id)s AND o.id = %(overlay_id)s
         ORDER BY a.id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        after=after,
        limit=BATCH,
    )


def all_visits(user_id: int) -> Iterator[list[Row]]:
    for noun in ("link", "QR code"):
        for batch in in_batches(partial(_tracked, noun), user_id):
            for tracked in batch:
                if tracked["is_visited"]:
                    yield from visits_of(tracked["id"])


def _tracked(noun: str, user_id: int, after: int) -> list[Row]:
    return rows(
        """
        SELECT id, EXISTS (SELECT FROM visits WHERE tracked_id = id) AS is_visited
          FROM (SELECT id FROM tracked_rows WHERE user_id = %(user_id)s AND id > %(after)s
                   AND noun = %(noun)s
                 ORDER BY id
                 LIMIT %(limit)s) tracked
         ORDER BY id
        """,
        noun=noun,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )


def visits_of(tracked_id: int) -> Iterator[list[Row]]:
    time, skip = "-infinity", 0
    while stored := _visits(tracked_id, time, skip):
        records = [_labeled(visit, _EXPORTED) for visit in stored]
        last = records[-1]["time"]
        skip = sum(record["time"] == last for record in records) + (skip if last == time else 0)
        time = last
        yield records


def _visits(tracked_id: int, time: str, skip: int) -> list[Row]:
    return rows(
        """
        SELECT listed.*, tracked_id AS target, to_char(at, 'YYYY-MM-DD HH24:MI:SS.US') AS time,
               encode(visitor, 'hex') AS visitor
          FROM (SELECT oldest.*
                  FROM (VALUES (false), (true)) AS halves (is_bot),
                       LATERAL (SELECT visits.* FROM visits
                                 WHERE tracked_id = %(tracked_id)s AND bot = is_bot
                                   AND at >= %(time)s::timestamptz
                                 ORDER BY at, visits
                                 LIMIT %(limit)s::int + %(skip)s) oldest
                 ORDER BY at, oldest
                 LIMIT %(limit)s OFFSET %(skip)s) listed
         ORDER BY at, listed
        """,
        tracked_id=tracked_id,
        time=time,
        skip=skip,
        limit=BATCH,
    )
