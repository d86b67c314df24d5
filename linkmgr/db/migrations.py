"""Makes the database, and brings an older one up to date."""

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
from flask import current_app
from psycopg2 import errors as pg
from psycopg2.extensions import connection as Connection

from linkmgr.db.session import version
from linkmgr.db.statements import VERSION, database

MIGRATIONS = Path(__file__).parent.parent / "migrations"  # 0002_what.sql takes version 1 to 2
_LOCK = 7_125_463_198  # any number of ours: one process at a time works on the schema
_TRIES = 50
_PATIENT = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "


class Unmigrated(SystemExit):
    """The schema could not be brought up to date; one sentence says why."""


@contextmanager
def _alone() -> Iterator[Connection]:
    """A connection of its own, while no other process works on the schema.  A second one holds the lock for it, by
    a transaction, since a pooler gives the server of a session to others."""
    with closing(database().connect()) as guard, closing(database().connect()) as connection:
        guard.autocommit = False
        with guard, guard.cursor() as cursor:
            cursor.execute(f"{_PATIENT}SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            yield connection


def _migrations(after: int) -> list[tuple[int, Path]]:
    found = sorted((int(path.name.split("_")[0]), path) for path in MIGRATIONS.glob("[0-9]*.sql"))
    return [(number, path) for number, path in found if number > after]


def _migrate(connection: Connection, number: int, path: Path) -> None:
    """One step in one transaction.  A statement that waited for its lock would hold up all that queue behind it,
    so it gives up soon and tries again."""
    for _ in range(_TRIES):
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(f"{database().prelude} SET LOCAL statement_timeout = 0")
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
                cursor.execute(path.read_text())
                cursor.execute("UPDATE schema_version SET version = %s", (number,))
        except (pg.LockNotAvailable, pg.DeadlockDetected):
            time.sleep(random.uniform(0.1, 0.3))  # noqa: S311
        except psycopg2.Error as error:
            raise Unmigrated(f"{path.name} failed and changed nothing: {str(error).splitlines()[0]}.") from error
        else:
            return
    raise Unmigrated(f"{path.name} changed nothing, since others hold its tables: try again when less is going on.")


def prepare(*, create: bool) -> None:
    """Brings the schema to this program's version.  `create`: an empty database gets it, else it is left alone."""
    with _alone() as connection:
        found = version(connection)
        if found:
            connection.autocommit = False
            for number, path in _migrations(found):
                _migrate(connection, number, path)
        elif create:
            with connection.cursor() as cursor:
                whole = (Path(current_app.root_path).parent / "schema.sql").read_text()
                cursor.execute(f"{database().prelude} {_PATIENT}{whole}")


def current() -> int:
    with closing(database().connect()) as connection:
        return version(connection)


def state() -> str:
    """One sentence on what the database has."""
    match current():
        case 0:
            return "The database is empty: run 'flask --app app database create'."
        case older if older < VERSION:
            return f"The database has schema {older} and needs {VERSION}: run 'flask --app app database upgrade'."
        case newer if newer > VERSION:
            return f"The database has schema {newer}, newer than this program's {VERSION}, and is served."
        case found:
            return f"The database has schema {found}, as this program needs."


def refuse_older() -> None:
    """Ends the program, with the sentence that says what to do, unless the schema can be served."""
    if current() < VERSION:
        raise Unmigrated(state())
