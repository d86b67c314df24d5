"""The connections that all processes of the service have to PostgreSQL."""

from linkmgr.db.statements import Row, rows


def count() -> Row:
    """How many are open, and how many of them run a statement; not the one that asks."""
    [found] = rows(
        """
        SELECT count(*) AS open, count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid()) AS in_use
          FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'linkmgr'
        """
    )
    return found
