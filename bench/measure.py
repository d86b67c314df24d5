"""Run wrk against a server, and measure throughput and processor time."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")  # units of processor time in /proc per second
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


def cpu(pid: int) -> float:
    """Return the processor time of a process and its children in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # PostgreSQL starts and stops background processes
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(cpu(int(child)) for child in children)


class Refused(SystemExit):
    """A server answered requests with errors."""


class Load(NamedTuple):
    requests: int
    seconds: float
    median: float  # milliseconds
    p99: float


def wrk(url: str, script: str, connections: int, seconds: int) -> Load:
    """Send requests for some seconds. Return those that were completed."""
    if not shutil.which("wrk"):
        raise SystemExit("wrk is missing: apt-get install wrk")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", file.name]
        output = subprocess.run(["wrk", *options, url], capture_output=True, text=True, check=True).stdout
    if error := re.search(r"Non-2xx.*|Socket errors.*", output):
        raise Refused(f"{url}: {error[0]}")
    summary = re.search(r"(\d+) requests in ([\d.]+)s", output)
    assert summary
    if summary[1] == "0":
        raise Refused(f"{url}: no response within {seconds} s")
    printed = re.findall(r"(?:50|99)%\s+([\d.]+)(\w+)", output)
    latencies = [float(number) * _MILLISECONDS[unit] for number, unit in printed]
    return Load(int(summary[1]), float(summary[2]), *latencies)


class Sample(NamedTuple):
    rate: float  # requests per second
    tail: float  # p99 divided by the median latency
    service: float  # microseconds of processor time per request
    database: float  # the same for PostgreSQL


class Target(NamedTuple):
    """A URL, the wrk script that requests it, and the ids of the processes that serve it."""

    url: str
    script: str
    service: int
    database: int

    def sample(self, connections: int) -> Sample:
        before = cpu(self.service), cpu(self.database)
        load = wrk(self.url, self.script, connections, 1)
        after = cpu(self.service), cpu(self.database)
        spent = ((b - a) / load.requests * 1e6 for a, b in zip(before, after, strict=True))
        tail = load.p99 / load.median if load.median else 1.0  # wrk has no latencies of a few long requests
        return Sample(load.requests / load.seconds, tail, *spent)
