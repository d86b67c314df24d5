from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page, page
from linkmgr.core.database.statements import Row, row, rows, run, run_repaired, run_unsynced
from linkmgr.core.database.tables import batch_of, release_name
from linkmgr.core.errors import existing

batch = batch_of("domains")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    domains = named_page(
        "SELECT *, domain AS name, version::text FROM domains WHERE user_id = %(user_id)s AND has_text(domain, %(q)s)",
        counted="domains",
        user_id=user_id,
        **paging,
    )
    for domain in domains.rows:
        del domain["name"]  # for the order only
    return domains


def read(user_id: int, domain_id: int) -> Row:
    stored = row(
        "SELECT *, version::text FROM domains WHERE user_id = %(user_id)s AND id = %(domain_id)s",
        user_id=user_id,
        domain_id=domain_id,
    )
    return existing(stored, "domain")


def add(user_id: int, members: Row) -> Row:
    """Store a domain. `logo` is the image of `brandlogo`, or b"". `is_checked` is True if it points to this service.
    `id` is None, or that of a row that is not committed and takes none of the sequence."""
    added = run_repaired(
        """
        WITH added AS (
            INSERT INTO domains (id, user_id, scheme, host, redirectroot, redirect404, brandname,
                                 brandlogo, brandcolor, forwardquery, logo_hash, checked)
            VALUES (coalesce(%(id)s::bigint, nextval(pg_get_serial_sequence('domains', 'id'))),
                    %(user_id)s, split_part(%(domain)s, '://', 1), split_part(%(domain)s, '://', 2),
                    %(redirectroot)s, %(redirect404)s, %(brandname)s, %(brandlogo)s, %(brandcolor)s,
                    coalesce(%(forwardquery)s, false), store_logo(%(user_id)s, %(logo)s),
                    CASE WHEN %(is_checked)s THEN now() END)
            RETURNING *)
        SELECT *, version::text
          FROM added
         WHERE require_unbranded(ARRAY[redirectroot, redirect404])
           AND require_unblocked(user_id, to_jsonb(added))
        """,
        release_name,
        **members,
        user_id=user_id,
    )
    assert added
    return added


def update(user_id: int, domain_id: int, members: Row) -> Row:
    updated = run_repaired(
        """
        WITH updated AS (
            UPDATE domains
               SET redirectroot = coalesce(%(redirectroot)s, redirectroot),
                   redirect404 = coalesce(%(redirect404)s, redirect404),
                   brandname = coalesce(%(brandname)s, brandname),
                   brandlogo = coalesce(%(brandlogo)s, brandlogo),
                   brandcolor = coalesce(%(brandcolor)s, brandcolor),
                   forwardquery = coalesce(%(forwardquery)s, forwardquery),
                   logo_hash = CASE WHEN %(logo)s::bytea IS NULL THEN logo_hash
                                    ELSE store_logo(%(user_id)s, %(logo)s) END
             WHERE user_id = %(user_id)s AND id = %(domain_id)s
            RETURNING *)
        SELECT u.*, u.version::text
          FROM updated u
          JOIN domains before USING (id)
         WHERE require_unbranded(ARRAY[nullif(u.redirectroot, before.redirectroot),
                                       nullif(u.redirect404, before.redirect404)])
           AND require_unblocked(u.user_id, to_jsonb(u), to_jsonb(before))
        """,
        release_name,
        **members,
        user_id=user_id,
        domain_id=domain_id,
    )
    return existing(updated, "domain")


def delete(user_id: int, domain_id: int) -> None:
    deleted = run(
        """
        WITH deleted AS (
            DELETE FROM domains WHERE user_id = %(user_id)s AND id = %(domain_id)s RETURNING id),
        missing_paths AS (
            DELETE FROM account_rollups
             WHERE user_id = %(user_id)s AND dimension = 'missing ' || (SELECT id FROM deleted))
        SELECT id FROM deleted
        """,
        user_id=user_id,
        domain_id=domain_id,
    )
    existing(deleted, "domain")


def store_check(user_id: int, domain_id: int, *, problem: str) -> None:
    """Store the result of a check. `problem` is "" if the domain points to this service."""
    run(
        """
        UPDATE domains SET checked = now(), problem = %(problem)s
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        RETURNING id
        """,
        user_id=user_id,
        domain_id=domain_id,
        problem=problem,
    )


