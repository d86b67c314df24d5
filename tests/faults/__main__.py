"""python -m tests.faults: the service under load while what it stands on fails.  Prints the table; 1: it was harmed."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.faults import attacks, making, stage
from tests.faults.making import Fault
from tests.faults.row import HEAD, Row, run
from tests.faults.stage import Database, Stage

_DIRECT = (
    making.RESTART,
    making.STOP,
    making.KILL,
    making.KILL_BACKEND,
    making.TERMINATE,
    making.SLOTS,
    making.LOCK,
    making.WORKER,
    making.WORKERS,
    making.RELOAD,
)
_PROXIED = (making.ANSWER, making.VISITS_ANSWER)
_REDIS = (making.FREEZE, making.NO_REDIS)
_TRIES = 5


def _rows(on: Stage, faults: tuple[Fault, ...]) -> Iterator[Row]:
    for fault in faults:
        yield run(on, fault)


def _all(database: Database, where: Path) -> Iterator[Row]:
    with stage.service(database) as on:
        yield from _rows(on, _DIRECT)
    with stage.proxied(database, where) as on:
        yield from _rows(on, _PROXIED)
    if shutil.which("redis-server"):
        with stage.counted_in_redis(database, where) as on:
            yield from _rows(on, _REDIS)
    else:
        print("Redis is not harmed: there is none here (apt-get install redis-server).")
    with stage.small_disk(where / "disk") as disk:
        if disk:
            with stage.postgres(disk) as small, stage.service(small) as on:
                yield run(on, making.DISK)
        else:
            print("No disk is filled: only root may have one in memory.")


def _attacked(database: Database) -> Iterator[attacks.Row]:
    slow = attacks.SLOW if shutil.which("slowhttptest") else ()
    if not slow:
        print("There are no slow clients: slowhttptest is missing (apt-get install slowhttptest).")
    for attack in (*slow, attacks.IMAGES):
        with stage.service(database) as on:
            yield attacks.run(on, attack)


def _seen(database: Database, where: Path) -> Iterator[str]:
    """Whether loss and doubling are seen where there is some: what is wrong with the sight."""
    with stage.service(database, "tests.faults.planted:unflushed()") as on:
        losses = (run(on, making.STOP).lost for _ in range(_TRIES))
        lost = next(filter(None, losses), 0)
    print(f"Planted, no flush before the answer: {lost} acknowledged writes lost when PostgreSQL is stopped at once.")
    with stage.proxied(database, where, "tests.faults.planted:repeating()") as on:
        doubled = run(on, making.ANSWER).doubled
    print(f"Planted, a write is sent again when its answer was lost: {doubled} doubled.")
    with stage.service(database, "tests.faults.planted:forgetting()") as on:
        row = run(on, making.WORKER)
        forgotten = row.led_on - row.counted
    print(f"Planted, nobody stores the visits of a killed worker: {forgotten} visits lost.")
    if not lost:
        yield "a loss would not be seen"
    if not doubled:
        yield "a doubled write would not be seen"
    if forgotten <= 0:
        yield "a lost visit would not be seen"


def main() -> int:
    problems: list[str] = []
    with stage.folder() as where, stage.postgres(where) as database:
        print(HEAD)
        for row in _all(database, where):
            print(row, flush=True)
            problems += [f"{row.title}: {problem}" for problem in row.problems]
        print(attacks.HEAD)
        for attacked in _attacked(database):
            print(attacked, flush=True)
            problems += [f"{attacked.title}: {problem}" for problem in attacked.problems]
        problems += _seen(database, where)
    for problem in problems:
        print(problem, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
