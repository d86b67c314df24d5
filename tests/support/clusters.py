"""The processes of PostgreSQL servers, and waiting for them."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg2


def alive(data: Path) -> dict[int, int]:
    """Return the processes that run in the data folder (the server's processes), each with its user."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").samefile(data):
                found[int(process.name)] = process.stat().st_uid
    return found


def eventually(holds: Callable[[], object], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def ask(dsn: str, statement: str) -> str | None:
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchone() if cursor.description else None
    connection.close()
    return str(found[0]) if found else None


def postmaster(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split("\n")[0])
