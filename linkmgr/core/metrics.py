"""Prometheus metrics: gauges, and counters that all workers of a data folder share.

Each process counts in its own memory-mapped file, and a scrape adds up the files. A process locks
its file. A new process takes over the file of a dead one and continues its counters.

The multiprocess mode of prometheus_client is not used, for two reasons. Its files are sparse, so
that a full disk kills the process with SIGBUS. It creates a file for each process: the files of
dead workers pile up, or counters go back when they are deleted. It also takes 4.3 µs per request
instead of 0.9. Only its text format is used here.
"""

import fcntl
import hashlib
import mmap
import os
import resource
import sys
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from flask import Flask
from prometheus_client import CollectorRegistry, Gauge, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.settings import RELEASE, settings, this_app

EVENTS = {
    "visits_recorded": "Visits that were stored, or not counted because of a plan's limit.",
    "visits_lost": "Visits that could not be written to the data folder or stored in the database.",
    "database_connections_opened": "Connections to PostgreSQL that were opened.",
    "limiter_refusals": "Requests that exceeded the rate limit.",
    "limiter_fallbacks": "Requests that a process counted for the rate limit, because Redis was unavailable.",
    "job_failures": "Failed attempts of background jobs.",
    "delivery_failures": "Failed attempts to deliver an event to a webhook.",
}
GAUGES = {
    "database_connections_open": "PostgreSQL connections of all processes and machines.",
    "database_connections_in_use": "PostgreSQL connections of all processes and machines that "
    "execute a statement.",
    "visits_waiting": "Visits in the data folder that are not yet stored.",
    "visits_waiting_seconds": "Age of the oldest of them.",
    "jobs_waiting": "Background jobs, at most 10000.",
    "jobs_waiting_seconds": "Seconds since a job is due that no process has taken.",
    "jobs_failing": "Background jobs that have failed more than three times in a row.",
    "events_waiting_seconds": "Age of the oldest event that no process has prepared for webhooks.",
    "deliveries_waiting": "Events that wait for webhooks, at most 10000.",
    "replica_in_use": "1 if this process reads from the replica.",
    "replica_lag_seconds": "Age of the last commit that the replica has replayed.",
    "backup_age_seconds": "Seconds since the last dump.",
    "purge_age_seconds": "Seconds since the last purge.",
}
# All others share a cell
_STATUSES = sorted({200, 302, 303, 304, 308} | {status for status, _ in CATALOGUE.values()})
# upper bounds of the histogram
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_STATUS = {str(status): cell for cell, status in enumerate(_STATUSES)}
_OTHER_STATUS = len(_STATUSES)
_DURATIONS = _OTHER_STATUS + 1  # the cell of the shortest duration
_SUM = _DURATIONS + len(_SECONDS) + 1  # the total duration in microseconds
_LINE = _SUM + 1  # cells of one route and method
_UNMATCHED = ("", "any")
ROUTE = "linkmgr.route"  # key of the WSGI environment: the route of a request that did not reach Flask
_PROCESS = 4  # the cell behind the digest of the layout: the id of the process
_HEAD = _PROCESS + 1


