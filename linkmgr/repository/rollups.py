"""Rollups of visits: the counting of pending visits, the job that counts the visits stored before there were rollups,
and the folding of old rollups.

The trigger on `visits` in schema.sql makes each stored visit pending.
"""

from collections.abc import Callable
from typing import Any

from psycopg2.errors import QueryCanceled

from linkmgr.db.statements import UNSYNCED, Row, database

MAX_PENDING = 5000
MAX_VISITS = 2000
MAX_TARGETS = 500
MAX_ROWS = 5000
DETAILED_DAYS = 400  # older rollups have only days

_BY_INDEX = f"{UNSYNCED}SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "
# Processes that run the job at the same time, after a lease has expired, continue from each other's position. The lock
# is a statement of its own: PostgreSQL 18 crashes if the statement itself waits for the row and then reads it again.
_LOCKED = f"{_BY_INDEX}SELECT id FROM jobs WHERE kind = 'fill_rollups' FOR UPDATE; "  # noqa: S608 - static SQL
_PATIENT = f"{UNSYNCED}SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = off; "

# The visits of a batch are those of one month after the position in the argument of the job, in the order of the index,
# up to and including all visits with the same target and time as the last one.
_VISITS = """
    WITH job AS MATERIALIZED (
        SELECT id, coalesce((argument ->> 'month')::timestamptz, '-infinity') AS month,
               coalesce((argument ->> 'target_id')::bigint, 0) AS target_id,
               coalesce((argument ->> 'at')::timestamptz, '-infinity') AS at
          FROM jobs
         WHERE kind = 'fill_rollups'),
    month AS MATERIALIZED (
        SELECT since, until FROM partitions WHERE since >= (SELECT month FROM job) ORDER BY since LIMIT 1),
    last AS MATERIALIZED (
        SELECT target_id, at
          FROM (SELECT v.target_id, v.at
                  FROM month, job,
                       LATERAL (SELECT target_id, at FROM visits
                                 WHERE (target_id, at) > (job.target_id, job.at)
                                   AND at >= month.since AND at < month.until AND NOT rolled
                                 ORDER BY target_id, at
                                 LIMIT %(limit)s) v) batch
         ORDER BY target_id DESC, at DESC
         LIMIT 1),
    owners AS MATERIALIZED (
        SELECT target_id, coalesce((SELECT user_id FROM links WHERE id = target_id),
                                   (SELECT user_id FROM qrs WHERE id = target_id)) AS user_id
          FROM (SELECT DISTINCT v.target_id
                  FROM month, job, last,
                       LATERAL (SELECT target_id FROM visits
                                 WHERE (target_id, at) > (job.target_id, job.at)
                                   AND (target_id, at) <= (last.target_id, last.at)
                                   AND at >= month.since AND at < month.until AND NOT rolled) v) targets),
    queued AS (
        INSERT INTO pending_visits (user_id, target_id, at, country, referrer, browser, os, bot, device, city, language)
        SELECT user_id, v.target_id, v.at, country, referrer, browser, os, bot, device, city, language
          FROM month, job, last,
               LATERAL (SELECT * FROM visits
                         WHERE (target_id, at) > (job.target_id, job.at)
                           AND (target_id, at) <= (last.target_id, last.at)
                           AND at >= month.since AND at < month.until AND NOT rolled) v
          JOIN owners ON owners.target_id = v.target_id
         WHERE user_id IS NOT NULL
        RETURNING 1),
    advanced AS (
        UPDATE jobs
           SET argument = coalesce(
                   (SELECT jsonb_build_object('month', month.since, 'target_id', last.target_id, 'at', last.at)
                      FROM month, last),
                   (SELECT jsonb_build_object('month', until) FROM month))
         WHERE id = (SELECT id FROM job) AND EXISTS (SELECT FROM month))
    SELECT NOT EXISTS (SELECT FROM month) AS done, (SELECT count(*) FROM queued) AS queued
"""
_STATISTICS = """
    WITH targets AS MATERIALIZED (
        SELECT target_id FROM totals WHERE statistics IS NULL LIMIT %(limit)s)
    SELECT compute_statistics(ARRAY(SELECT target_id FROM targets)), NOT EXISTS (SELECT FROM targets) AS done
"""
_BUSY_DAYS = """
    DELETE FROM busy_days
     WHERE day < (date_trunc('day', now() - make_interval(days => %(days)s), 'UTC') AT TIME ZONE 'UTC')::date
"""
# One statement: a reader sees each visit once. The recursive query finds each next target by the index.
_FOLD = """
    WITH RECURSIVE targets AS (
        SELECT (SELECT min(target_id) FROM target_quarters WHERE target_id > %(after)s) AS target_id, 1 AS number
        UNION ALL
        SELECT (SELECT min(target_id) FROM target_quarters q WHERE q.target_id > targets.target_id), number + 1
          FROM targets
         WHERE target_id IS NOT NULL AND number < %(max_targets)s),
    folded AS (
        DELETE FROM target_quarters
         WHERE ctid = ANY (ARRAY(
                   SELECT q.ctid
                     FROM targets t,
                          LATERAL (SELECT ctid FROM target_quarters
                                    WHERE target_id = t.target_id
                                      AND at < date_trunc('day', now() - make_interval(days => %(days)s), 'UTC')
                                    LIMIT %(max_rows)s) q
                    LIMIT %(max_rows)s))
           AND at < date_trunc('day', now() - make_interval(days => %(days)s), 'UTC')
        RETURNING target_id, (at AT TIME ZONE 'UTC')::date AS day, bot, visits, labels),
    sums AS (
        SELECT target_id, day, bot, dimension, json_object_agg(label, visits) AS labels
          FROM (SELECT target_id, day, bot, d.key AS dimension, l.key AS label, sum(l.value::bigint) AS visits
                  FROM folded, jsonb_each(labels) d, jsonb_each_text(d.value) l
                 GROUP BY target_id, day, bot, dimension, label) summed
         GROUP BY target_id, day, bot, dimension),
    days AS (
        INSERT INTO target_folds AS f (target_id, day, bot, visits, labels)
        SELECT target_id, day, bot, totals.visits, json_object_agg(dimension, sums.labels)
          FROM (SELECT target_id, day, bot, sum(visits) AS visits FROM folded GROUP BY target_id, day, bot) totals
          JOIN sums USING (target_id, day, bot)
         GROUP BY target_id, day, bot, totals.visits
         ORDER BY target_id, day, bot
        ON CONFLICT (target_id, day, bot) DO UPDATE
           SET visits = f.visits + excluded.visits, labels = add_labels(f.labels, excluded.labels))
    SELECT (SELECT count(*) FROM folded) AS folded, (SELECT max(target_id) FROM targets) AS last
"""
_ACCOUNTS = """
    WITH owners AS MATERIALIZED (
        SELECT id FROM users WHERE id > %(after)s ORDER BY id LIMIT %(max_targets)s),
    deleted AS (
        DELETE FROM account_rollups
         WHERE ctid = ANY (ARRAY(
                   SELECT r.ctid
                     FROM owners,
                          unnest('{"",country,city,referrer,browser,os,device,language,target}'::text[])
                              AS dimensions (dimension),
                          LATERAL (SELECT ctid FROM account_rollups a
                                    WHERE user_id = owners.id AND a.dimension = dimensions.dimension
                                      AND at < date_trunc('day', now() - make_interval(days => %(days)s), 'UTC')
                                    LIMIT %(max_rows)s) r
                    LIMIT %(max_rows)s))
           AND at < date_trunc('day', now() - make_interval(days => %(days)s), 'UTC')
        RETURNING 1)
    SELECT (SELECT count(*) FROM deleted) AS folded, (SELECT max(id) FROM owners) AS last
"""


