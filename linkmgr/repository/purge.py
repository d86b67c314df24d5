"""The number of rows does not affect how long locks are held: rows are selected without locks and
deleted in batches of one transaction each. Partitions are dropped one at a time, with a short lock
timeout. Each process also deletes other expired rows in the background."""

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
    """Delete visits past their owner's retention period, and visitors without visits with their
    conversions. Drop the months that no owner retains. The totals of links and the rollups by day
    remain."""
    _create_months()
    after: int | None = 0
    while after is not None:
        after = plans.note_retention(after, MAX_TRACKED)
    months = _expired_months()
    _sum_expired_days(max((month["until"] for month in months if month["whole"]), default=None))
    dropped = sum(_drop_partition(month["partition"]) for month in months if month["whole"])
    visits = 0
    for tracked in _tracked_batches():
        while tracked["orphans"] and not deletions.tracked.run({"ids": tracked["orphans"]}):
            pass
        deleted = sum(_delete_expired(tracked | month) for month in months if not month["whole"])
        if deleted or dropped:
            _delete_visitors(tracked["ids"])
        visits += deleted
    run_unsynced(
        """
        DELETE FROM visit_months WHERE month < this_month()
        """
    )
    for delete_expired in registered().expiring:
        while delete_expired(MAX_ROWS) == MAX_ROWS:
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


def _tracked_batches() -> Iterator[Row]:
    """Yield the `ids` of all visited links and QR codes in batches, their `owners`, the `days` that
    these retain, and the `orphans` among them: visits may be stored after a delete."""
    after = 0
    while after is not None:
        [tracked] = _rows(
            """
            SELECT max(tracked_id) AS last, array_agg(tracked_id) AS ids, array_agg(days) AS days,
                   array_agg(user_id) AS owners,
                   array_agg(tracked_id) FILTER (WHERE days IS NULL) AS orphans
              FROM (SELECT tracked_id, user_id, (limits ->> 'retention')::int AS days
                      FROM (SELECT tracked_id,
                                   coalesce((SELECT user_id FROM tracked_rows
                                              WHERE id = tracked_id),
                                                  owner_of_link(tracked_id)) AS user_id
                              FROM totals
                             WHERE tracked_id > %(after)s
                             ORDER BY tracked_id
                             LIMIT %(limit)s) visited
                      LEFT JOIN accounts ON accounts.id = user_id) retained
            """,
            after=after,
            limit=MAX_TRACKED,
        )
        if after := tracked["last"]:
            yield tracked


def _sum_expired_days(until: str | None) -> None:
    """Sum the raw days that have expired visits, and those before a time, before which no new day
    becomes raw."""
    run("UPDATE service SET dropped_until = greatest(dropped_until, %(until)s::timestamptz)", until=until)
    for tracked in _tracked_batches():
        while batch := _rows(
            """
            SELECT array_agg(owner) AS users, array_agg(id) AS ids, array_agg(bot) AS bots,
                   array_agg(at) AS days
              FROM (SELECT owner, id, bot, at
                      FROM unnest(%(ids)s::bigint[], %(owners)s::bigint[], %(days)s::int[])
                           AS t (id, owner, days),
                           LATERAL (SELECT bot, at FROM tracked_rollups
                                     WHERE tracked_id = id AND unit = 'raw' AND bot IN (false, true)
                                       AND at < greatest(
                                           (SELECT dropped_until FROM service),
                                           now() - make_interval(days => nullif(days, 0)))
                                    OFFSET 0) raw
                     LIMIT %(limit)s) expired
            HAVING count(*) > 0
            """,
            **tracked,
            limit=MAX_SUMMED,
        ):
            database().execute(
                """
                SELECT sum_raw_days(%(ids)s::bigint[], %(bots)s::boolean[], %(days)s::timestamptz[],
                                    %(dimensions)s::text[])
                """,
                batch[0] | {"dimensions": ALL_DIMENSIONS},
                idempotent=True,
                prelude=_PATIENT + PRELUDE,
            )


