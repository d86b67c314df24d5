"""PostgreSQL servers and their processes."""

from contextlib import suppress
from pathlib import Path

from tests.support.schemas import execute


def alive(data: Path) -> dict[int, int]:
    """Return the processes that run in the data folder (the server's processes), each with its user."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").samefile(data):
                found[int(process.name)] = process.stat().st_uid
    return found


def ask(dsn: str, statement: str) -> str | None:
    """Execute a statement, and return its first value as text."""
    found = execute(dsn, statement)
    return str(found[0][0]) if found else None


def postmaster(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split("\n")[0])
