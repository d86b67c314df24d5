"""Create the database schema or upgrade it."""

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
from flask import current_app
from psycopg2 import errors as pg
from psycopg2.extensions import connection as Connection

from linkmgr.core.database.session import UNRELEASED, schema_version
from linkmgr.core.database.statements import VERSION, database

# 0002_<what>.sql upgrades version 1 to 2; there is none yet
MIGRATIONS = Path(__file__).parents[2] / "migrations"
_LOCK = 7_125_463_198  # key of the advisory lock; the number is arbitrary
_MAX_TRIES = 200
_SET_VERSION = "UPDATE service SET version ="
_NO_TIMEOUTS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "
_NO_INDEX = (
    " Searches read all links of a user, because the extensions pg_trgm and btree_gin are refused: "
    "allow them, then run 'flask --app app database upgrade'."
)
GRANT = " Grant the role of the service CREATE on the database and on its schema public, then try again."


class MigrationError(SystemExit):
    """The schema is not up to date. The message says why."""


@contextmanager
def _exclusive_connection() -> Iterator[Connection]:
    """Yield a connection while no other process changes the schema. A transaction of a second
    connection holds the lock, because a pooler does not keep session locks."""
    with closing(database().connect()) as guard, closing(database().connect()) as connection:
        guard.autocommit = False
        with guard, guard.cursor() as cursor:
            cursor.execute(f"{_NO_TIMEOUTS}SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            yield connection


def _migrations(after: int) -> list[tuple[int, Path]]:
    migrations = sorted((int(path.name.split("_")[0]), path) for path in MIGRATIONS.glob("[0-9]*.sql"))
    return [(number, path) for number, path in migrations if number > after]


def _apply(connection: Connection, name: str, *statements: str) -> None:
    """Execute statements in one transaction. The statements of the service queue behind one that
    waits for a table lock, so it gives up after a short lock timeout and retries."""
    for _ in range(_MAX_TRIES):
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(f"{database().prelude} SET LOCAL statement_timeout = 0")
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
                for statement in statements:
                    cursor.execute(statement)
        except (pg.LockNotAvailable, pg.DeadlockDetected):
            time.sleep(random.uniform(0.1, 0.3))  # noqa: S311
        except psycopg2.Error as error:
            raise _failure(name, error) from error
        else:
            return
    raise MigrationError(
        f"{name} changed nothing because its tables are in use: try again when there is less traffic."
    )


def _failure(name: str, error: psycopg2.Error) -> MigrationError:
    remedy = GRANT if isinstance(error, pg.InsufficientPrivilege) else ""
    return MigrationError(f"{name} failed and changed nothing: {str(error).splitlines()[0]}.{remedy}")


def upgrade(*, create: bool) -> None:
    """Upgrade the schema to this program's version. With `create`, also create it in an empty
    database."""
    with _exclusive_connection() as connection:
        version = schema_version(connection)
        if version == UNRELEASED:
            raise MigrationError(describe())
        if version:
            connection.autocommit = False
            for number, path in _migrations(version):
                _apply(connection, path.name, path.read_text(), f"{_SET_VERSION} {number}")
            _apply(connection, "create_link_defaults()", "SELECT create_link_defaults()")
            _apply(connection, "create_restricted_views()", "SELECT create_restricted_views()")
            _apply(connection, "create_noted_views()", "SELECT create_noted_views()")
            _apply(connection, "create_search_index()", "SELECT create_search_index()")
        elif create:
            with connection.cursor() as cursor:
                schema = (Path(current_app.root_path).parent / "schema.sql").read_text()
                try:
                    cursor.execute(f"{database().prelude} {_NO_TIMEOUTS}{schema}")
                except psycopg2.Error as error:
                    raise _failure("schema.sql", error) from error


def current_version() -> int:
    with closing(database().connect()) as connection:
        return schema_version(connection)


def describe() -> str:
    match current_version():
        case 0:
            return "The database is empty: run 'flask --app app database create'."
        case version if version == UNRELEASED:
            return (
                "The database is older than release 1.0.0 and cannot be upgraded: export the "
                "account of each user with the program that made it, and import the exports into a "
                "new database with this one."
            )
        case version if version < VERSION:
            return f"The database has schema {version} and needs {VERSION}: run 'flask --app app database upgrade'."
        case version if version > VERSION:
            return f"The database has schema {version}, newer than this program's {VERSION}, which works with it."
        case version:
            return f"The database has schema {version}, which is up to date.{_describe_search()}"


def _describe_search() -> str:
    with closing(database().connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('links_search') IS NULL")
        return _NO_INDEX if cursor.fetchone() == (True,) else ""


def require_current() -> None:
    if current_version() < VERSION:
        raise MigrationError(describe())
