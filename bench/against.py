"""python -m bench --against COMMIT [--turns N] [REQUEST...]: compare this working tree with another
commit.

Both run at the same time with their own data, and are measured in alternating turns with the same
requests. A ratio is the throughput of this tree divided by that of the commit in the same turn.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import cases
from bench.data import Data, User
from bench.measure import Refused, Sample, Target
from bench.servers import ROOT

CONNECTIONS = (1, 16)
TURNS = 8
HEAD = """
Medians, first those of {commit}, then those of this tree. Ratio: throughput of this tree
divided by that of the commit. Spread: its quartiles. Processor time is per request.

| Request | Connections | Ratio | Spread | Requests/s | p99 / median | Service, µs | PostgreSQL, µs |
|---|--:|--:|--:|--:|--:|--:|--:|"""


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out. Yield the folder."""
    (ROOT / "var").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT / "var") as folder:
        Path(folder).chmod(0o755)  # if started by root, PostgreSQL runs as another user
        tree = Path(folder, "tree")
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


@contextmanager
def serving(tree: Path) -> Iterator[dict[str, Any]]:
    """Run the service of a tree. Yield its URL, the ids of its processes and its data."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("serve.py"))],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{tree}: the service did not start")
        yield json.loads(line)
    finally:
        process.stdin.close()
        process.wait(60)


def _targets(server: dict[str, Any], chosen: list[str]) -> dict[str, tuple[Target, bool]]:
    dsn, key, link, users = server["data"]
    rows = Data(dsn, key, link, [User(*user) for user in users])
    all_cases = cases.all_cases(rows, server["base"])
    return {
        name: (Target(server["base"], case.script, server["service"], server["database"]), case.serial)
        for name, case in all_cases.items()
        if not chosen or name in chosen
    }


def _alternate(pair: tuple[Target, Target], connections: int, turns: int) -> list[list[Sample]]:
    """Measure both in turns. The first one of a turn is the second one of the next."""
    samples: list[list[Sample]] = [[], []]
    for turn in range(turns):
        for which in (0, 1) if turn % 2 else (1, 0):
            samples[which].append(pair[which].sample(connections))
    return samples


def _line(name: str, connections: int, samples: list[list[Sample]]) -> str:
    ratios = [here.rate / there.rate for there, here in zip(*samples, strict=True)]
    low, _, high = statistics.quantiles(ratios, method="inclusive")
    medians = [Sample(*map(statistics.median, zip(*taken, strict=True))) for taken in samples]
    columns = (
        f"{there:,.{digits}f} → {here:,.{digits}f}"
        for there, here, digits in zip(*medians, (0, 1, 0, 0), strict=True)
    )
    cells = [name, connections, f"{statistics.median(ratios):.2f}", f"{low:.2f}-{high:.2f}", *columns]
    return f"| {' | '.join(map(str, cells))} |"


def run(commit: str, turns: int, chosen: list[str]) -> None:
    with ExitStack() as stack:
        tree = stack.enter_context(worktree(commit))
        there, here = (stack.enter_context(serving(folder)) for folder in (tree, ROOT))
        others, own = _targets(there, chosen), _targets(here, chosen)
        print(HEAD.format(commit=_git("log", "-1", "--format=%h", commit)))
        for name, (target, serial) in own.items():
            for connections in CONNECTIONS[:1] if serial else CONNECTIONS:
                try:
                    print(
                        _line(name, connections, _alternate((others[name][0], target), connections, turns)),
                        flush=True,
                    )
                except Refused as error:  # the older one may not have the operation
                    print(f"| {name} | {connections} | {error} |", flush=True)
