"""python -m tests.faults: inject faults and attacks under load, and print what was lost.

Exits with 1 if a write was lost or duplicated, if an error was not as specified, or if a planted bug was not detected.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.faults import attacks, beside, deployment, events, injection, long_requests, one_user
from tests.faults.deployment import Database, Deployment
from tests.faults.injection import Fault
from tests.faults.run import HEAD, Row, run

_DIRECT = (
    injection.RESTART,
    injection.STOP,
    injection.KILL,
    injection.FROZEN,
    injection.KILL_BACKEND,
    injection.TERMINATE,
    injection.SLOTS,
    injection.LOCK,
    injection.WORKER,
    injection.WORKERS,
    injection.RELOAD,
)
_PROXIED = (injection.RESPONSE, injection.VISITS_RESPONSE)
_REDIS = (injection.FREEZE, injection.NO_REDIS)
_TRIES = 5


def _rows(target: Deployment, faults: tuple[Fault, ...]) -> Iterator[Row]:
    for fault in faults:
        yield run(target, fault)


def _inject_all(database: Database, where: Path) -> Iterator[Row]:
    with deployment.service(database) as target:
        yield from _rows(target, _DIRECT)
    with deployment.proxied(database, where) as target:
        yield from _rows(target, _PROXIED)
    if shutil.which("redis-server"):
        with deployment.with_redis(database, where) as target:
            yield from _rows(target, _REDIS)
    else:
        print("Faults of Redis are skipped: redis-server is missing (apt-get install redis-server).", file=sys.stderr)
    with deployment.small_disk(where / "disk") as disk:
        if disk:
            with deployment.postgres(disk) as small, deployment.service(small) as target:
                yield run(target, injection.DISK)
        else:
            print("The full disk is skipped: only root may mount a small file system.", file=sys.stderr)


def _attack_all(database: Database) -> Iterator[attacks.Row]:
    slow = attacks.SLOW if shutil.which("slowhttptest") else ()
    if not slow:
        print("Slow clients are skipped: slowhttptest is missing (apt-get install slowhttptest).", file=sys.stderr)
    for attack in (*slow, attacks.IMAGES, attacks.STATISTICS):
        with deployment.service(database) as target:
            yield attacks.run(target, attack)


def _verify_detection(database: Database, where: Path) -> Iterator[str]:
    """Run services with planted bugs, and yield a problem for each bug that is not detected."""
    with deployment.service(database, "tests.faults.planted:unsynced()") as target:
        losses = (run(target, injection.STOP).lost for _ in range(_TRIES))
        lost = next(filter(None, losses), 0)
    print("\n| Planted bug | Fault | Detected |\n|---|---|---|")
    print(f"| response before the write is on disk | {injection.STOP.title} | {lost} writes lost |")
    with deployment.proxied(database, where, "tests.faults.planted:forgetting()") as target:
        duplicated = run(target, injection.RESPONSE).duplicated
    print(f"| repeated requests carried out again | {injection.RESPONSE.title} | {duplicated} writes duplicated |")
    with deployment.service(database, "tests.faults.planted:not_adopting()") as target:
        row = run(target, injection.WORKERS)
        lost_visits = row.redirects - row.counted
    print(f"| visits of dead processes not stored | {injection.WORKERS.title} | {lost_visits} visits lost |")
    if not lost:
        yield "a lost write was not detected"
    if not duplicated:
        yield "a duplicated write was not detected"
    if lost_visits <= 0:
        yield "a lost visit was not detected"


def main() -> int:
    problems: list[str] = []
    with deployment.folder() as where, deployment.postgres(where) as database:
        print(HEAD)
        for row in _inject_all(database, where):
            print(row, flush=True)
            problems += [f"{row.title}: {problem}" for problem in row.problems]
        print(f"\n{attacks.HEAD}")
        for result in _attack_all(database):
            print(result, flush=True)
            problems += [f"{result.title}: {problem}" for problem in result.problems]
        print(f"\n{beside.HEAD}")
        for attack in (*one_user.ATTACKS, *long_requests.ATTACKS):
            beside_it = beside.run(database, attack)
            print(beside_it, flush=True)
            problems += [f"{beside_it.title}: {problem}" for problem in beside_it.problems]
        print(f"\n{events.HEAD}")
        for kills in (False, True):
            with deployment.service(database, private_networks="127.0.0.0/8", private_networks_for_all="1") as target:
                delivered = events.run(target, kills=kills)
                print(delivered, flush=True)
                problems += delivered.problems
        problems += _verify_detection(database, where)
    for problem in problems:
        print(problem, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
