"""The service as `make run` starts it."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.support.clusters import alive
from tests.support.servers import free_port
from tests.support.targets import wait_until


class Service:
    """The launcher with its own data folder and port, in its own process group as in a terminal."""

    def __init__(
        self, mode: str, folder: Path, stdin: int = subprocess.DEVNULL, checkout: Path = ROOT, **environment: str
    ) -> None:
        self.port, self.data = free_port(), folder / "postgres"
        self.last_line = "Press Ctrl-C to stop." if mode == "dev" else "linkmgr is running"
        self.log = folder / f"{mode}-{self.port}.log"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LINKMGR_")}
        given = {"PORT": str(self.port), "LINKMGR_DATA_DIR": str(folder), "WEB_CONCURRENCY": "1"} | environment
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                # A shell lets background processes ignore Ctrl-C, and nohup SIGHUP. Children inherit that.
                ["env", "--default-signal=INT,HUP", sys.executable, "-m", "linkmgr.launch", mode],
                cwd=checkout,
                env=kept | given,
                stdin=stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def started(self) -> "Service":
        wait_until(lambda: self.last_line in self.output() or self.process.poll() is not None)
        assert self.process.poll() is None, self.output()
        return self

    def output(self) -> str:
        return self.log.read_text()

    def key(self, name: str) -> str:
        [key] = re.findall(rf"API key of {name}: +(\S+)", self.output())
        return str(key)

    def get(self, path: str, key: str = "") -> int:
        request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
                connection.sendall(request.encode())
                return int(connection.makefile().readline().split()[1])
        except (OSError, IndexError):
            return 0

    def processes(self) -> list[int]:
        """Return the processes of the launcher, gunicorn, its workers and the database server."""
        found = list(alive(self.data))
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes()
            except OSError:
                continue
            if f"PORT={self.port}\0".encode() in environment and int(process.name) not in found:
                found.append(int(process.name))
        return found

    def ctrl_c(self) -> int:
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(60)