class Metrics(Collector):
    """Cells of 64 bits: the digest of the layout, the process, the events, and a line for each
    route and method."""

    def __init__(self, app: Flask, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._events = {name: _HEAD + cell for cell, name in enumerate(EVENTS)}
        served = {(rule.rule, method) for rule in app.url_map.iter_rules() for method in rule.methods or ()}
        first = _HEAD + len(EVENTS)
        self._lines = {key: first + index * _LINE for index, key in enumerate([_UNMATCHED, *sorted(served)])}
        self._size = 8 * (first + len(self._lines) * _LINE)
        self._digest = hashlib.sha256(
            repr((self._events, self._lines, _STATUSES, _SECONDS)).encode()
        ).digest()

    @cached_property
    def _cells(self) -> memoryview:
        """The cells of this process, opened at its first request, because workers may be forked
        after `create_app`.

        If the disk is full, they are not shared, and requests continue to work.
        """
        try:
            return self._map_file()
        except OSError:
            return memoryview(bytearray(self._size)).cast("Q")

    def _map_file(self) -> memoryview:
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
        if os.fstat(file).st_size != self._size or os.pread(file, 8 * _PROCESS, 0) != self._digest:
            os.ftruncate(file, 0)
            os.posix_fallocate(file, 0, self._size)  # on a full disk, writing to a sparse file raises SIGBUS
            os.pwrite(file, self._digest, 0)
        mapped = mmap.mmap(file, self._size)  # duplicates the descriptor, which keeps the lock
        os.close(file)
        cells = memoryview(mapped).cast("Q")
        cells[_PROCESS] = os.getpid()
        return cells

    def count(self, event: str, number: int) -> None:
        with self._lock:
            self._cells[self._events[event]] += number

    def request(self, environ: dict[str, Any], status: str, seconds: float) -> None:
        rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
        lines = self._lines
        line = lines.get((rule.rule if rule else environ.get(ROUTE, ""), environ["REQUEST_METHOD"]))
        if line is None:
            line = lines[_UNMATCHED]
        with self._lock:
            cells = self._cells
            cells[line + _STATUS.get(status[:3], _OTHER_STATUS)] += 1
            cells[line + _DURATIONS + bisect_left(_SECONDS, seconds)] += 1
            cells[line + _SUM] += int(seconds * 1e6)

    def _totals(self) -> list[int]:
        files = [path.read_bytes() for path in self.folder.glob("*.cells")]
        cells = [memoryview(file).cast("Q") for file in files if file.startswith(self._digest)]
        return [sum(values) for values in zip([0] * (self._size // 8), *cells, strict=True)]

    def _memory(self) -> Iterator[tuple[str, int]]:
        """Yield the number of the file of each living process, and its resident memory in bytes."""
        for path in self.folder.glob("*.cells"):
            with path.open("rb") as file, suppress(OSError):  # its process ends in this moment
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    process = int.from_bytes(os.pread(file.fileno(), 8, 8 * _PROCESS), sys.byteorder)
                    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
                    yield path.stem, int(pages) * resource.getpagesize()

    def collect(self) -> Iterator[Metric]:
        totals = self._totals()
        for name, doc in EVENTS.items():
            yield CounterMetricFamily(f"linkmgr_{name}", doc, value=totals[self._events[name]])
        requests = CounterMetricFamily("linkmgr_requests", "Responses.", labels=("route", "method", "status"))
        durations = HistogramMetricFamily(
            "linkmgr_request_seconds", "Response times.", labels=("route", "method")
        )
        for key, first in self._lines.items():
            line = totals[first : first + _LINE]
            for status, number in zip((*_STATUSES, "other"), line[:_DURATIONS], strict=True):
                if number:
                    requests.add_metric((*key, str(status)), number)
            if any(line):
                buckets = zip((*map(str, _SECONDS), "+Inf"), accumulate(line[_DURATIONS:_SUM]), strict=True)
                durations.add_metric(key, list(buckets), line[_SUM] / 1e6)
        yield requests
        yield durations
        memory = GaugeMetricFamily(
            "linkmgr_worker_memory_bytes", "Resident memory of a process.", labels=("worker",)
        )
        for worker, size in self._memory():
            memory.add_metric((worker,), size)
        yield memory


def gauges_text(values: dict[str, Any]) -> bytes:
    """Return the exposition of the version, and of the GAUGES that have a value."""
    registry = CollectorRegistry()
    Info("linkmgr_build", "The version of this process.", registry=registry).info({"version": RELEASE})
    for name, help_text in GAUGES.items():
        if (value := values.get(name)) is not None:
            Gauge(f"linkmgr_{name}", help_text, registry=registry).set(value)
    return generate_latest(registry)


def init_app(app: Flask) -> None:
    """Call this last, because it needs all routes. Without a token, nothing is counted."""
    enabled = settings().metrics_token
    app.extensions["linkmgr_metrics"] = Metrics(app, settings().folder / "metrics") if enabled else None


def metrics() -> Metrics | None:
    instance: Metrics | None = this_app().extensions["linkmgr_metrics"]
    return instance


def count(event: str, number: int = 1) -> None:
    if instance := metrics():
        instance.count(event, number)
