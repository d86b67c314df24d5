"""The number of rows does not affect how long locks are held: rows are selected without locks and
deleted in batches of one transaction each. Partitions are dropped one at a time, with a short lock
timeout. Each process also deletes other expired rows in the background."""

from collections import defaultdict
from collections.abc import Iterator
from time import monotonic
from typing import Any, NamedTuple

from psycopg2.errors import LockNotAvailable, QueryCanceled

from linkmgr.core.database import tables
from linkmgr.core.database.expiry import cleared_after, older_than
from linkmgr.core.database.jobs import registered
from linkmgr.core.database.statements import NO_TIMEOUT, Row, database, run, run_unsynced
from linkmgr.repository import deletions, link_bin, plans
from linkmgr.visits.store import ALL_DIMENSIONS, DETAILED_DAYS, PRELUDE

LAST = "last_purge"  # file of the data folder, changed by each purge
MAX_ROWS = 5000
MAX_TRACKED = 1000  # or users
MAX_SUMMED = 500  # raw days of a transaction, for which new visits wait
_TRIES = 5
# New visits wait while a partition is dropped.
_SHORT_TIMEOUTS = "SET LOCAL lock_timeout = '40ms'; SET LOCAL statement_timeout = '80ms'; "
_BY_INDEX = tables.BY_INDEX + NO_TIMEOUT
_PATIENT = f"{NO_TIMEOUT}SET LOCAL lock_timeout = 0; "


class Purged(NamedTuple):
    visits: int  # deleted rows
    months: int  # dropped partitions


def purge() -> Purged:
    """Delete visits past their owner's retention period, and visitors without visits. Drop the
    months that no owner retains. The totals of links, the rollups by day and the conversions
    remain.

    The rollups by day know which links and QR codes have visits on the days that expired since the
    last purge, so that it reads nothing else."""
    _create_months()
    whole = [month for month in _expired_months() if month["whole"]]
    _note_dropped(max((month["until"] for month in whole), default=None))
    visits, after = 0, 0
    while (noted := plans.note_retention(after, MAX_TRACKED))["last"] is not None:
        after = noted["last"]
        visits += _purge_days(noted, {month["since"] for month in whole}) if noted["ids"] else 0
    dropped = sum(_drop_partition(month["partition"]) for month in whole)
    for orphans in _orphans():
        while not deletions.tracked.run({"ids": orphans}):
            pass
    run_unsynced(
        """
        DELETE FROM visit_months WHERE month < this_month()
        """
    )
    for delete_expired in registered().expiring:
        while delete_expired(MAX_ROWS) >= MAX_ROWS:
            pass
    return Purged(
        visits, dropped + sum(_drop_partition(partition, if_empty=True) for partition in _empty_months())
    )


def _rows(sql: str, **params: Any) -> list[Row]:
    return database().execute(sql, params, idempotent=True, prelude=_BY_INDEX)


# --- months


def _create_months() -> None:
    run("SELECT create_partition(now() + make_interval(months => n)) FROM generate_series(0, 2) n")


def _expired_months() -> list[Row]:
    """Return the partitions with visits past the shortest retention period, and as `whole` True for
    those past the longest one. Retention 0 means forever. The retention of a plan also applies to
    administrators, as their account page says."""
    return _rows(
        """
        SELECT partition::text, since::text, until::text,
               coalesce(until <= now() - make_interval(days => longest), false) AS whole
          FROM partitions,
               (SELECT min(nullif(days, 0)) AS shortest,
                       CASE WHEN min(days) > 0 THEN max(days) END AS longest
                  FROM (SELECT (limits ->> 'retention')::int AS days
                          FROM accounts) retained) periods
         WHERE since < now() - make_interval(days => shortest)
        """
    )


def _empty_months() -> list[str]:
    months = _rows(
        """
        SELECT partition::text
          FROM partitions
         WHERE until <= now() AND NOT EXISTS (SELECT FROM visits WHERE at >= since AND at < until)
        """
    )
    return [month["partition"] for month in months]


def _drop_partition(partition: str, *, if_empty: bool = False) -> bool:
    """Drop a partition and return True. Return False if it is in use, for example by a backup; the
    next purge tries again."""
    for _ in range(_TRIES):
        try:
            [result] = database().execute(
                "SELECT drop_partition(%(partition)s::regclass, %(if_empty)s) AS dropped",
                {"partition": partition, "if_empty": if_empty},
                idempotent=False,
                prelude=_SHORT_TIMEOUTS,
            )
            return bool(result["dropped"])
        except (LockNotAvailable, QueryCanceled):
            continue
    return False


# --- the visits of links and QR codes


def _note_dropped(until: str | None) -> None:
    """No day before this time becomes raw from now on."""
    run("UPDATE service SET dropped_until = greatest(dropped_until, %(until)s::timestamptz)", until=until)


