"""The connections of all processes of the service to PostgreSQL."""

from linkmgr.db.statements import Row, row, rows


def check() -> None:
    """Raise an error if the database does not respond."""
    row("SELECT 1 AS alive")


def count() -> Row:
    """Return the number of connections that are open and that are in use by other statements than this one."""
    [counts] = rows(
        """
        SELECT count(*) AS open, count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid()) AS in_use
          FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'linkmgr'
        """
    )
    return counts
