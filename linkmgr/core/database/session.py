"""Session settings and lost-connection detection."""

from typing import Any

import psycopg2
import psycopg2.extensions
from psycopg2 import errors as pg

UNRELEASED = -1  # the version of a database that has what was removed before release 1.0.0
_BROKEN = (psycopg2.OperationalError, psycopg2.InterfaceError)
# A server that rejects writes has become a standby: a new connection may reach the new primary.
# pgbouncer reports the loss of its server as a protocol violation.
_LOST = (
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.CannotConnectNow,
    pg.ReadOnlySqlTransaction,
    pg.ProtocolViolation,
)
# The server-side timeouts below are shorter and report a reason. The socket options detect a dead
# server.
OPTIONS: dict[str, Any] = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 6000,
    "application_name": "linkmgr",
}
SETTINGS = {
    "statement_timeout": "3000",
    "lock_timeout": "1500",
    "idle_in_transaction_session_timeout": "5000",
    "timezone": "UTC",
    "datestyle": "ISO",
    "plan_cache_mode": "force_generic_plan",
    # The value for SSDs. With the default, the list of a user with few of many rows is read through
    # the primary key.
    "random_page_cost": "1.1",
    # By default a server compiles large statements, such as the one that stores visits, for seconds
    # of a whole core.
    "jit": "off",
    # A connection keeps the plan that was made for a table of few rows until the table is analyzed,
    # and would read all rows of one that has grown meanwhile.
    "enable_seqscan": "off",
}
STARTUP_OPTIONS = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
# A pooler does not keep session settings from one transaction to the next, so each message repeats
# them.
SET_LOCAL = "".join(f"SET LOCAL {name} = '{value}'; " for name, value in SETTINGS.items())


def schema_version(connection: psycopg2.extensions.connection) -> int:
    """Return the schema version, 0 for an empty database, or UNRELEASED for one from before release
    1.0.0."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT to_regclass('service') IS NOT NULL,
                   to_regclass('schema_version') IS NOT NULL
                   OR to_regclass('visits') IS NOT NULL AND to_regclass('public_statistics') IS NULL
            """
        )
        has_schema, is_unreleased = cursor.fetchone() or (False, False)
        if is_unreleased:
            return UNRELEASED
        if not has_schema:
            return 0
        cursor.execute("SELECT version FROM service")
        [version] = cursor.fetchone() or (0,)
        return int(version)


def is_connection_lost(error: psycopg2.Error) -> bool:
    """Return True if a new connection is needed, and False if only the statement failed (timeout,
    lock, full disk)."""
    if error.pgcode is None:
        return isinstance(error, _BROKEN) or _is_unclassified(error)
    return isinstance(error, _LOST)


def _is_unclassified(error: psycopg2.Error) -> bool:
    """Return True for the base class, which psycopg2 sometimes raises when the server closes the
    connection."""
    return type(error) is psycopg2.DatabaseError


def normalize_error(error: psycopg2.Error) -> psycopg2.Error:
    return psycopg2.OperationalError(str(error)) if _is_unclassified(error) else error
