"""The README agrees with the program: operations, settings, commands, make targets and paths."""

import re
from dataclasses import fields

import click
import pytest
from flask import Flask

from linkmgr.openapi.operations import OPERATIONS
from linkmgr.outbound import fetch
from linkmgr.settings import PREFIX, Settings
from linkmgr.web.errors import CATALOGUE
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_the_table_of_operations_matches_the_program() -> None:
    listed = re.findall(r"^\| (GET|POST|PUT|DELETE) \| `(/api/[^`]+)` \|", README, re.MULTILINE)
    paths = [(operation, operation.path.replace("{type}", ":type")) for operation in OPERATIONS]
    documented = [(operation.method, re.sub(r"{\w+}", ":id", path)) for operation, path in paths]
    assert sorted(listed) == sorted(set(documented) - {("GET", "/api/openapi.json")})


def test_the_table_of_codes_matches_the_catalog() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", README, re.MULTILINE)
    sentences = {code: re.sub(":[a-z]+}", "}", sentence) for code, (_, sentence) in CATALOGUE.items()}
    assert listed == [(code, str(status), sentences[code]) for code, (status, _) in CATALOGUE.items()]


def test_the_table_of_settings_matches_the_program() -> None:
    listed = re.findall(r"^\| `LINKMGR_(\w+)` \| (.*?) \| (.*) \|$", README, re.MULTILINE)
    expected = [
        (field.name.upper(), "" if field.default in ("", None) else f"`{field.default}`", field.metadata["doc"])
        for field in fields(Settings)
    ]
    assert listed == expected


def test_every_setting_that_is_mentioned_exists() -> None:
    names = {field.name.upper() for field in fields(Settings)}
    assert set(re.findall(rf"{PREFIX}([A-Z_]+[A-Z])", README)) <= names


def test_the_list_of_commands_matches_the_program(app: Flask) -> None:
    listed = re.findall(r"^\| `(\w+ \w+)[^`]*` \|", README, re.MULTILINE)
    groups = ("users", "plans", "database", "visits")
    commands = [
        f"{name} {command}"
        for name in groups
        if isinstance(group := app.cli.commands[name], click.Group)
        for command in group.commands
    ]
    assert sorted(listed) == sorted(commands)


TARGETS = sorted(set(re.findall(r"^(?:    |.*`)(?:\S+=\S+ )*make (\w+)", README, re.MULTILINE)))


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_that_is_mentioned_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_limits_of_outbound_fetches_match_the_program() -> None:
    [bounds] = re.findall(r"- \*\*What is fetched\*\*.*?\n(?=\n|- )", README, re.DOTALL)
    numbers = re.findall(r"(\w+)[ \n]+(?:redirects|MiB|seconds|at[ \n]a[ \n]time)", bounds)
    assert numbers == [
        str(n) for n in (fetch.REDIRECTS, fetch.MAX_BYTES >> 20, int(fetch.DEADLINE), fetch.MAX_CONCURRENT)
    ]


PATHS = sorted(
    set(re.findall(r"`((?:linkmgr|tests|deploy|bench|\.ci|\.github)(?:/[\w./-]*)?|schema\.sql|app\.py)`", README))
)


@pytest.mark.parametrize("path", PATHS)
def test_every_path_that_is_mentioned_exists(path: str) -> None:
    assert (ROOT / path).exists()