def _halved(run: Callable[[int], list[Row]], limit: int) -> Row:
    """Return the row of a batch. If it exceeds its timeout, try again with half the limit."""
    while True:
        try:
            [batch] = run(limit)
        except QueryCanceled:
            if limit == 1:
                raise
            limit //= 2
        else:
            return batch


def roll_up() -> None:
    """Count the pending visits in the rollups, and compute the statistics of their targets."""

    def run(limit: int) -> list[Row]:
        sql = "SELECT counted, popular FROM roll_up_pending(%(limit)s)"
        return database().execute(sql, {"limit": limit}, idempotent=True, prelude=UNSYNCED)

    while (batch := _halved(run, MAX_PENDING))["counted"]:
        for target_id in batch["popular"]:
            database().execute("SELECT keep_days(%(id)s)", {"id": target_id}, idempotent=True, prelude=_PATIENT)


def fill(_: Any) -> bool:
    """Count a batch of the visits that were stored before there were rollups, or compute statistics that are missing.
    Return True if nothing is left."""

    def run(limit: int) -> list[Row]:
        return database().execute(_VISITS, {"limit": limit}, idempotent=False, prelude=_LOCKED)

    done = _halved(run, MAX_VISITS)["done"]
    roll_up()
    if not done:
        return False
    [batch] = database().execute(_STATISTICS, {"limit": MAX_TARGETS}, idempotent=False, prelude=UNSYNCED)
    return bool(batch["done"])


def fold() -> None:
    """Fold the quarters of an hour of targets that are older than DETAILED_DAYS into days, and delete those of
    accounts, which have days already."""
    roll_up()
    database().execute(_BUSY_DAYS, {"days": DETAILED_DAYS}, idempotent=True, prelude=_PATIENT)
    for statement in (_FOLD, _ACCOUNTS):
        after = 0
        while after is not None:
            [batch] = database().execute(
                statement,
                {"after": after, "max_targets": MAX_TARGETS, "max_rows": MAX_ROWS, "days": DETAILED_DAYS},
                idempotent=False,
                prelude=_BY_INDEX,
            )
            if batch["folded"] < MAX_ROWS:  # otherwise the same ones may have more
                after = batch["last"]


HANDLERS = {"fill_rollups": fill}
