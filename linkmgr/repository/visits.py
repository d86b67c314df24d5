"""Visits: what is counted of them."""

from linkmgr.db.statements import Row, database, row, run

# The statistics of a link or a QR code that nobody has visited; of others the view `statistics` has them.
NONE: Row = {
    "clicks": 0,
    "uniqueClicks": 0,
    "topCountries": {},
    "topReferrers": {},
    "topBrowsers": {},
    "topOs": {},
    "socialCount": {"facebook": 0, "twitter": 0, "instagram": 0},
}
# Labels that are counted for a target and a dimension.  Visitors can invent referrers and browsers, and could fill
# the disk: what comes after that many is counted as one label.
MAX_LABELS = 1000
OTHER = "Other"


def add(spool: str, start: int, stop: int, visits: str) -> bool:
    """Store the visits in bytes `start` to `stop` of a spool file, unless the user's visits of this month are used up.

    Return False, and store nothing, unless the file is stored up to `start`. So the statement may be repeated when
    its outcome is unknown. `visits` is a JSON array of objects with target_id, user_id, at (seconds since the epoch),
    visitor (hexadecimal), country, referrer, browser, os, and social, which may be null. Concurrent statements wait
    for each other at the counter of the month, and lock the other rows in one order.
    """
    [result] = database().execute(
        """
        WITH moved AS (
            INSERT INTO visit_spools AS s (name, stored)
            SELECT %(spool)s, %(stop)s::bigint
             WHERE %(start)s::bigint = 0 OR EXISTS (SELECT FROM visit_spools WHERE name = %(spool)s)
            ON CONFLICT (name) DO UPDATE SET stored = excluded.stored WHERE s.stored = %(start)s::bigint
            RETURNING name),
        seen AS (
            SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY at) AS place
              FROM json_to_recordset(%(visits)s) AS visits (
                   target_id bigint, user_id bigint, at float8, visitor text,
                   country text, referrer text, browser text, os text, social text)
             WHERE EXISTS (SELECT FROM moved)),
        plan AS (
            SELECT id AS user_id, CASE WHEN NOT admin THEN nullif((limits ->> 'clicks')::bigint, 0) END AS most
              FROM accounts
             WHERE id IN (SELECT user_id FROM seen)),
        admitted AS (
            INSERT INTO usage AS u (user_id, kind, total, last_added)
            SELECT user_id, 'visits ' || to_char(now(), 'YYYY-MM'), least(count(*), most), least(count(*), most)
              FROM seen
              JOIN plan USING (user_id)
             GROUP BY user_id, most
             ORDER BY user_id
            ON CONFLICT (user_id, kind) DO UPDATE
               SET (total, last_added) = (
                   SELECT u.total + added, added
                     FROM (SELECT greatest(least(excluded.last_added, most - u.total), 0) AS added
                             FROM plan
                            WHERE user_id = u.user_id) room)
            RETURNING user_id, last_added),
        kept AS (
            SELECT seen.* FROM seen JOIN admitted USING (user_id) WHERE place <= last_added),
        stored AS (
            INSERT INTO visits (target_id, at, visitor, country, referrer, browser, os)
            SELECT target_id, least(to_timestamp(at), now()), decode(visitor, 'hex'), country, referrer, browser, os
              FROM kept),
        first AS (
            INSERT INTO visitors (target_id, visitor)
            SELECT DISTINCT target_id, decode(visitor, 'hex') FROM kept ORDER BY 1, 2
            ON CONFLICT DO NOTHING
            RETURNING target_id),
        counted AS (
            INSERT INTO totals AS t (target_id, clicks, visitors)
            SELECT target_id, count(*), (SELECT count(*) FROM first WHERE first.target_id = kept.target_id)
              FROM kept
             GROUP BY target_id
             ORDER BY target_id
            ON CONFLICT (target_id) DO UPDATE
               SET clicks = t.clicks + excluded.clicks, visitors = t.visitors + excluded.visitors),
        labelled AS (
            SELECT target_id, dimension, label, count(*) AS times
              FROM kept,
                   LATERAL (VALUES ('country', country), ('referrer', referrer), ('browser', browser), ('os', os),
                                   ('social', social)) AS dimensions (dimension, label)
             WHERE label IS NOT NULL
             GROUP BY target_id, dimension, label),
        tallied AS (
            INSERT INTO target_breakdowns AS t (target_id, dimension, label, total)
            SELECT target_id, dimension, shown, sum(times)
              FROM (SELECT *,
                           CASE WHEN EXISTS (SELECT FROM target_breakdowns k
                                              WHERE k.target_id = l.target_id AND k.dimension = l.dimension
                                                AND k.label = l.label)
                                  OR (SELECT count(*) FROM (SELECT FROM target_breakdowns k
                                                             WHERE k.target_id = l.target_id
                                                               AND k.dimension = l.dimension
                                                             LIMIT %(most)s) few) < %(most)s
                                THEN label ELSE %(other)s END AS shown
                      FROM labelled l) capped
             GROUP BY target_id, dimension, shown
             ORDER BY target_id, dimension, shown
            ON CONFLICT (target_id, dimension, label) DO UPDATE SET total = t.total + excluded.total)
        SELECT EXISTS (SELECT FROM moved) AS moved
        """,
        {"spool": spool, "start": start, "stop": stop, "visits": visits, "most": MAX_LABELS, "other": OTHER},
        idempotent=True,
    )
    return bool(result["moved"])


def position(spool: str) -> int:
    """Return the number of bytes of a spool file that are stored."""
    found = row("SELECT stored FROM visit_spools WHERE name = %(spool)s", spool=spool)
    return int(found["stored"]) if found else 0


def forget_spool(spool: str) -> None:
    run("DELETE FROM visit_spools WHERE name = %(spool)s", spool=spool)


def create_partitions() -> None:
    """Create the partitions of `visits` for this month and the next two."""
    run("SELECT create_partitions()")


def create_partitions_for(visits: str) -> None:
    """Create the partitions that the visits, as `add` takes them, belong to."""
    run(
        """
        SELECT create_partition(month)
          FROM (SELECT DISTINCT date_trunc('month', least(to_timestamp(at), now()), 'UTC') AS month
                  FROM json_to_recordset(%(visits)s) AS visits (at float8)
                 WHERE at IS NOT NULL) months
        """,
        visits=visits,
    )