def logos(user_id: int, ids: list[int]) -> dict[int, str]:
    """Return the images of the logos of these domains, in base64."""
    images = rows(
        """
        SELECT id, translate(encode(image, 'base64'), chr(10), '') AS image
          FROM domains
          JOIN logos USING (user_id)
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[]) AND hash = logo_hash
        """,
        user_id=user_id,
        ids=ids,
    )
    return {row["id"]: row["image"] for row in images}


# --- paths that visitors asked for and that do not exist: rows of `account_rollups` with the dimension `missing` and
# the id of the domain

KEPT_DAYS = 30  # of these paths
MAX_MISSING = 1000  # paths of a domain; beyond, the half with the fewest visits becomes OTHER_PATHS
OTHER_PATHS = "Other"


def add_missing(counts: str) -> None:
    """`counts` is a JSON array of objects with domain_id, path and visits."""
    run_unsynced(
        """
        WITH added AS MATERIALIZED (
            SELECT d.user_id, 'missing ' || d.id AS dimension,
                   date_trunc('day', now(), 'UTC') AS at, path AS label, visits
              FROM json_to_recordset(%(counts)s) AS counts (domain_id bigint, path text, visits bigint)
              JOIN domains d ON d.id = domain_id),
        stored AS MATERIALIZED (
            SELECT r.user_id, r.dimension, at, label, visits
              FROM (SELECT DISTINCT user_id, dimension FROM added) asked
              JOIN account_rollups r USING (user_id, dimension)
             WHERE at > now() - make_interval(days => %(days)s)),
        paths AS (
            SELECT user_id, dimension, label, sum(visits) AS visits
              FROM (SELECT * FROM stored UNION ALL SELECT * FROM added) counted
             WHERE label <> %(other)s
             GROUP BY user_id, dimension, label),
        ranked AS (
            SELECT *, count(*) OVER (PARTITION BY user_id, dimension) AS number,
                   row_number() OVER (PARTITION BY user_id, dimension
                                      ORDER BY visits DESC, random()) AS rank
              FROM paths),
        rare AS MATERIALIZED (
            SELECT user_id, dimension, label FROM ranked
             WHERE number > %(max_paths)s AND rank > (%(max_paths)s + 1) / 2),
        forgotten AS (
            DELETE FROM account_rollups r
             USING stored s JOIN rare USING (user_id, dimension, label)
             WHERE (r.user_id, r.dimension, r.at, r.label) = (s.user_id, s.dimension, s.at, s.label)
            RETURNING r.user_id, r.dimension, r.at, %(other)s AS label, r.visits)
        INSERT INTO account_rollups AS r (user_id, dimension, at, label, bot, visits)
        SELECT user_id, dimension, at, label, false, sum(visits)
          FROM (SELECT * FROM forgotten
                 UNION ALL
                SELECT user_id, dimension, at,
                       CASE WHEN (user_id, dimension, label) IN (SELECT * FROM rare) THEN %(other)s
                            ELSE label END, visits
                  FROM added) counted
         GROUP BY user_id, dimension, at, label
         ORDER BY user_id, dimension, at, label
        ON CONFLICT (user_id, dimension, at, label, bot) DO UPDATE SET visits = r.visits + excluded.visits
        """,
        counts=counts,
        days=KEPT_DAYS,
        max_paths=MAX_MISSING,
        other=OTHER_PATHS,
    )


def missing(user_id: int, domain_id: int, *, limit: int, number: int) -> Page:
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
        SELECT label AS path, sum(visits)::bigint AS visits, max(at AT TIME ZONE 'UTC')::date AS last,
               json_agg(json_build_object('date', (at AT TIME ZONE 'UTC')::date, 'visits', visits) ORDER BY at) AS days
          FROM account_rollups
         WHERE user_id = %(user_id)s AND dimension = 'missing ' || %(domain_id)s
           AND at > now() - make_interval(days => %(days)s)
         GROUP BY label
        """,
        user_id=user_id,
        domain_id=domain_id,
        days=KEPT_DAYS,
        limit=limit,
        number=number,
        order="visits",
    )
