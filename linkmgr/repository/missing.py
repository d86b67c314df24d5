"""Paths of branded domains that visitors asked for and that do not exist, with counts by day. They are rows of
`account_rollups` with the dimension `missing` and the id of the domain."""

from linkmgr.db.paging import Page, page
from linkmgr.db.statements import run_unsynced

DAYS = 30
MAX_PATHS = 1000  # of a domain; all further ones are counted as OTHER
OTHER = "Other"


def add(counts: str) -> None:
    """`counts` is a JSON array of objects with domain_id, path and visits."""
    run_unsynced(
        """
        WITH added AS (
            SELECT d.user_id, 'missing ' || d.id AS dimension, path, visits,
                   (SELECT coalesce(array_agg(DISTINCT label), '{}') FROM account_rollups
                     WHERE user_id = d.user_id AND dimension = 'missing ' || d.id
                       AND at > now() - make_interval(days => %(days)s)) AS known
              FROM json_to_recordset(%(counts)s) AS counts (domain_id bigint, path text, visits bigint)
              JOIN domains d ON d.id = domain_id),
        ranked AS (
            SELECT *, path = ANY (known) AS is_known,
                   row_number() OVER (PARTITION BY dimension, path = ANY (known) ORDER BY visits DESC, path) AS rank
              FROM added)
        INSERT INTO account_rollups AS r (user_id, dimension, at, label, bot, visits)
        SELECT user_id, dimension, date_trunc('day', now(), 'UTC'),
               CASE WHEN is_known OR cardinality(known) + rank <= %(max_paths)s THEN path ELSE %(other)s END, false,
               sum(visits)
          FROM ranked
         GROUP BY 1, 2, 4
         ORDER BY 1, 2, 4
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits
        """,
        counts=counts,
        days=DAYS,
        max_paths=MAX_PATHS,
        other=OTHER,
    )


def index(user_id: int, domain_id: int, *, limit: int, number: int) -> Page:
    """List the paths of the last DAYS, those with the most visits first."""
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
        SELECT label AS path, sum(visits)::bigint AS visits, max(at AT TIME ZONE 'UTC')::date AS last,
               json_agg(json_build_object('date', (at AT TIME ZONE 'UTC')::date, 'visits', visits) ORDER BY at) AS days
          FROM account_rollups
         WHERE user_id = %(user_id)s AND dimension = 'missing ' || %(domain_id)s
           AND at > now() - make_interval(days => %(days)s)
         GROUP BY label
        """,
        user_id=user_id,
        domain_id=domain_id,
        days=DAYS,
        limit=limit,
        number=number,
        order="visits",
    )
