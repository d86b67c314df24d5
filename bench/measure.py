"""A turn of wrk at a server, and what it cost."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")  # a second of processor time, as /proc counts it


def cpu(pid: int) -> float:
    """Seconds of processor time that the process and its children have taken."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:  # PostgreSQL's helpers come and go
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(cpu(int(child)) for child in children)


def wrk(url: str, script: str, connections: int, seconds: int) -> tuple[int, float]:
    """How many requests were answered, and in how many seconds."""
    if not shutil.which("wrk"):
        raise SystemExit("wrk is missing: apt-get install wrk")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "-s", file.name]
        printed = subprocess.run(["wrk", *options, url], capture_output=True, text=True, check=True).stdout
    if refused := re.search(r"Non-2xx.*|Socket errors.*", printed):
        raise SystemExit(f"{url}: {refused[0]}")
    found = re.search(r"(\d+) requests in ([\d.]+)s", printed)
    assert found
    return int(found[1]), float(found[2])


class Turn(NamedTuple):
    rate: float  # requests a second
    service: float  # microseconds of processor time a request
    database: float


class Target(NamedTuple):
    """Where a case is measured, and the processes that work for it."""

    url: str
    script: str
    service: int
    database: int

    def turn(self, connections: int) -> Turn:
        before = cpu(self.service), cpu(self.database)
        answered, seconds = wrk(self.url, self.script, connections, 1)
        after = cpu(self.service), cpu(self.database)
        return Turn(answered / seconds, *((b - a) / answered * 1e6 for a, b in zip(before, after, strict=True)))
