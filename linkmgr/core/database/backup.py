"""Dump and restore the database. A dump may be taken while the service runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from psycopg2.extensions import make_dsn, parse_dsn

from linkmgr.core.database import migrations
from linkmgr.core.database.binaries import find_clients
from linkmgr.core.database.statements import database

LAST = "last_backup"  # file of the data folder, changed by each dump
_REMEDIES = {
    "permission denied for database": migrations.GRANT,
    "permission denied for schema": migrations.GRANT,
    "unsupported version": " The dump is of a later PostgreSQL than this server: restore it into a "
    "server of that version, for example from apt.postgresql.org.",
}


class BackupError(SystemExit):
    """The dump or restore failed and left nothing behind. The message is one sentence."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise an exception, so that the client program is stopped and an incomplete file
    deleted."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(program: str, *options: str, connect: bool = True) -> str:
    """Run a client program of the server's version, and return its output. The password is passed
    in the environment, because other users can read the arguments."""
    if not database().prepare:
        # pg_dump empties the search path of its session, which a pooler would then give to the
        # service.
        raise BackupError(
            f"{program} does not work through a pooler: set LINKMGR_DATABASE_URL to PostgreSQL "
            "itself and LINKMGR_PREPARE=1."
        )
    dsn = parse_dsn(database().dsn)
    environment = os.environ | ({"PGPASSWORD": dsn.pop("password")} if "password" in dsn else {})
    with closing(database().connect()) as connection:
        folder = find_clients(connection.info.server_version // 10000)
    connection_options = ["--no-owner", "--no-privileges", "--dbname", make_dsn(**dsn)] if connect else []
    result = subprocess.run(  # noqa: S603
        [folder / program, *connection_options, *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise _failure(program, result.stderr)
    return result.stdout


def _failure(program: str, output: str) -> BackupError:
    lines = output.strip().splitlines() or ["no reason given"]
    # The lines around the first error name an entry of the dump or repeat a statement.
    reason = next((line for line in lines if "error:" in line), lines[-1])
    remedy = next((remedy for text, remedy in _REMEDIES.items() if text in reason), "")
    return BackupError(f"{program} failed: {reason}.{remedy}")


@_terminable()
def dump(file: Path) -> None:
    """Dump the database to `file`, or leave no file. The dump contains what was committed when it
    began, without the rate limit counters."""
    partial = file.with_name(file.name + ".part")
    try:
        if file.exists():
            raise BackupError(f"{file} already exists: choose another name.")
        partial.touch(0o600)
        _run(
            "pg_dump",
            "--format=custom",
            "--no-unlogged-table-data",
            "--lock-wait-timeout=10s",
            f"--file={partial}",
        )
        partial.rename(file)
    except OSError as error:
        raise BackupError(f"{file} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@_terminable()
def restore(file: Path) -> None:
    if migrations.current_version():
        raise BackupError("The database is not empty: restore into an empty one.")
    with NamedTemporaryFile("w") as contents:
        contents.write(_restorable(_run("pg_restore", "--list", str(file), connect=False)))
        contents.flush()
        selection = "--exit-on-error", f"--use-list={contents.name}", str(file)
        _run("pg_restore", "--single-transaction", "--section=pre-data", *selection)
        try:
            _run(
                "pg_restore", f"--jobs={os.cpu_count()}", "--section=data", "--section=post-data", *selection
            )
        except BackupError as error:
            raise BackupError(
                f"{error} The database has a part of the dump: create it anew, then try again."
            ) from None
    # The version is the last row, so that the service refuses a database in which a restore was
    # interrupted.
    _run("pg_restore", "--data-only", "--table=service", str(file))
    with closing(database().connect()) as connection, connection.cursor() as cursor:
        # A dump has no planner statistics, and plans without them are slow.
        cursor.execute("SET LOCAL statement_timeout = 0; SELECT create_search_index(); ANALYZE")


def _restorable(contents: str) -> str:
    """Remove from the contents of a dump what a server may refuse, the extensions of the search and
    its indexes, and the version of the schema."""
    removed = (" EXTENSION ", " links_search ", " titles_search ", " TABLE DATA public service ")
    return "".join(
        line for line in contents.splitlines(keepends=True) if not any(word in line for word in removed)
    )
