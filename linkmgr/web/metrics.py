"""What Prometheus is told: counters that all workers of a data folder share.

Each process adds to a file of its own, mapped into its memory, and a scrape adds up the files.  A process holds a
lock on its file, and one that comes after its death takes the file over and counts on: no file is ever left over,
and no number goes back when a worker is replaced.  prometheus_client does the same with locks, keys and a file for
every process that ever was: 4.3 µs a request where this takes 0.9.  Only its text format is used here.
"""

import fcntl
import hashlib
import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from flask import Flask
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from linkmgr.settings import settings, this_app

EVENTS = {
    "visits_recorded": "Visits that were stored, or left out by the limit of a plan.",
    "visits_lost": "Visits that could not be written to the data folder or stored in the database.",
    "database_connections_opened": "Connections to PostgreSQL that were opened.",
    "limiter_refusals": "Requests that were refused because their window was used up.",
}
_STATUSES = (200, 302, 303, 304, 308, 400, 401, 403, 404, 405, 410, 413, 415, 429, 500, 503)  # and any other
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # upper bounds, and beyond
_STATUS = {str(status): cell for cell, status in enumerate(_STATUSES)}
_OTHER_STATUS = len(_STATUSES)
_FASTEST = _OTHER_STATUS + 1  # the cell of the first duration
_SUM = _FASTEST + len(_SECONDS) + 1  # microseconds of all requests of the line
_LINE = _SUM + 1
_UNMATCHED = ("", "any")
_HEAD = 4  # cells that hold the digest of the layout


class Metrics:
    """Cells of 64 bits: the layout's digest, the events, then a line for each route and method."""

    def __init__(self, app: Flask, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._events = {name: _HEAD + cell for cell, name in enumerate(EVENTS)}
        served = {(rule.rule, method) for rule in app.url_map.iter_rules() for method in rule.methods or ()}
        first = _HEAD + len(EVENTS)
        self._lines = {key: first + at * _LINE for at, key in enumerate([_UNMATCHED, *sorted(served)])}
        self._size = 8 * (first + len(self._lines) * _LINE)
        self._digest = hashlib.sha256(repr((self._events, self._lines, _STATUSES, _SECONDS)).encode()).digest()

    @cached_property
    def _cells(self) -> memoryview:
        """This process's: opened at its first request, since workers may be forked after the app was made.  Where the
        disk has no room for them, nobody will see them, which is no reason to fail."""
        try:
            return self._shared()
        except OSError:
            return memoryview(bytearray(self._size)).cast("Q")

    def _shared(self) -> memoryview:
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            file = os.open(self.folder / f"{number}.cells", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                os.close(file)
                number += 1
        if os.fstat(file).st_size != self._size or os.pread(file, 8 * _HEAD, 0) != self._digest:
            os.ftruncate(file, 0)
            os.posix_fallocate(file, 0, self._size)  # else a full disk ends the process when it first counts there
            os.pwrite(file, self._digest, 0)
        mapped = mmap.mmap(file, self._size)  # with a descriptor of its own, which keeps the lock
        os.close(file)
        return memoryview(mapped).cast("Q")

    def count(self, event: str, number: int) -> None:
        with self._lock:
            self._cells[self._events[event]] += number

    def request(self, environ: dict[str, Any], status: str, seconds: float) -> None:
        asked = environ.get("werkzeug.request")
        rule = asked.url_rule if asked else None
        lines = self._lines
        line = lines.get((rule.rule, environ["REQUEST_METHOD"])) if rule else None
        if line is None:
            line = lines[_UNMATCHED]
        with self._lock:
            cells = self._cells
            cells[line + _STATUS.get(status[:3], _OTHER_STATUS)] += 1
            cells[line + _FASTEST + bisect_left(_SECONDS, seconds)] += 1
            cells[line + _SUM] += int(seconds * 1e6)

    def _totals(self) -> list[int]:
        """Over all processes that there are and were, as long as their layout is this one."""
        files = [path.read_bytes() for path in self.folder.glob("*.cells")]
        cells = [memoryview(file).cast("Q") for file in files if file.startswith(self._digest)]
        return [sum(values) for values in zip([0] * (self._size // 8), *cells, strict=True)]

    def collect(self) -> Iterator[Metric]:
        totals = self._totals()
        for name, doc in EVENTS.items():
            yield CounterMetricFamily(f"linkmgr_{name}", doc, value=totals[self._events[name]])
        requests = CounterMetricFamily("linkmgr_requests", "Answers.", labels=("route", "method", "status"))
        durations = HistogramMetricFamily("linkmgr_request_seconds", "Until the answer.", labels=("route", "method"))
        for key, first in self._lines.items():
            line = totals[first : first + _LINE]
            for status, number in zip((*_STATUSES, "other"), line[:_FASTEST], strict=True):
                if number:
                    requests.add_metric((*key, str(status)), number)
            if any(line):
                durations.add_metric(key, list(_cumulated(line[_FASTEST:_SUM])), line[_SUM] / 1e6)
        yield requests
        yield durations


def _cumulated(numbers: Iterable[int]) -> Iterator[tuple[str, float]]:
    total = 0
    for bound, number in zip((*map(str, _SECONDS), "+Inf"), numbers, strict=True):
        total += number
        yield bound, total


def init_app(app: Flask) -> None:
    """Last, when all routes are known.  Without a token nobody asks, and nothing is counted."""
    on = settings().metrics_token
    app.extensions["linkmgr_metrics"] = Metrics(app, settings().folder / "metrics") if on else None


def metrics() -> Metrics | None:
    found: Metrics | None = this_app().extensions["linkmgr_metrics"]
    return found


def count(event: str, number: int = 1) -> None:
    """Adds to one of EVENTS."""
    if found := metrics():
        found.count(event, number)
