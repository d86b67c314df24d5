"""What is measured, all of it real: PostgreSQL that waits for the disk, gunicorn as `make run` starts it, and wrk."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from linkmgr import private_postgres

ROOT = Path(__file__).parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")  # a second of processor time, as /proc counts it
_START_SECONDS = 20


@contextmanager
def postgres() -> Iterator[tuple[str, int]]:
    """The DSN and the process of a durable server in a folder of its own, on the disk that `var` lies on."""
    (ROOT / "var").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT / "var") as folder:
        Path(folder).chmod(0o755)  # the server runs as another user when this is root
        with private_postgres.running(Path(folder, "postgres")) as server:
            pid = int((server.data / "postmaster.pid").read_text().split()[0])
            yield private_postgres.dsn(Path(folder, "postgres")), pid
        shutil.rmtree(server.data.parent, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def gunicorn(app: str, *options: str, **settings: str) -> Iterator[tuple[str, int]]:
    """The address and the process of an application under deploy/gunicorn.conf.py."""
    port = _free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINKMGR_")}
    environment |= {f"LINKMGR_{name.upper()}": value for name, value in settings.items()} | {"PORT": str(port)}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py", *options, app],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            for _ in range(_START_SECONDS * 10):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(40)


def cpu(pid: int) -> float:
    """Seconds of processor time that the process and its children have taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
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
