"""The launcher behind `make dev` and `make run`: start, stop, requirements, and what it prints."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from flask import Flask

from tests.conftest import ROOT, Client
from tests.support.clusters import postmaster
from tests.support.launched import Service
from tests.support.races import meanwhile
from tests.support.raw_http import BOUND
from tests.support.servers import children, free_port
from tests.support.targets import wait_until

pytestmark = pytest.mark.services


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="linkmgr test ", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Service]]:
    services = []

    def begin(mode: str, *arguments: Any, **environment: Any) -> Service:
        services.append(Service(mode, folder, *arguments, **environment))
        return services[-1]

    yield begin
    for service in services:
        if service.process.poll() is None:
            service.process.terminate()
            service.process.wait(60)
    wait_until(lambda: not any(service.processes() for service in services))


def check_printed(service: Service) -> None:
    """Check that the links which `make dev` prints sign in and open its pages."""
    base = f"http://127.0.0.1:{service.port}"
    printed = dict(re.findall(r"^  (.+?): +(http\S+)$", service.output(), re.MULTILINE))
    assert list(printed) == ["Sign in as demo", "Sign in as admin", "Console", "API documentation", "Demo bio page"]
    assert printed["Console"] == f"{base}/console"
    assert (printed["API documentation"], printed["Demo bio page"]) == (f"{base}/api/docs", f"{base}/dana-demo")
    for name, page in printed.items():
        assert service.get(page.removeprefix(base)) == (303 if name == "Console" else 200)  # without a session: /login
    assert service.get("/login/" + "x" * 43) == 410
    command = next(line for line in service.output().splitlines() if line.endswith("users login NAME"))
    assert command.endswith(f": PORT={service.port} .venv/bin/flask --app app users login NAME")  # names that URL


def test_dev_restarts_with_its_data_and_ctrl_c_stops_every_process(start: Callable[..., Service]) -> None:
    first = start("dev").started()
    key = first.key("demo")
    assert first.get("/api/account", key) == 200
    assert '"path":"/api/account"' not in first.output(), "requests push the keys off the screen"
    wait_until(lambda: '"path":"/api/account"' in (first.data.parent / "access.log").read_text())
    assert f"Listening at: http://127.0.0.1:{first.port} " in first.output()
    check_printed(first)
    assert first.ctrl_c() == 0
    assert first.processes() == []
    second = start("dev", LINKMGR_BASE_URL="https://go.example.org").started()
    assert second.key("demo") == key
    assert second.get("/api/account", key) == 200, "loopback names are served beside that of the base URL"
    assert "Traceback" not in first.output() + second.output()


def test_dev_survives_the_death_of_its_database(start: Callable[..., Service]) -> None:
    service = start("dev", LINKMGR_DEMO="0").started()
    key = service.key("admin")
    time.sleep(1)  # the launcher delays the restart of a server that dies early
    os.kill(postmaster(service.data), signal.SIGKILL)
    answers = set()

    def answers_again() -> bool:
        answers.add(service.get("/api/account", key))
        return answers > {503} or service.get("/healthz") == 200

    wait_until(answers_again)
    wait_until(lambda: service.get("/api/account", key) == 200)
    assert answers <= {200, 503}


def test_a_killed_service_leaves_no_process_and_starts_again(start: Callable[..., Service]) -> None:
    service = start("dev", LINKMGR_DEMO="0").started()
    key = service.key("admin")
    service.process.kill()
    wait_until(lambda: not service.processes())
    second = start("dev", LINKMGR_DEMO="0").started()
    for pid in second.processes():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not second.processes())
    assert start("dev", LINKMGR_DEMO="0").started().key("admin") == key


def test_a_first_run_creates_the_schema_and_prints_how_to_add_an_administrator(start: Callable[..., Service]) -> None:
    service = start("run")
    wait_until(lambda: "Starting PostgreSQL" in service.output())
    service.process.send_signal(signal.SIGHUP)  # `systemctl reload` during the start
    service.started()
    assert "users add NAME EMAIL --admin" in service.output()
    assert "API key" in service.output()
    assert not re.search("linkmgr_[A-Za-z0-9_-]{20}", service.output())
    assert service.get("/api/account") == 401
    service.process.terminate()
    assert service.process.wait(60) == 0
    assert service.processes() == []


def test_three_reloads_lose_no_request_and_a_broken_version_replaces_nothing(
    start: Callable[..., Service], dsn: str, app: Flask, folder: Path
) -> None:
    checkout = folder / "a checkout"
    for name in ("linkmgr", "deploy"):
        shutil.copytree(ROOT / name, checkout / name)
    for name in ("app.py", "schema.sql"):
        shutil.copy2(ROOT / name, checkout)
    settings = {"LINKMGR_DATABASE_URL": dsn, "WEB_CONCURRENCY": "2"}
    service = start("run", subprocess.DEVNULL, checkout, **settings).started()
    assert not service.data.exists(), "no PostgreSQL is started"
    assert not service.data.with_name("postgres.lock").exists()
    launcher, source = service.process.pid, (checkout / "app.py").read_text()
    durations = []

    def ask() -> int:
        began = time.monotonic()
        status = service.get("/healthz")
        durations.append(time.monotonic() - began)
        return status

    with meanwhile(ask, ask) as answers:
        for number in range(3):
            serving = children(launcher)[-1]
            is_broken = number == 1
            (checkout / "app.py").write_text(f"import nothing{number}" if is_broken else f"{source}print({number})")
            service.process.send_signal(signal.SIGHUP)
            said = "The reload failed" if is_broken else "The new version serves"
            times = service.output().count(said) + 1
            wait_until(lambda: service.output().count(said) == times)  # noqa: B023
            assert (serving == children(launcher)[-1]) is is_broken
            assert f"No module named 'nothing{number}'" in service.output() or not is_broken
            wait_until(lambda: len(children(launcher)) == 1)
    assert set(answers) == {200}
    assert max(durations) < BOUND, "1 s on a machine that does little else"
    assert service.process.poll() is None


@pytest.mark.parametrize("mode", ["dev", "run"])
def test_closing_the_terminal_stops_every_process(start: Callable[..., Service], empty: str, mode: str) -> None:
    terminal, stdin = os.openpty()
    try:
        service = start(mode, stdin, LINKMGR_DATABASE_URL=empty, LINKMGR_DEMO="0").started()
        for _ in range(2):  # one from the terminal, and one from its shell
            service.process.send_signal(signal.SIGHUP)
        assert service.process.wait(30) == 0
    finally:
        os.close(terminal)
        os.close(stdin)
    assert service.processes() == []


def test_the_launcher_uses_the_address_that_gunicorn_listens_on(
    start: Callable[..., Service], dsn: str, app: Flask
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        unused = str(other.getsockname()[1])
        port = free_port()
        settings = {"GUNICORN_CMD_ARGS": f"--bind=127.0.0.2:{port}", "LINKMGR_DATABASE_URL": dsn, "PORT": unused}
        start("run", **settings).started()
        second = start("run", **settings)
        assert second.process.wait(60) == 1
    assert second.output().startswith(f"Port {port} is in use. Stop the program that listens there, or choose another")
    assert second.output().count("\n") == 1


def test_run_refuses_a_database_from_before_the_first_release(
    start: Callable[..., Service], dsn: str, app: Flask, raw: psycopg2.extensions.connection
) -> None:
    with raw.cursor() as cursor:
        cursor.execute("ALTER TABLE service RENAME TO schema_version")
        try:
            refused = start("run", LINKMGR_DATABASE_URL=dsn)
            assert refused.process.wait(60) == 1
        finally:
            cursor.execute("ALTER TABLE schema_version RENAME TO service")
    assert "is older than release 1.0.0 and cannot be upgraded" in refused.output()


REFUSED = {
    "PORT must be a number from 1 to 65535; it is 'http'.": {"PORT": "http"},
    "WEB_CONCURRENCY must be a number of workers from 1 to 999; it is '0'.": {"WEB_CONCURRENCY": "0"},
    "192.0.2.11 is not an address of this machine.": {"GUNICORN_CMD_ARGS": "--bind=192.0.2.11:5000"},
    "LINKMGR_DEMO must be 0 or 1.": {"LINKMGR_DEMO": "yes"},
    'The database cannot be used: connection to server at "127.0.0.1", port 1 failed: Connection refused.': {
        "LINKMGR_DATABASE_URL": "postgresql://127.0.0.1:1/x"
    },
}


def test_an_error_at_the_start_is_one_sentence(start: Callable[..., Service]) -> None:
    refused = {sentence: start("run", **environment) for sentence, environment in REFUSED.items()}
    assert [service.process.wait(60) for service in refused.values()] == [1] * len(REFUSED)
    assert [service.output() for service in refused.values()] == [f"{sentence}\n" for sentence in REFUSED]


def test_a_start_with_another_secret_is_refused_before_the_first_request(
    start: Callable[..., Service], dsn: str, register: Callable[..., Client]
) -> None:
    register("alice")
    refused = start("run", LINKMGR_DATABASE_URL=dsn, LINKMGR_SECRET_KEY="another secret than the one before")
    assert refused.process.wait(60) == 1
    assert "LINKMGR_SECRET_KEY_FALLBACKS" in refused.output()


def run_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", *arguments],
        cwd=ROOT,
        env=os.environ | {"LINKMGR_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_names_its_data_folder_unless_it_is_that_of_a_running_service(
    start: Callable[..., Service], folder: Path
) -> None:
    service = start("dev", LINKMGR_DEMO="0").started()
    shared = run_command(folder, "users", "key", "admin")
    assert (shared.stdout, shared.stderr) == (service.key("admin") + "\n", "")
    assert service.get("/healthz") == 200
    other = folder / "other"
    created = run_command(other, "database", "create")
    assert created.stderr.startswith(f"Creating a new private PostgreSQL in the data folder {other}. If the service ")
    printed = run_command(other, "users", "key", "zoe")
    assert printed.stderr.startswith(f"Using the data folder {other}, where no service is running. If the service ")
