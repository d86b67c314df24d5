"""Session settings, type casts and lost-connection detection."""

from typing import Any

import orjson
import psycopg2
import psycopg2.extensions
from psycopg2 import errors as pg

_BROKEN = (psycopg2.OperationalError, psycopg2.InterfaceError)
# What cannot be written to has become a standby: the next connection may lead to the server that took over.
# A protocol violation is how pgbouncer tells that its server is gone.
_ENDED = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.ReadOnlySqlTransaction, pg.ProtocolViolation)
# The server gives up first, with an error that says why; the socket options are for a server that is gone.
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
    # As on solid-state disks: else the list of a user with few rows among many is read off the primary key.
    "random_page_cost": "1.1",
}
SENT_ONCE = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
# Behind a pooler a session is not ours, and what it was told is not told to the server that the next transaction
# gets.  So each message tells it anew.
SENT_ALONG = "".join(f"SET LOCAL {name} = '{value}'; " for name, value in SETTINGS.items())

# What PostgreSQL's types become, so that rows are JSON as the specification writes it.
_TYPES = (
    psycopg2.extensions.new_type(
        psycopg2.extensions.PYDATETIMETZ.values,
        "TIMESTAMP",
        lambda value, _: None if value is None else value[:19],  # YYYY-MM-DD HH:MM:SS, in UTC
    ),
    psycopg2.extensions.new_type(psycopg2.extensions.PYDATE.values, "DATE", lambda value, _: value),
    psycopg2.extensions.new_type(
        psycopg2.extensions.DECIMAL.values, "NUMBER", lambda value, _: None if value is None else float(value)
    ),
    psycopg2.extensions.new_type(
        psycopg2.BINARY.values,
        "BYTES",
        lambda value, _: None if value is None else bytes.fromhex(str(value)[2:]),
    ),
    psycopg2.extensions.new_type((114, 3802), "JSON", lambda value, _: None if value is None else orjson.loads(value)),
)


def register_types(connection: psycopg2.extensions.connection) -> psycopg2.extensions.connection:
    for type_ in _TYPES:
        psycopg2.extensions.register_type(type_, connection)
    return connection


def version(connection: psycopg2.extensions.connection) -> int:
    """Of the schema that the database has; 0: it has none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('schema_version') IS NOT NULL")
        if cursor.fetchone() != (True,):
            return 0
        cursor.execute("SELECT version FROM schema_version")
        found = cursor.fetchone()
        return int(found[0]) if found else 0


def is_connection_lost(error: psycopg2.Error) -> bool:
    """Whether another connection is needed, rather than the statement refused (too long, a lock, a full disk)."""
    if error.pgcode is None:
        return isinstance(error, _BROKEN) or _is_bare(error)
    return isinstance(error, _ENDED)


def _is_bare(error: psycopg2.Error) -> bool:
    """For "server closed the connection unexpectedly" psycopg2 sometimes raises the base class itself."""
    return type(error) is psycopg2.DatabaseError


def normalize_error(error: psycopg2.Error) -> psycopg2.Error:
    return psycopg2.OperationalError(str(error)) if _is_bare(error) else error
