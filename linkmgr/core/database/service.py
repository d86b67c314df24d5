"""The state of the service: its database and the connections to it."""

from linkmgr.core.database.lookups import lookups
from linkmgr.core.database.statements import Row, rows


def check() -> None:
    lookups().check()


def gauges() -> Row:
    """Return the gauges of the database by name. Rows are counted up to 10,000."""
    [values] = rows(
        """
        SELECT connections.*, jobs.*,
               (SELECT count(*)
                  FROM (SELECT FROM deliveries WHERE state = 'waiting' LIMIT 10000) first)
               AS deliveries_waiting,
               coalesce((SELECT extract(epoch FROM clock_timestamp() - created) FROM outbox
                          ORDER BY id LIMIT 1),
                        0)::float8 AS events_waiting_seconds,
               (SELECT coalesce(json_object_agg(name, stored), '{}') FROM visit_spools) AS spools
          FROM (SELECT count(*) AS database_connections_open,
                       count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid())
                       AS database_connections_in_use
                  FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'linkmgr') connections,
               (SELECT count(*) AS jobs_waiting,
                       count(*) FILTER (WHERE attempts > 3) AS jobs_failing,
                       extract(epoch FROM greatest(clock_timestamp() - min(due),
                                                   interval '0'))::float8
                       AS jobs_waiting_seconds
                  FROM (SELECT due, attempts FROM jobs ORDER BY due LIMIT 10000) first) jobs
        """
    )
    return values


def state() -> Row:
    [values] = rows(
        """
        SELECT (SELECT version FROM service) AS schema,
               current_setting('server_version') AS postgresql,
               pg_database_size(current_database()) AS size, pg_postmaster_start_time() AS started,
               (SELECT count(*) FROM users) AS users,
               (SELECT coalesce(sum(total), 0) FROM usage WHERE counted = 'links')::bigint AS links,
               (SELECT coalesce(sum(total), 0) FROM visit_months
                 WHERE month = this_month() AND NOT (bot OR imported))::bigint AS clicks,
               (SELECT count(*) FROM jobs) AS jobs, (SELECT min(created) FROM jobs) AS oldest_job,
               (SELECT count(*) FROM jobs WHERE attempts > 3) AS failing_jobs,
               (SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database()
                   AND application_name = 'linkmgr') AS connections,
               (SELECT coalesce(json_object_agg(name, stored), '{}') FROM visit_spools) AS spools
        """
    )
    return values
