"""The state of the service: its database and the connections to it."""

from linkmgr.db.lookups import lookups
from linkmgr.db.statements import Row, rows


def check() -> None:
    lookups().primary.read("SELECT 1 AS alive", {})


def connections() -> Row:
    [counts] = rows(
        """
        SELECT count(*) AS open, count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid()) AS in_use
          FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'linkmgr'
        """
    )
    return counts


def state() -> Row:
    [values] = rows(
        """
        SELECT (SELECT version FROM service) AS schema, current_setting('server_version') AS postgresql,
               pg_database_size(current_database()) AS size, pg_postmaster_start_time() AS started,
               (SELECT count(*) FROM users) AS users,
               (SELECT coalesce(sum(total), 0) FROM usage WHERE counted = 'links')::bigint AS links,
               (SELECT coalesce(sum(total), 0) FROM usage
                 WHERE counted = 'visits ' || to_char(now(), 'YYYY-MM'))::bigint AS clicks,
               (SELECT count(*) FROM jobs) AS jobs, (SELECT min(created) FROM jobs) AS oldest_job,
               (SELECT count(*) FROM jobs WHERE attempts > 3) AS failing_jobs,
               (SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'linkmgr') AS connections,
               (SELECT coalesce(json_object_agg(name, stored), '{}') FROM visit_spools) AS spools
        """
    )
    return values
