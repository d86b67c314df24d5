"""The purge of expired visits, of visitors without visits, and of other expired rows.

The number of rows does not affect how long locks are held: the purge selects rows without locks and deletes them in
batches of one transaction each. It drops partitions one at a time, with a short lock timeout. Each process also deletes
other expired rows in the background.
"""

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, NamedTuple

from psycopg2.errors import LockNotAvailable, QueryCanceled

from linkmgr.db.statements import UNSYNCED, Row, database, run_unsynced
from linkmgr.repository import cleanup, import_rows, imports, outbox, plans
from linkmgr.repository.visits import DETAILED_DAYS, create_partitions

MAX_ROWS = 5000
MAX_TARGETS = 1000  # or users
_TRIES = 5
# New visits wait while a partition is dropped.
_SHORT_TIMEOUTS = "SET LOCAL lock_timeout = '40ms'; SET LOCAL statement_timeout = '80ms'; "
_NO_TIMEOUT = f"{UNSYNCED}SET LOCAL statement_timeout = 0; "
_BY_INDEX = f"{_NO_TIMEOUT}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "


class Purged(NamedTuple):
    visits: int  # deleted rows
    months: int  # dropped partitions


def purge() -> Purged:
    """Delete visits past their owner's retention period, and visitors without visits. Drop the months that no owner
    retains. The totals of links and the rollups by day remain."""
    create_partitions()
    after: int | None = 0
    while after is not None:
        after = plans.note_retention(after, MAX_TARGETS)
    months = visits = 0
    for month in _expired_months():
        if month["whole"]:
            months += _drop_partition(month["partition"])
        else:
            visits += _delete_expired(month["since"], month["until"])
    _delete_orphans()
    if visits or months:
        _delete_visitors()
    run_unsynced(
        """
        DELETE FROM usage_parts
         WHERE kind LIKE 'visits %%' AND kind < 'visits ' || to_char(now(), 'YYYY-MM')
            OR kind LIKE 'bots %%' AND kind < 'bots ' || to_char(now(), 'YYYY-MM')
        """
    )
    _delete_expired_rows()
    return Purged(visits, months + sum(_drop_partition(partition, if_empty=True) for partition in _empty_months()))


def _rows(sql: str, **params: Any) -> list[Row]:
    return database().execute(sql, params, idempotent=True, prelude=_NO_TIMEOUT)


# --- months


