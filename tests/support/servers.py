"""Servers that tests start: the service under gunicorn, and Redis."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from itertools import cycle
from pathlib import Path
from urllib.error import HTTPError

import pytest
from flask import Flask

from tests.support.targets import wait_until

ROOT = Path(__file__).parents[2]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


# Two services could listen on the same port (SO_REUSEPORT), so each process of the tests has ports of its own. For each
# it takes a name, which no other run on this machine can take.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = cycle(10_000 + 2_000 * _WORKER + (os.getpid() + number) % 2_000 for number in range(2_000))


def free_port() -> int:
    """Return the next port on which nothing listens."""
    for port in _PORTS:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as name, socket.socket() as probe:
            name.bind(f"\0linkmgr test {port}")
            probe.bind(("127.0.0.1", port))
            name.detach()  # open until this process ends
            return port
    raise AssertionError


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextmanager
def serving(
    port: int, log: Path, *options: str, application: str = "app:app", stop: str = "TERM", **settings: str
) -> Iterator[str]:
    """Run the service under gunicorn, as `make run` does, and return its base URL."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINKMGR_")}
    environment |= {f"LINKMGR_{name.upper()}": value for name, value in settings.items()} | {"PORT": str(port)}
    with log.open("ab") as output:
        gunicorn = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py", *options, application],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        base = f"http://127.0.0.1:{port}"

        def is_up() -> bool:
            assert gunicorn.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"{base}/healthz", timeout=5).close()
            except HTTPError:
                return True  # the database is unavailable
            except OSError:
                return False
            return True

        wait_until(is_up)
        yield base
    finally:
        gunicorn.send_signal(signal.Signals[f"SIG{stop}"])
        gunicorn.wait(120)


def service(app: Flask, dsn: str, folder: Path, *options: str, **settings: str) -> AbstractContextManager[str]:
    """Run the service on the database of the tests."""
    port = free_port()
    data_dir = app.extensions["linkmgr_settings"].data_dir
    defaults = {"database_url": dsn, "data_dir": data_dir, "base_url": f"http://127.0.0.1:{port}"}
    defaults |= {"private_networks": "127.0.0.0/8", "private_networks_for_all": "1", "link_check": "0"}
    # A graceful stop would wait for the connections that browsers keep open.
    return serving(port, folder / f"gunicorn-{port}.log", *options, stop="QUIT", **(defaults | settings))


@pytest.fixture
def serve(app: Flask, dsn: str, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start the service under gunicorn, for this test only."""
    with ExitStack() as running:
        yield lambda *options, **settings: running.enter_context(service(app, dsn, tmp_path, *options, **settings))


def started(serve: Callable[..., str], *options: str, **settings: str) -> tuple[str, int]:
    """Start a service. Return its base URL and the process id of its worker."""
    before = set(children(os.getpid()))
    base = serve("--workers", "1", *options, **settings)
    [master] = set(children(os.getpid())) - before
    [worker] = children(master)
    return base, worker


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the logs of shared services."""
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")  # no longer: it would do the jobs of the tests that follow
def shared(app: Flask, dsn: str, logs: Path) -> Iterator[Callable[..., str]]:
    """Start a service once for all tests of a module that use it with the same options and settings."""
    with ExitStack() as running:
        yield cache(lambda *options, **settings: running.enter_context(service(app, dsn, logs, *options, **settings)))


@pytest.fixture(scope="module")
def base(shared: Callable[..., str]) -> str:
    """The base URL of a shared service."""
    return shared("--workers", "1", "--graceful-timeout", "0")


@pytest.fixture(scope="module")
def unlimited(shared: Callable[..., str]) -> str:
    """The base URL of a shared service without rate limit and checks of domains."""
    return shared("--workers", "1", rate_limit="1000000 per minute", domain_check="off")


@contextmanager
def redis(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a Redis server for the test and return its URL and its process."""
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is missing: apt-get install redis-server")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        wait_until(lambda: is_open(port))
        yield f"redis://127.0.0.1:{port}/0", server
        server.send_signal(signal.SIGCONT)
        server.terminate()


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with redis(tmp_path) as (url, _):
        yield url