def _purge_days(noted: Row, dropped: set[str]) -> int:
    """Delete the expired visits of users and return their number, but not those in the months that
    begin at `dropped`."""
    visits, forgotten = 0, defaultdict[str, set[int]](set)
    for month, days in _expired_days(noted):
        expired = _expired_targets(days)
        for start in range(0, len(expired), MAX_SUMMED):
            _sum_raw_days([row for row in expired[start : start + MAX_SUMMED] if row["is_raw"]])
        for start in range(0, len(expired), MAX_TRACKED):
            batch = _columns(expired[start : start + MAX_TRACKED]) | {"month": month}
            if month in dropped:
                for target in {*batch["targets"]} - forgotten[month]:
                    _forget_visitors(target, month)
                forgotten[month].update(batch["targets"])
                continue
            while deleted := _delete_visits(batch):
                visits += deleted
    run_unsynced(
        """
        UPDATE users SET purge_from = since
          FROM unnest(%(ids)s::bigint[], %(since)s::timestamptz[], %(purge_from)s::timestamptz[])
               AS purged (user_id, since, stored)
         WHERE id = user_id AND purge_from = stored  -- none was stored too late meanwhile
        """,
        **noted,
    )
    return visits


def _columns(batch: list[Row]) -> Row:
    """Return rows as arrays, times in the notation of PostgreSQL."""
    columns: Row = {name: [row[name] for row in batch] for name in batch[0]}
    for name, values in columns.items():
        if isinstance(values[0], str):
            columns[name] = f"{{{','.join(values)}}}"
    return columns


def _expired_days(noted: Row) -> Iterator[tuple[str, list[Row]]]:
    """Yield the days of users with expired visits, in batches of one month with some MAX_ROWS
    visits."""
    days = _rows(
        """
        SELECT user_id, since::text, at::text AS day, sum(visits)::bigint AS visits,
               date_trunc('month', at, 'UTC')::text AS month
          FROM unnest(%(ids)s::bigint[], %(since)s::timestamptz[], %(purge_from)s::timestamptz[])
               AS noted (id, since, purge_from),
               LATERAL (SELECT * FROM account_totals
                         WHERE user_id = id AND at < since
                           AND at >= date_trunc('day', purge_from, 'UTC')
                        OFFSET 0) stored
         GROUP BY at, user_id, since
         ORDER BY at, user_id
        """,
        **noted,
    )
    batch: list[Row] = []
    for day in days:
        if batch and (
            day["month"] != batch[0]["month"] or sum(earlier["visits"] for earlier in batch) >= MAX_ROWS
        ):
            yield batch[0]["month"], batch
            batch = []
        batch.append(day)
    if batch:
        yield batch[0]["month"], batch


def _expired_targets(days: list[Row]) -> list[Row]:
    """Return the `targets` with visits on these days of users: the ends of their expired parts as
    `until`, and if the days are raw."""
    return _rows(
        """
        SELECT noted.user_id AS users, target AS targets, bot AS bots, at::text AS days,
               least(at + interval '24 hours', since)::text AS until,
               (SELECT true FROM tracked_rollups r
                 WHERE tracked_id = target AND unit = 'day' AND r.bot = t.bot
                   AND r.at = t.at) IS NULL AS is_raw
          FROM unnest(%(user_id)s::bigint[], %(day)s::timestamptz[], %(since)s::timestamptz[])
               AS noted (user_id, day, since),
               LATERAL (SELECT * FROM account_targets a
                         WHERE a.user_id = noted.user_id AND at = day
                        OFFSET 0) t
        """,
        **_columns(days),
    )


def _sum_raw_days(expired: list[Row]) -> None:
    if expired:
        database().execute(
            """
            SELECT sum_raw_days(%(targets)s::bigint[], %(bots)s::boolean[],
                                %(days)s::timestamptz[], %(dimensions)s::text[])
            """,
            _columns(expired) | {"dimensions": ALL_DIMENSIONS},
            idempotent=True,
            prelude=_PATIENT + PRELUDE,
        )


