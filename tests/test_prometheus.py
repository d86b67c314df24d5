"""The files for Prometheus in deploy/: promtool accepts them, and alerts come when they should."""

import shutil
import subprocess

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    "command", ["check config deploy/prometheus/prometheus.yml", "test rules tests/prometheus_rules.yml"]
)
def test_prometheus_accepts_the_files_and_alerts_only_of_what_is_old(command: str) -> None:
    if not shutil.which("promtool"):
        pytest.skip("promtool is missing: apt-get install prometheus")
    run = subprocess.run(["promtool", *command.split()], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
