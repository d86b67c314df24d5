"""The servers that are measured: PostgreSQL with durable writes, and gunicorn as `make run` starts
it."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bench.measure import Refused
from linkmgr.core.database import embedded

ROOT = Path(__file__).parent.parent
_START_SECONDS = 60
_ANSWERED = re.compile(rb'"status":"?[23]')


@contextmanager
def postgres() -> Iterator[tuple[str, int]]:
    """Run a durable server with its data below `var`. Yield its DSN and its process id."""
    (ROOT / "var").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT / "var") as folder:
        Path(folder).chmod(0o755)  # if started by root, the server runs as another user
        with embedded.running(Path(folder, "postgres")) as server:
            pid = int((server.data / "postmaster.pid").read_text().split()[0])
            yield embedded.dsn(Path(folder, "postgres")), pid
        shutil.rmtree(server.data.parent, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _print_failures(log: BinaryIO) -> None:
    """Print the last log lines of the responses that were refused, and other messages."""
    log.seek(0)
    for line in deque((line for line in log if not _ANSWERED.search(line)), maxlen=10):
        print(line.decode().rstrip(), file=sys.stderr)


@contextmanager
def gunicorn(
    app: str, *options: str, config: str = "deploy/gunicorn.conf.py", **settings: str
) -> Iterator[tuple[str, int]]:
    """Run an application. Yield its URL and its process id."""
    port = _free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINKMGR_")}
    environment |= {f"LINKMGR_{name.upper()}": value for name, value in settings.items()} | {
        "PORT": str(port)
    }
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "gunicorn",
                "--config",
                config,
                "--bind",
                f"127.0.0.1:{port}",
                *options,
                app,
            ],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            for _ in range(_START_SECONDS * 10):
                # A worker accepts connections some time before it answers.
                with (
                    suppress(OSError),
                    socket.create_connection(("127.0.0.1", port), _START_SECONDS) as probe,
                ):
                    probe.sendall(b"HEAD /healthz HTTP/1.0\r\n\r\n")
                    if probe.recv(1):
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", process.pid
        except Refused:
            _print_failures(log)
            raise
        finally:
            process.terminate()
            process.wait(40)