def _expired_months() -> list[Row]:
    """Return the partitions with visits past the shortest retention period, and as `whole` True for those past the
    longest one. Retention 0 means forever. The retention of a plan also applies to administrators, as their account
    page says."""
    return _rows(
        """
        SELECT partition::text, since::text, until::text,
               coalesce(until <= now() - make_interval(days => longest), false) AS whole
          FROM partitions,
               (SELECT min(nullif(days, 0)) AS shortest, CASE WHEN min(days) > 0 THEN max(days) END AS longest
                  FROM (SELECT (limits ->> 'retention')::int AS days FROM accounts) retained) periods
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
    """Drop a partition and return True. Return False if it is in use, for example by a backup; the next purge tries
    again."""
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


# --- visits past the retention period of their owners


def _delete_expired(since: str, until: str) -> int:
    """Delete the expired visits of a month, in order of their targets. Return their number."""
    deleted, after = 0, 0
    while True:
        batch = _delete_batch(since, until, after)
        deleted += int(batch["deleted"])
        if batch["deleted"] < MAX_ROWS:  # otherwise the same targets may have more
            if batch["last"] is None:
                return deleted
            after = batch["last"]


def _delete_batch(since: str, until: str, after: int) -> Row:
    """Delete at most MAX_ROWS expired visits of the next MAX_TARGETS targets that were visited in the month.

    Return their number as `deleted`, and the id of the last target as `last`, None if there are no more targets. The
    recursive query finds each next target by the index, without reading the visits between. The conditions on `at`
    limit each part of the statement to one partition. All visits of deleted targets are expired: `totals`, which
    _delete_orphans reads, has no targets that only bots visited.
    """
    [batch] = database().execute(
        """
        WITH RECURSIVE visited AS (
            SELECT (SELECT tracked_id FROM visits
                     WHERE tracked_id > %(after)s AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
                     ORDER BY tracked_id LIMIT 1) AS id, 1 AS number
            UNION ALL
            SELECT (SELECT tracked_id FROM visits
                     WHERE tracked_id > visited.id AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
                     ORDER BY tracked_id LIMIT 1), number + 1
              FROM visited
             WHERE id IS NOT NULL AND number < %(max_targets)s),
        retained AS MATERIALIZED (
            SELECT targets.id,
                   CASE WHEN accounts.id IS NULL THEN 'infinity'
                        ELSE now() - make_interval(days => (limits ->> 'retention')::int) END AS since
              FROM (SELECT visited.id, coalesce((SELECT user_id FROM links WHERE links.id = visited.id),
                                                (SELECT user_id FROM qrs WHERE qrs.id = visited.id)) AS user_id
                      FROM visited) targets
              LEFT JOIN accounts ON accounts.id = targets.user_id
             WHERE accounts.id IS NULL OR (limits ->> 'retention')::int > 0),
        deleted AS (
            DELETE FROM visits
             WHERE ctid = ANY (ARRAY(SELECT expired.ctid
                                       FROM retained,
                                            LATERAL (SELECT ctid FROM visits
                                                      WHERE tracked_id = retained.id AND at < retained.since
                                                        AND at >= %(since)s::timestamptz
                                                        AND at < %(until)s::timestamptz
                                                      LIMIT %(max_rows)s) expired
                                      LIMIT %(max_rows)s))
               AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
            RETURNING 1)
        SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT max(id) FROM visited) AS last
        """,
        {"since": since, "until": until, "after": after, "max_rows": MAX_ROWS, "max_targets": MAX_TARGETS},
        idempotent=False,
        prelude=_BY_INDEX,
    )
    return batch


# --- deleted targets, and visitors without visits


def _target_batches() -> Iterator[list[Row]]:
    """Yield all visited targets in batches. `orphaned` is True if the link or QR code has been deleted."""
    after = 0
    while targets := _rows(
        """
        SELECT tracked_id, NOT EXISTS (SELECT FROM links WHERE id = tracked_id)
                          AND NOT EXISTS (SELECT FROM qrs WHERE id = tracked_id) AS orphaned
          FROM totals
         WHERE tracked_id > %(after)s
         ORDER BY tracked_id
         LIMIT %(limit)s
        """,
        after=after,
        limit=MAX_TARGETS,
    ):
        yield targets
        after = targets[-1]["tracked_id"]


def _delete_orphans() -> None:
    """Delete visits that were stored after their target was deleted."""
    for targets in _target_batches():
        ids = [target["tracked_id"] for target in targets if target["orphaned"]]
        while ids and not cleanup.targets({"ids": ids}):
            pass


def _delete_visitors() -> None:
    """Delete visitors without visits.

    Select them before the delete locks them: a new visit by such a visitor waits for one batch at most. EXCEPT reads
    each row once, regardless of the number of visits of a target.
    """
    for targets in _target_batches():
        while visitors := _rows(
            """
            SELECT tracked_id, visitor FROM visitors WHERE tracked_id = ANY (%(ids)s::bigint[])
            EXCEPT
            SELECT tracked_id, visitor FROM visits WHERE tracked_id = ANY (%(ids)s::bigint[])
             LIMIT 100000
            """,
            ids=[target["tracked_id"] for target in targets],
        ):
            for start in range(0, len(visitors), MAX_ROWS):
                batch = visitors[start : start + MAX_ROWS]
                run_unsynced(
                    """
                    DELETE FROM visitors
                     USING unnest(%(ids)s::bigint[], %(visitors)s::bytea[]) AS stale (tracked_id, visitor)
                     WHERE visitors.tracked_id = stale.tracked_id AND visitors.visitor = stale.visitor
                       AND NOT EXISTS (SELECT FROM visits v  -- since they were read
                                        WHERE v.tracked_id = stale.tracked_id AND v.visitor = stale.visitor
                                          AND v.at > now() - interval '1 hour')
                    """,
                    ids=[visitor["tracked_id"] for visitor in batch],
                    visitors=[visitor["visitor"] for visitor in batch],
                )


# --- other expired rows


def _deletion(table: str, column: str, age: str, condition: str = "true") -> Callable[[int], int]:
    """Return a function that deletes some rows whose column is older than an age, and returns their number."""
    expired = f"{column} < now() - interval '{age}' AND {condition}"
    sql = f"""
        WITH deleted AS (
            DELETE FROM {table}
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE {expired}
                                      ORDER BY {column} LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
               AND {expired}
            RETURNING 1)
        SELECT count(*) AS number FROM deleted
    """  # noqa: S608 - static SQL

    def delete(limit: int) -> int:
        deleted = run_unsynced(sql, limit=limit)
        assert deleted is not None
        return int(deleted["number"])

    return delete


_ROUND_SECONDS = 600  # between two rounds of a process
_KINDS = (
    _deletion("rate_windows", "until", "1 hour"),
    _deletion("idempotency_keys", "created", "24 hours"),
    _deletion("events", "created", f"{outbox.DAYS_KEPT} days"),
    *(
        _deletion(table, "timezone('UTC', at)", f"{DETAILED_DAYS + 1} days", "unit = 'quarter'")
        for table in ("tracked_rollups", "account_rollups")
    ),
    imports.delete_expired,
    import_rows.delete_expired,
)
_ended = [float("-inf")]  # the time at which this process last found nothing more


def _delete_expired_rows() -> None:
    for delete_expired in _KINDS:
        while delete_expired(MAX_ROWS) == MAX_ROWS:
            pass


def delete_some_expired() -> None:
    """Delete at most MAX_ROWS rows of each kind, and create the next partitions of `visits`, unless this process did so
    a short time ago and nothing more was expired."""
    if monotonic() < _ended[0] + _ROUND_SECONDS:
        return
    create_partitions()
    if max([delete_expired(MAX_ROWS) for delete_expired in _KINDS]) < MAX_ROWS:
        _ended[0] = monotonic()
