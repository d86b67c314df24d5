"""The documents are true: their settings, commands, targets, bounds, links and paths exist."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from linkmgr import DOCUMENTED
from linkmgr.core.outbound import fetch
from linkmgr.core.settings import PREFIX, VARIABLES, Settings
from linkmgr.features import load
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "deploy/README.md", "bench/README.md", "tests/faults/README.md")),
    ROOT / ".github/CONTRIBUTING.md",
]
over_documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def _shown(default: object) -> str:
    value = int(default) if isinstance(default, bool) else ", ".join(default) if isinstance(default, tuple) else default
    return "" if value in ("", None, ()) else f"`{value}`"


def test_the_table_of_settings_matches_the_program() -> None:
    listed = re.findall(r"^\| `LINKMGR_(\w+)` \| (.*?) \| .+ \|$", README, re.MULTILINE)
    assert listed == [(field.name.upper(), _shown(field.default)) for field in fields(Settings)]


def test_the_list_of_commands_matches_the_program() -> None:
    listed = re.findall(r"^\| `(\w+ \w+)[^`]*` \|", README, re.MULTILINE)
    groups = [group for feature in (DOCUMENTED, *load(["all"])) for group in feature.commands]
    commands = [f"{group.name} {command}" for group in groups for command in group.commands]
    assert sorted(listed) == sorted(commands)


def test_the_bounds_of_outbound_requests_are_those_of_the_program() -> None:
    text = (ROOT / "deploy/README.md").read_text()
    section = text.partition("## Outbound requests")[2].partition("\n## ")[0]
    numbers = re.findall(r"(\d+)\s+(?:redirects|MiB|seconds)", section)
    expected = (fetch.MAX_REDIRECTS, fetch.MAX_BYTES >> 20, int(fetch.DEADLINE))
    assert numbers == [str(number) for number in expected]


@over_documents
def test_every_setting_that_is_mentioned_exists(document: Path) -> None:
    assert set(re.findall(rf"{PREFIX}([A-Z_]+[A-Z])", document.read_text())) <= VARIABLES


@over_documents
def test_every_make_target_that_is_mentioned_exists(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^(?:    |.*`)(?:\S+=\S+ )*make ([\w-]+)", document.read_text(), re.MULTILINE))
    assert {target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()


@over_documents
def test_every_path_that_is_mentioned_exists(document: Path) -> None:
    text = document.read_text()
    folders = r"`((?:linkmgr|tests|deploy|bench|\.ci|\.github)(?:/[\w./-]*)?|schema\.sql|app\.py)`"
    assert {path for path in re.findall(folders, text) if not (ROOT / path).exists()} == set()
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link}
    assert {link for link in links if not (document.parent / link).exists()} == set()


def test_every_name_of_a_file_that_is_mentioned_exists() -> None:
    """For example `STORED` of `linkmgr/schemas/stored.py`. A file may be called by the end of its path."""
    text, missing = (ROOT / ".github/CONTRIBUTING.md").read_text(), []
    for names, file in re.findall(r"((?:`\w+`,?(?: and)?\s+)+)(?:of|in)\s+`([\w/]+\.(?:py|html))`", text):
        paths = [ROOT / file, *(ROOT / "linkmgr").rglob(file)]
        sources = "".join(path.read_text() for path in paths if path.exists())
        for name in re.findall(r"\w+", names.replace(" and", "")):
            if not re.search(rf"^(?:def |class |{{% macro )?{name}\b", sources, re.MULTILINE):
                missing.append(f"{name} of {file}")
    assert missing == []


def test_the_server_for_language_models_is_tested_with_the_package_that_it_needs() -> None:
    project = tomllib.loads((ROOT / "deploy/mcp/pyproject.toml").read_text())["project"]
    assert {*project["dependencies"]} <= {*(ROOT / "tests/clients/requirements.txt").read_text().split()}
