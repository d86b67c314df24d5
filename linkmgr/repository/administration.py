"""Users, plans and the state of the service, as administrators see them in the console."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, rows
from linkmgr.errors import not_found


def users(*, q: str | None, **paging: Unpack[Paging]) -> Page:
    """List the users whose name or e-mail address contains `q`, newest first."""
    return page(
        """
        SELECT id, username, email, status, plan, registered,
               coalesce((SELECT total FROM usage WHERE user_id = accounts.id AND kind = 'links'), 0) AS links
          FROM accounts
         WHERE id < %(after)s
           AND (%(q)s::text IS NULL OR position(lower(%(q)s) IN lower(username || chr(10) || email)) > 0)
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM users
         WHERE %(q)s::text IS NULL OR position(lower(%(q)s) IN lower(username || chr(10) || email)) > 0
        """,
        q=q,
        **paging,
    )


def plans() -> list[Row]:
    """Return all plans with the number of users that have them: the first free one is that of users without another."""
    return rows(
        """
        SELECT id, name, free, monthly::text, yearly::text, lifetime::text, rate, limits,
               (SELECT count(*) FROM users
                 WHERE CASE WHEN plan_id IS NOT NULL AND (expires IS NULL OR expires > now()) THEN plan_id
                            ELSE (SELECT min(id) FROM plans WHERE free) END = plans.id) AS users
          FROM plans
         ORDER BY id
        """
    )


def plan(plan_id: int) -> Row:
    stored = row(
        """
        SELECT id, name, free, monthly::text, yearly::text, lifetime::text, rate, limits
          FROM plans
         WHERE id = %(plan_id)s
        """,
        plan_id=plan_id,
    )
    if stored is None:
        raise not_found("plan")
    return stored


def state() -> Row:
    """Return the state of the database. `spools` are the stored positions of spool files by name."""
    [values] = rows(
        """
        SELECT (SELECT version FROM schema_version) AS schema, current_setting('server_version') AS postgresql,
               pg_database_size(current_database()) AS size, pg_postmaster_start_time() AS started,
               (SELECT count(*) FROM users) AS users,
               (SELECT coalesce(sum(total), 0) FROM usage WHERE kind = 'links')::bigint AS links,
               (SELECT coalesce(sum(total), 0) FROM usage
                 WHERE kind = 'visits ' || to_char(now(), 'YYYY-MM'))::bigint AS clicks,
               (SELECT count(*) FROM jobs) AS jobs, (SELECT min(created) FROM jobs) AS oldest_job,
               (SELECT count(*) FROM jobs WHERE attempts > 3) AS failing_jobs,
               (SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'linkmgr') AS connections,
               (SELECT coalesce(json_object_agg(name, stored), '{}') FROM visit_spools) AS spools
        """
    )
    return values
