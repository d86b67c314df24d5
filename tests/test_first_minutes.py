"""The first minutes: the addresses that `make dev` prints, and commands in another shell."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import test_launch
from tests.conftest import ROOT
from tests.support.launched import Service

folder, start = test_launch.folder, test_launch.start  # fixtures

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(sys.platform != "linux", reason="what is left running is looked for in /proc"),
]


def test_dev_prints_links_that_sign_in_and_its_pages(start: Callable[..., Service]) -> None:
    service = start("dev").started()
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
    service = start("dev").started()
    shared = run_command(folder, "users", "key", "admin")
    assert (shared.stdout, shared.stderr) == (service.key("admin") + "\n", "")
    assert service.get("/healthz") == 200
    other = folder / "other"
    created = run_command(other, "database", "create")
    assert created.stderr.startswith(f"Creating a new private PostgreSQL in the data folder {other}. Running services ")
    assert str(folder) in created.stderr.partition("use: ")[2].partition(". Set LINKMGR_DATA_DIR to")[0].split(", ")
    assert run_command(other, "users", "add", "zoe", "zoe@example.com", "--admin").returncode == 0
    printed = run_command(other, "users", "key", "zoe")
    assert printed.stderr.startswith(f"Using the data folder {other}, where no service is running. Running services ")
    assert re.fullmatch(r"linkmgr_\S{43}\n", printed.stdout)
