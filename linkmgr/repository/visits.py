"""Visits: what is counted of them."""

import orjson

from linkmgr.database import Row, run, run_aside

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
MOST_LABELS = 1000
OTHER = "Other"


def add(visits: list[Row]) -> None:
    """Counts visits of targets of users, each unless the plan's visits of this month are used up.

    A visit has target_id, user_id, age (seconds), visitor (hexadecimal), country, referrer, browser, os, and social,
    which may be None.  Statements that add at once wait for each other at the counter of the month, and meet in the
    other rows in one order.
    """
    run_aside(
        """
        WITH seen AS (
            SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY age DESC) AS place
              FROM json_to_recordset(%(visits)s) AS visits (
                   target_id bigint, user_id bigint, age float8, visitor text,
                   country text, referrer text, browser text, os text, social text)),
        plan AS (
            SELECT id AS user_id, CASE WHEN NOT admin THEN nullif((limits ->> 'clicks')::bigint, 0) END AS most
              FROM accounts
             WHERE id IN (SELECT user_id FROM seen)),
        admitted AS (
            INSERT INTO usage AS u (user_id, kind, total, step)
            SELECT user_id, 'visits ' || to_char(now(), 'YYYY-MM'), least(count(*), most), least(count(*), most)
              FROM seen
              JOIN plan USING (user_id)
             GROUP BY user_id, most
             ORDER BY user_id
            ON CONFLICT (user_id, kind) DO UPDATE
               SET (total, step) = (
                   SELECT u.total + added, added
                     FROM (SELECT greatest(least(excluded.step, most - u.total), 0) AS added
                             FROM plan
                            WHERE user_id = u.user_id) room)
            RETURNING user_id, step),
        kept AS (
            SELECT seen.* FROM seen JOIN admitted USING (user_id) WHERE place <= step),
        stored AS (
            INSERT INTO visits (target_id, at, visitor, country, referrer, browser, os)
            SELECT target_id, now() - make_interval(secs => age), decode(visitor, 'hex'), country, referrer, browser, os
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
             GROUP BY target_id, dimension, label)
        INSERT INTO tallies AS t (target_id, dimension, label, total)
        SELECT target_id, dimension, shown, sum(times)
          FROM (SELECT *,
                       CASE WHEN EXISTS (SELECT FROM tallies k
                                          WHERE k.target_id = l.target_id AND k.dimension = l.dimension
                                            AND k.label = l.label)
                              OR (SELECT count(*) FROM (SELECT FROM tallies k
                                                         WHERE k.target_id = l.target_id AND k.dimension = l.dimension
                                                         LIMIT %(most)s) few) < %(most)s
                            THEN label ELSE %(other)s END AS shown
                  FROM labelled l) capped
         GROUP BY target_id, dimension, shown
         ORDER BY target_id, dimension, shown
        ON CONFLICT (target_id, dimension, label) DO UPDATE SET total = t.total + excluded.total
        """,
        visits=orjson.dumps(visits).decode(),
        most=MOST_LABELS,
        other=OTHER,
    )


def make_months() -> None:
    """The parts of `visits` for this month and the next two."""
    run("SELECT make_months()")