def _delete_expired(tracked: Row) -> int:
    """Delete expired visits in a month, and return their number. The conditions on `at` limit each
    part of the statement to one partition. Those of days that became raw meanwhile wait for the
    next purge."""
    deleted = 0
    while True:
        [batch] = database().execute(
            """
            WITH deleted AS (
                DELETE FROM visits
                 WHERE ctid = ANY (ARRAY(
                     SELECT expired.ctid
                       FROM unnest(%(ids)s::bigint[], %(days)s::int[]) AS retained (id, days),
                            LATERAL (SELECT ctid FROM visits v
                                      WHERE tracked_id = retained.id
                                        AND at < now() - make_interval(days => retained.days)
                                        AND at >= %(since)s::timestamptz
                                        AND at < %(until)s::timestamptz
                                        AND (SELECT true FROM tracked_rollups r
                                              WHERE r.tracked_id = v.tracked_id
                                                AND unit = 'raw' AND r.bot = v.bot
                                                AND r.at = date_trunc('day', v.at, 'UTC')) IS NULL
                                      LIMIT %(limit)s) expired
                      WHERE retained.days > 0
                      LIMIT %(limit)s))
                   AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
                RETURNING 1)
            SELECT count(*) AS number FROM deleted
            """,
            tracked | {"limit": MAX_ROWS},
            idempotent=False,
            prelude=_BY_INDEX,
        )
        deleted += int(batch["number"])
        if batch["number"] < MAX_ROWS:
            return deleted


def _delete_visitors(ids: list[int]) -> None:
    """Select visitors without visits before the delete locks them: a new visit by such a visitor
    waits for one batch at most. EXCEPT reads each row once, regardless of the number of its
    visits."""
    while visitors := database().execute(
        """
        SELECT tracked_id, visitor FROM visitors WHERE tracked_id = ANY (%(ids)s::bigint[])
        EXCEPT
        SELECT tracked_id, visitor FROM visits WHERE tracked_id = ANY (%(ids)s::bigint[])
         LIMIT 100000
        """,
        {"ids": ids},
        idempotent=True,
        prelude=NO_TIMEOUT,
    ):
        for start in range(0, len(visitors), MAX_ROWS):
            batch = visitors[start : start + MAX_ROWS]
            run_unsynced(
                """
                WITH deleted AS (
                    DELETE FROM visitors
                     USING unnest(%(ids)s::bigint[], %(visitors)s::bytea[])
                           AS stale (tracked_id, visitor)
                     WHERE visitors.tracked_id = stale.tracked_id
                       AND visitors.visitor = stale.visitor
                       AND NOT EXISTS (SELECT FROM visits v  -- since they were read
                                        WHERE v.tracked_id = stale.tracked_id
                                          AND v.visitor = stale.visitor
                                          AND v.at > now() - interval '1 hour')
                    RETURNING stale.*)
                DELETE FROM conversions c
                 USING deleted
                 WHERE c.tracked_id = deleted.tracked_id AND c.visitor = deleted.visitor
                """,
                ids=[visitor["tracked_id"] for visitor in batch],
                visitors=[visitor["visitor"] for visitor in batch],
            )


# --- other expired rows


_ROUND_SECONDS = 600  # between two rounds of a process
EXPIRING = (
    older_than("rate_windows", "until", "1 hour"),
    older_than("idempotency_keys", "created", "24 hours"),
    older_than("binned_links", "binned", f"{link_bin.DAYS} days"),
    older_than("outbox", "created", "30 days"),  # without the feature that moves events, they wait here
    older_than("tracked_rollups", "timezone('UTC', at)", f"{DETAILED_DAYS + 1} days", "unit = 'quarter'"),
    *(
        cleared_after(table, "at", f"{DETAILED_DAYS + 1} days", "quarter = NULL, quarters = NULL", "detailed")
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
