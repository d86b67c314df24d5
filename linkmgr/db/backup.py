"""Dumps of the database, which may be taken while the service runs, and their way back."""

import os
import subprocess
from contextlib import closing, suppress
from pathlib import Path

from psycopg2.extensions import make_dsn, parse_dsn

from linkmgr.db import migrations
from linkmgr.db.binaries import clients
from linkmgr.db.statements import database


class Failed(SystemExit):
    """Nothing was dumped or restored; one sentence says why."""


def _run(program: str, *options: str) -> None:
    """A program of the server's version.  The password goes by the environment: all may read the arguments."""
    if not database().prepare:
        # It would leave the pooler a session whose search path is empty, which the service would get.
        raise Failed(f"{program} needs PostgreSQL itself: name it in LINKMGR_DATABASE_URL, with LINKMGR_PREPARE=1.")
    target = parse_dsn(database().dsn)
    environment = os.environ | ({"PGPASSWORD": target.pop("password")} if "password" in target else {})
    with closing(database().connect()) as connection:
        folder = clients(connection.info.server_version // 10000)
    done = subprocess.run(  # noqa: S603
        [folder / program, "--no-owner", "--no-privileges", "--dbname", make_dsn(**target), *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(f"{program} failed: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}.")


def dump(file: Path) -> None:
    """Whole or not at all: what was stored when it began.  The counts of requests are left out."""
    part = file.with_name(file.name + ".part")
    try:
        if file.exists():
            raise Failed(f"{file} exists already: choose another name.")
        part.touch(0o600)
        _run("pg_dump", "--format=custom", "--no-unlogged-table-data", "--lock-wait-timeout=10s", f"--file={part}")
        part.rename(file)
    except OSError as error:
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def restore(file: Path) -> None:
    """Into an empty database, whole or not at all."""
    if migrations.current():
        raise Failed("The database is not empty: restore into an empty one.")
    _run("pg_restore", "--single-transaction", "--exit-on-error", str(file))
    with closing(database().connect()) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL statement_timeout = 0; ANALYZE"
        )  # a dump brings no statistics, and plans without them are slow