def _delete_visits(batch: Row) -> int:
    """Delete some expired visits, and their visitors who have no other ones. Return the number of
    the visits.

    Such a visitor has not been `seen` since, and has no visit in the rest of a day that is kept.
    The conditions on `at` limit each part of the statement to one partition. Visits of days that
    became raw meanwhile wait for the next purge."""
    [result] = database().execute(
        """
        WITH expired AS (
            DELETE FROM visits
             WHERE ctid = ANY (ARRAY(
                 SELECT stored.ctid
                   FROM unnest(%(targets)s::bigint[], %(bots)s::boolean[], %(days)s::timestamptz[],
                               %(until)s::timestamptz[]) AS t (target, bot, day, until),
                        LATERAL (SELECT ctid FROM visits v
                                  WHERE tracked_id = target AND v.bot = t.bot
                                    AND at >= day AND at < t.until
                                    AND at >= %(month)s::timestamptz
                                    AND at < %(month)s::timestamptz + interval '1 month'
                                    AND (SELECT true FROM tracked_rollups r
                                          WHERE r.tracked_id = target AND unit = 'day'
                                            AND r.bot = t.bot AND r.at = day)
                                  LIMIT %(limit)s) stored
                  LIMIT %(limit)s))
               AND at >= %(month)s::timestamptz AND at < %(month)s::timestamptz + interval '1 month'
            RETURNING tracked_id, bot, visitor),
        ends AS MATERIALIZED (
            SELECT target, max(until) AS until
              FROM unnest(%(targets)s::bigint[], %(until)s::timestamptz[]) AS t (target, until)
             GROUP BY target),
        remaining AS MATERIALIZED (
            SELECT tracked_id, visitor
              FROM ends,
                   LATERAL (SELECT tracked_id, visitor FROM visits
                             WHERE tracked_id = target AND NOT bot AND at >= until
                               AND at < date_trunc('day', until, 'UTC') + interval '24 hours'
                               AND until > date_trunc('day', until, 'UTC')
                            OFFSET 0) stored),
        forgotten AS (
            DELETE FROM visitors v
             USING ends, (SELECT DISTINCT tracked_id, visitor FROM expired WHERE NOT bot) stale
             WHERE target = stale.tracked_id AND v.tracked_id = target AND v.visitor = stale.visitor
               AND seen < date_trunc('day', until - interval '1 microsecond', 'UTC') + interval '24 hours'
               AND (target, v.visitor) NOT IN (SELECT tracked_id, visitor FROM remaining))
        SELECT count(*) AS number FROM expired
        """,
        batch | {"limit": MAX_ROWS},
        idempotent=False,
        prelude=_BY_INDEX,
    )
    return int(result["number"])


def _forget_visitors(target: int, month: str) -> None:
    """Delete the visitors of a link or QR code who were last seen in a month that will be dropped,
    or earlier."""
    after: bytes | None = b""
    while after is not None:
        [page] = database().execute(
            """
            WITH page AS MATERIALIZED (
                SELECT visitor
                  FROM visitors
                 WHERE tracked_id = %(target)s AND visitor > %(after)s
                 ORDER BY visitor
                 LIMIT %(limit)s),
            forgotten AS (
                DELETE FROM visitors v
                 USING page
                 WHERE v.tracked_id = %(target)s AND v.visitor = page.visitor
                   AND seen < %(month)s::timestamptz + interval '1 month')
            SELECT visitor AS last FROM page
             UNION ALL
            SELECT NULL
             ORDER BY 1 DESC NULLS LAST
             LIMIT 1
            """,
            {"target": target, "after": after, "month": month, "limit": MAX_ROWS},
            idempotent=False,
            prelude=_BY_INDEX,
        )
        after = page["last"]


def _orphans() -> Iterator[list[int]]:
    """Yield the ids of deleted links and QR codes whose visits were stored after the delete."""
    after = 0
    while after is not None:
        [tracked] = _rows(
            """
            SELECT max(tracked_id) AS last,
                   array_agg(tracked_id) FILTER (WHERE num_nonnulls(l.id, q.id, b.id) = 0) AS ids
              FROM (SELECT tracked_id FROM totals
                     WHERE tracked_id > %(after)s
                     ORDER BY tracked_id
                     LIMIT %(limit)s) visited
              LEFT JOIN links l ON l.id = tracked_id AND l.id > %(after)s
              LEFT JOIN kept_qrs q ON q.id = tracked_id AND q.id > %(after)s
              LEFT JOIN binned_links b ON b.id = tracked_id AND b.id > %(after)s
            """,
            after=after,
            limit=MAX_ROWS,
        )
        after = tracked["last"]
        if tracked["ids"]:
            yield tracked["ids"]


# --- other expired rows


_ROUND_SECONDS = 600  # between two rounds of a process
EXPIRING = (
    older_than("rate_windows", "until", "1 hour"),
    older_than("idempotency_keys", "created", "24 hours"),
    older_than("binned_links", "binned", f"{link_bin.DAYS} days"),
    older_than("kept_qrs", "binned", f"{link_bin.DAYS} days"),
    older_than("aliases", "until", "0 days", "until < 'infinity'"),
    older_than("outbox", "created", "30 days"),  # without the feature that moves events, they wait here
    older_than("tracked_rollups", "timezone('UTC', at)", f"{DETAILED_DAYS + 1} days", "unit = 'quarter'"),
    *(
        cleared_after(table, "at", f"{DETAILED_DAYS + 1} days", "quarters = NULL", "detailed")
        for table in ("account_totals", "account_targets", "account_labels")
    ),
    older_than("visit_minutes", "minute", "2 hours"),
)
_ended = [float("-inf")]  # the time at which this process last found nothing more


def delete_some_expired() -> None:
    """Delete some expired rows and create the next partitions, unless this process has just found
    nothing more."""
    if monotonic() < _ended[0] + _ROUND_SECONDS:
        return
    _create_months()
    if max([delete_expired(MAX_ROWS) for delete_expired in registered().expiring]) < MAX_ROWS:
        _ended[0] = monotonic()
