"""The targets of the Makefile, and what they require."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ("#!/bin/sh\ncase $2 in *version*) echo too old >&2; exit 1;; esac", "too old"),
        ("#!/bin/sh\ncase $2 in *venv*) exit 1;; esac", "a python has no venv module: apt-get install python3-venv"),
        (None, "./a python is missing: apt-get install python3 python3-venv"),
    ],
)
def test_make_names_the_missing_programs(tmp_path: Path, python: str | None, sentence: str) -> None:
    for name in ("Makefile", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    if python:
        (tmp_path / "a python").write_text(python)
        (tmp_path / "a python").chmod(0o755)
    made = subprocess.run(
        ["make", "dev", "PYTHON=./a python"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 2
    assert made.stdout == ""
    assert sentence in made.stderr.splitlines()[0]
    assert len(made.stderr.splitlines()) == 2
    assert not (tmp_path / ".venv").exists()


def test_make_help_lists_every_target() -> None:
    printed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [targets] = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert re.findall(r"^make (\S+) +\w", printed, re.MULTILINE) == targets.split()


def test_an_older_python_is_refused_with_its_version(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.version_info = (3, 9, 2)")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    python = tmp_path / "an older python"
    python.symlink_to(sys.executable)
    made = subprocess.run(
        ["make", "dev", f"PYTHON={python}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 2
    assert "linkmgr needs Python 3.11 or later" in made.stderr
    assert f"{python} is 3.9: run make PYTHON=" in made.stderr
