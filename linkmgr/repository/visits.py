"""Visits: what is counted of them, and what the statistics show."""

from contextlib import closing

from linkmgr.database import Row, database, row, run_aside

TOP = 10  # labels that each map of the statistics shows
# Labels that are counted for a target and a dimension.  Visitors can invent referrers and browsers, and reading
# the statistics must stay fast: what comes after that many is counted as one label.
MOST_LABELS = 1000
OTHER = "Other"


def statistics(target_id: int) -> Row:
    """Of a link or a QR code, whose ids come from one sequence, as the specification's statistics object."""
    found = row(
        """
        SELECT coalesce(max(total) FILTER (WHERE dimension = 'clicks'), 0) AS clicks,
               coalesce(max(total) FILTER (WHERE dimension = 'unique'), 0) AS "uniqueClicks",
               coalesce(json_object_agg(label, total::text ORDER BY place)
                        FILTER (WHERE dimension = 'country' AND place <= %(top)s), '{}') AS "topCountries",
               coalesce(json_object_agg(label, total::text ORDER BY place)
                        FILTER (WHERE dimension = 'referrer' AND place <= %(top)s), '{}') AS "topReferrers",
               coalesce(json_object_agg(label, total::text ORDER BY place)
                        FILTER (WHERE dimension = 'browser' AND place <= %(top)s), '{}') AS "topBrowsers",
               coalesce(json_object_agg(label, total::text ORDER BY place)
                        FILTER (WHERE dimension = 'os' AND place <= %(top)s), '{}') AS "topOs",
               json_build_object(
                   'facebook', coalesce(max(total) FILTER (WHERE dimension = 'social' AND label = 'facebook'), 0),
                   'twitter', coalesce(max(total) FILTER (WHERE dimension = 'social' AND label = 'twitter'), 0),
                   'instagram', coalesce(max(total) FILTER (WHERE dimension = 'social' AND label = 'instagram'), 0)
               ) AS "socialCount"
          FROM (SELECT dimension, label, total,
                       row_number() OVER (PARTITION BY dimension ORDER BY total DESC, label) AS place
                  FROM tallies
                 WHERE target_id = %(target_id)s) ranked
        """,
        target_id=target_id,
        top=TOP,
    )
    assert found is not None
    return found


def add(target_id: int, user_id: int, *, visitor: bytes, seen: dict[str, str], social: str | None) -> None:
    """Counts a visit of the target of the user, unless the plan's visits of this month are used up.

    The counter of the month is locked first, so that the visits of one user queue up there and meet in the other
    rows in no other order.  `seen` has country, referrer, browser and os.
    """
    run_aside(
        """
        WITH plan AS (
            SELECT CASE WHEN admin THEN 0 ELSE (limits ->> 'clicks')::bigint END AS clicks
              FROM accounts
             WHERE id = %(user_id)s),
        admitted AS (
            INSERT INTO usage AS u (user_id, kind, total)
            SELECT %(user_id)s::bigint, 'visits ' || to_char(now(), 'YYYY-MM'), 1 FROM plan
            ON CONFLICT (user_id, kind) DO UPDATE SET total = u.total + 1
             WHERE (SELECT clicks = 0 OR u.total < clicks FROM plan)
            RETURNING user_id),
        visit AS (
            INSERT INTO visits (target_id, visitor, country, referrer, browser, os)
            SELECT %(target_id)s::bigint, %(visitor)s::bytea, %(country)s, %(referrer)s, %(browser)s, %(os)s
              FROM admitted),
        first AS (
            INSERT INTO visitors (target_id, visitor)
            SELECT %(target_id)s::bigint, %(visitor)s::bytea FROM admitted
            ON CONFLICT DO NOTHING
            RETURNING target_id),
        counted AS (
            SELECT dimension, label
              FROM admitted,
                   (VALUES ('clicks', ''), ('country', %(country)s::text), ('referrer', %(referrer)s),
                           ('browser', %(browser)s), ('os', %(os)s), ('social', %(social)s))
                   AS dimensions (dimension, label)
             WHERE label IS NOT NULL
             UNION ALL
            SELECT 'unique', '' FROM first)
        INSERT INTO tallies AS t (target_id, dimension, label, total)
        SELECT %(target_id)s::bigint, dimension,
               CASE WHEN EXISTS (SELECT FROM tallies k
                                  WHERE k.target_id = %(target_id)s AND k.dimension = c.dimension AND k.label = c.label)
                      OR (SELECT count(*) FROM (SELECT FROM tallies k
                                                 WHERE k.target_id = %(target_id)s AND k.dimension = c.dimension
                                                 LIMIT %(most)s) few) < %(most)s
                    THEN label ELSE %(other)s END, 1
          FROM counted c
         ORDER BY dimension, label
        ON CONFLICT (target_id, dimension, label) DO UPDATE SET total = t.total + 1
        """,
        target_id=target_id,
        user_id=user_id,
        visitor=visitor,
        social=social,
        most=MOST_LABELS,
        other=OTHER,
        **seen,
    )


# What is kept of a visit, and for how long: the plan's retention in days, where 0 is for ever.  Administrators,
# whom no limit binds, are bound by this one: it is what the account page says.
_PURGE = (
    """
    DELETE FROM visits
     WHERE NOT EXISTS (
           SELECT FROM (SELECT id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs) targets
             JOIN accounts a ON a.id = user_id
            WHERE targets.id = target_id
              AND ((limits ->> 'retention')::int = 0
                   OR at >= now() - make_interval(days => (limits ->> 'retention')::int)))
    """,
    """
    DELETE FROM visitors
     WHERE NOT EXISTS (
           SELECT FROM visits WHERE target_id = visitors.target_id AND visitor = visitors.visitor)
    """,
    """
    DELETE FROM tallies
     WHERE NOT EXISTS (SELECT FROM links WHERE id = target_id) AND NOT EXISTS (SELECT FROM qrs WHERE id = target_id)
    """,
    "DELETE FROM usage WHERE kind LIKE 'visits %' AND kind < 'visits ' || to_char(now(), 'YYYY-MM')",
)


def purge() -> int:
    """Deletes the visits that are older than their owners' plans keep them, the visitors of whom none is left, and
    what came for a target that was being deleted; gives the number of visits.  The statistics' totals stay."""
    deleted = []
    with closing(database().connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        for statement in _PURGE:
            cursor.execute(statement)
            deleted.append(cursor.rowcount)
    return deleted[0]
