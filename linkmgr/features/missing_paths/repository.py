from linkmgr.core.database.expiry import older_than
from linkmgr.core.database.paging import Page, page
from linkmgr.core.database.statements import run_unsynced

KEPT_DAYS = 30
MAX_PATHS = 1000  # of a domain; beyond, the half with the fewest visits becomes OTHER
OTHER = "Other"
OWN = 0  # the user and the domain of the paths of our own host

delete_expired = older_than("missing_paths", "day", f"{KEPT_DAYS + 1} days")


def add(counts: str) -> None:
    """`counts` is a JSON array of objects with domain_id, OWN for our own host, path and visits."""
    run_unsynced(
        """
        WITH counts AS MATERIALIZED (
            SELECT *
              FROM json_to_recordset(%(counts)s)
                   AS counts (domain_id bigint, path text, visits bigint)),
        branded AS MATERIALIZED (
            SELECT user_id, id
              FROM domains
             WHERE id IN (SELECT domain_id FROM counts)
               FOR KEY SHARE),  -- without those that are being deleted
        added AS MATERIALIZED (
            SELECT user_id, id AS domain_id, (now() AT TIME ZONE 'UTC')::date AS day, path, visits
              FROM (SELECT * FROM branded UNION ALL SELECT %(own)s::bigint, %(own)s) hosts
              JOIN counts ON domain_id = id),
        stored AS MATERIALIZED (
            SELECT user_id, domain_id, day, path, visits
              FROM (SELECT DISTINCT user_id, domain_id FROM added) asked
              JOIN missing_paths USING (user_id, domain_id)
             WHERE day > now() - make_interval(days => %(days)s)),
        paths AS (
            SELECT domain_id, path, sum(visits) AS visits
              FROM (SELECT * FROM stored UNION ALL SELECT * FROM added) counted
             WHERE path <> %(other)s
             GROUP BY domain_id, path),
        ranked AS (
            SELECT domain_id, path, count(*) OVER (PARTITION BY domain_id) AS number,
                   row_number() OVER (PARTITION BY domain_id ORDER BY visits DESC, random()) AS rank
              FROM paths),
        rare AS MATERIALIZED (
            SELECT domain_id, path FROM ranked
             WHERE number > %(max_paths)s AND rank > (%(max_paths)s + 1) / 2),
        forgotten AS (
            DELETE FROM missing_paths m
             USING stored s JOIN rare USING (domain_id, path)
             WHERE (m.user_id, m.domain_id, m.day, m.path) = (s.user_id, s.domain_id, s.day, s.path)
            RETURNING m.user_id, m.domain_id, m.day, %(other)s AS path, m.visits)
        INSERT INTO missing_paths AS m (user_id, domain_id, day, path, visits)
        SELECT user_id, domain_id, day, path, sum(visits)
          FROM (SELECT * FROM forgotten
                 UNION ALL
                SELECT user_id, domain_id, day,
                       CASE WHEN (domain_id, path) IN (SELECT * FROM rare) THEN %(other)s
                            ELSE path END, visits
                  FROM added) counted
         GROUP BY user_id, domain_id, day, path
         ORDER BY user_id, domain_id, day, path
        ON CONFLICT (user_id, domain_id, day, path)
        DO UPDATE SET visits = m.visits + excluded.visits
        """,
        counts=counts,
        days=KEPT_DAYS,
        max_paths=MAX_PATHS,
        other=OTHER,
        own=OWN,
    )


def index(user_id: int, domain_id: int, *, limit: int, number: int) -> Page:
    """List the paths of the last KEPT_DAYS, those with the most visits first."""
    return page(
        """
        SELECT path, visits, last, days
          FROM matches
         WHERE path IS NOT NULL
         ORDER BY visits DESC, path
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT count(*) FROM matches",
        matches="""
        SELECT path, sum(visits)::bigint AS visits, max(day) AS last,
               json_agg(json_build_object('date', day, 'visits', visits) ORDER BY day) AS days
          FROM missing_paths
         WHERE user_id = %(user_id)s AND domain_id = %(domain_id)s
           AND day > now() - make_interval(days => %(days)s)
         GROUP BY path
        """,
        user_id=user_id,
        domain_id=domain_id,
        days=KEPT_DAYS,
        limit=limit,
        number=number,
        order="visits",
    )
