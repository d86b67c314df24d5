"""The purge of what has expired: visits, what is remembered of visitors, and counters.

Nothing here holds a lock that grows with the rows: what is to be deleted is found without locks, and deleted in
batches of a transaction each.  Partitions are dropped one at a time, in transactions that give up at once when others
use the table.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from psycopg2.errors import LockNotAvailable, QueryCanceled

from linkmgr.db.statements import UNSYNCED, Row, database, run_unsynced
from linkmgr.repository import callers, cleanup
from linkmgr.repository.visits import create_partitions

MAX_ROWS = 5000
MAX_TARGETS = 1000
_TRIES = 5
_BRIEFLY = "SET LOCAL lock_timeout = '40ms'; SET LOCAL statement_timeout = '80ms'; "  # visits wait meanwhile
_UNHURRIED = f"{UNSYNCED}SET LOCAL statement_timeout = 0; "
_BY_INDEX = f"{_UNHURRIED}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "


class Purged(NamedTuple):
    visits: int  # deleted one by one
    months: int  # dropped as a whole


def purge() -> Purged:
    """Delete visits past their owner's retention period, months that no owner retains as a whole, and what depended on
    them.  The totals of statistics remain."""
    create_partitions()
    months = sum(_drop(partition) for partition in _expired_months())
    visits = sum(_delete_expired(since, until) for since, until in _mixed_months())
    _delete_orphans()
    if visits or months:
        _delete_visitors()
    run_unsynced("DELETE FROM usage WHERE kind LIKE 'visits %%' AND kind < 'visits ' || to_char(now(), 'YYYY-MM')")
    while callers.delete_expired(MAX_ROWS) == MAX_ROWS:
        pass
    return Purged(visits, months + sum(_drop(partition, if_empty=True) for partition in _empty_months()))


def _unhurried(sql: str, **params: Any) -> list[Row]:
    return database().execute(sql, params, idempotent=True, prelude=_UNHURRIED)


# --- months


def _expired_months() -> list[str]:
    """The past months that are older than the longest retention period.  Retention 0 is forever.  Administrators,
    who have no other limits, have this one: it is what the account page says."""
    found = _unhurried(
        """
        SELECT partition::text
          FROM partitions,
               (SELECT CASE WHEN min(days) > 0 THEN max(days) END AS days
                  FROM (SELECT (limits ->> 'retention')::int AS days FROM accounts) retained) longest
         WHERE until <= now() - make_interval(days => days)
        """
    )
    return [month["partition"] for month in found]


def _empty_months() -> list[str]:
    found = _unhurried(
        """
        SELECT partition::text
          FROM partitions
         WHERE until <= now() AND NOT EXISTS (SELECT FROM visits WHERE at >= since AND at < until)
        """
    )
    return [month["partition"] for month in found]


def _drop(partition: str, *, if_empty: bool = False) -> bool:
    """Drop a partition unless others use it all the time, as while a dump is taken: then another day."""
    for _ in range(_TRIES):
        try:
            [answer] = database().execute(
                "SELECT drop_partition(%(partition)s::regclass, %(if_empty)s) AS dropped",
                {"partition": partition, "if_empty": if_empty},
                idempotent=False,
                prelude=_BRIEFLY,
            )
            return bool(answer["dropped"])
        except (LockNotAvailable, QueryCanceled):
            continue
    return False


# --- visits past the retention period of their owners


def _mixed_months() -> list[tuple[str, str]]:
    """The months that have begun before the shortest retention period."""
    found = _unhurried(
        """
        SELECT since::text, until::text
          FROM partitions
         WHERE since < (SELECT now() - make_interval(days => min(nullif((limits ->> 'retention')::int, 0)))
                          FROM accounts)
        """
    )
    return [(month["since"], month["until"]) for month in found]


def _delete_expired(since: str, until: str) -> int:
    """Walk through the targets that were visited in a month, by the index."""
    deleted, after = 0, 0
    while True:
        batch = _delete_batch(since, until, after)
        deleted += int(batch["deleted"])
        if batch["deleted"] < MAX_ROWS:  # else there may be more of the same targets
            if batch["last"] is None:
                return deleted
            after = batch["last"]


def _delete_batch(since: str, until: str, after: int) -> Row:
    """Delete expired visits of the next targets.  `last` is the last of these, or None if there are none."""
    [batch] = database().execute(
        """
        WITH RECURSIVE walk AS (
            SELECT (SELECT target_id FROM visits
                     WHERE target_id > %(after)s AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
                     ORDER BY target_id LIMIT 1) AS id, 1 AS place
            UNION ALL
            SELECT (SELECT target_id FROM visits
                     WHERE target_id > walk.id AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
                     ORDER BY target_id LIMIT 1), place + 1
              FROM walk
             WHERE id IS NOT NULL AND place < %(targets)s),
        retained AS MATERIALIZED (
            SELECT targets.id, now() - make_interval(days => (limits ->> 'retention')::int) AS since
              FROM (SELECT walk.id, coalesce((SELECT user_id FROM links WHERE links.id = walk.id),
                                             (SELECT user_id FROM qrs WHERE qrs.id = walk.id)) AS user_id
                      FROM walk) targets
              JOIN accounts ON accounts.id = targets.user_id AND (limits ->> 'retention')::int > 0),
        deleted AS (
            DELETE FROM visits
             WHERE ctid = ANY (ARRAY(SELECT expired.ctid
                                       FROM retained,
                                            LATERAL (SELECT ctid FROM visits
                                                      WHERE target_id = retained.id AND at < retained.since
                                                        AND at >= %(since)s::timestamptz
                                                        AND at < %(until)s::timestamptz
                                                      LIMIT %(most)s) expired
                                      LIMIT %(most)s))
               AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
            RETURNING 1)
        SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT max(id) FROM walk) AS last
        """,
        {"since": since, "until": until, "after": after, "most": MAX_ROWS, "targets": MAX_TARGETS},
        idempotent=False,
        prelude=_BY_INDEX,
    )
    return batch


# --- what is left of targets and visitors


def _targets() -> Iterator[list[Row]]:
    """The targets that were ever visited, some at a time."""
    after = 0
    while found := _unhurried(
        """
        SELECT target_id, NOT EXISTS (SELECT FROM links WHERE id = target_id)
                          AND NOT EXISTS (SELECT FROM qrs WHERE id = target_id) AS orphaned
          FROM totals
         WHERE target_id > %(after)s
         ORDER BY target_id
         LIMIT %(targets)s
        """,
        after=after,
        targets=MAX_TARGETS,
    ):
        yield found
        after = found[-1]["target_id"]


def _delete_orphans() -> None:
    """Visits that were stored after their target was deleted."""
    for found in _targets():
        ids = [target["target_id"] for target in found if target["orphaned"]]
        while ids and not cleanup.targets({"ids": ids}):
            pass


def _delete_visitors() -> None:
    """Forget the visitors of whom no visit remains.  They are looked for before they are locked: the next visit of
    such a visitor waits for a small batch at most.  EXCEPT reads each row once, however many a target has."""
    for found in _targets():
        while visitors := _unhurried(
            """
            SELECT target_id, visitor FROM visitors WHERE target_id = ANY (%(ids)s::bigint[])
            EXCEPT
            SELECT target_id, visitor FROM visits WHERE target_id = ANY (%(ids)s::bigint[])
             LIMIT 100000
            """,
            ids=[target["target_id"] for target in found],
        ):
            for first in range(0, len(visitors), MAX_ROWS):
                batch = visitors[first : first + MAX_ROWS]
                run_unsynced(
                    """
                    DELETE FROM visitors
                     USING unnest(%(ids)s::bigint[], %(visitors)s::bytea[]) AS gone (target_id, visitor)
                     WHERE visitors.target_id = gone.target_id AND visitors.visitor = gone.visitor
                    """,
                    ids=[visitor["target_id"] for visitor in batch],
                    visitors=[visitor["visitor"] for visitor in batch],
                )
