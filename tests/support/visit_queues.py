"""Queues of visits whose data folder belongs to the test, and the files that a dead process leaves."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from linkmgr.core import metrics
from linkmgr.visits.counting import Visit
from linkmgr.visits.queue import VisitQueue
from tests.support.targets import Target

AWAY = "postgresql://nobody@127.0.0.1:1/none"
TOKEN = "t" * 16
Make = Callable[..., VisitQueue]

# A process that cannot reach its database and is killed.
DIE = """
import os, sys
from linkmgr import create_app
from linkmgr.visits.counting import Visit
data_dir, url, target, user, at, number = sys.argv[1:]
recorder = create_app(data_dir=data_dir, database_url=url).extensions["linkmgr_visit_queue"]
for _ in range(int(number)):
    recorder.add(Visit(int(target), int(user), float(at), "00", "Peru", "a.example", "Firefox", "Linux", None))
os._exit(9)
"""


@pytest.fixture
def make_recorder(make_app: Callable[..., Flask], tmp_path: Path) -> Iterator[Make]:
    """Create queues whose data folder belongs to the test."""
    made: list[VisitQueue] = []

    def make(**settings: str) -> VisitQueue:
        app = make_app(data_dir=str(tmp_path), metrics_token=TOKEN, **settings)
        made.append(app.extensions["linkmgr_visit_queue"])
        return made[-1]

    yield make
    for recorder in made:
        recorder._spools = []


@pytest.fixture
def recorder(make_recorder: Make) -> VisitQueue:
    return make_recorder()


def visit_of(target: Target, owner: Any, country: str = "Peru", at: float | None = None) -> Visit:
    return Visit(target.id, owner.id, at or time.time(), "00", country, "a.example", "Firefox", "Linux", None)


def line_of(target: Target, owner: Any) -> bytes:
    """Return the visit as a line of a file."""
    return (
        b'{"tracked_id":%d,"user_id":%d,"at":%f,"visitor":"00","country":"Peru","referrer":"a.example",'
        b'"browser":"Firefox","os":"Linux","social":null,"bot":false,"device":"desktop","city":"Lima","language":"English"}\n'
        % (target.id, owner.id, time.time())
    )


def die(folder: Path, target: Target, owner: Any, *, at: float | None = None, number: int = 3) -> None:
    """Leave a file with visits in the folder."""
    arguments = [folder, AWAY, target.id, owner.id, at or time.time(), number]
    command = [sys.executable, "-c", DIE, *map(str, arguments)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 9


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "visits").glob("*.spool"))


def counter(recorder: VisitQueue, name: str) -> float:
    found = recorder._app.extensions["linkmgr_metrics"]
    assert isinstance(found, metrics.Metrics)
    return next(family.samples[0].value for family in found.collect() if family.name == f"linkmgr_{name}")


def countries(target: Target) -> dict[str, str]:
    found: dict[str, str] = target.statistics()["topCountries"]
    return found
