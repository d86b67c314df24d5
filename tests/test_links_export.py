"""flask --app app links export"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask

from tests.conftest import Client

Command = Callable[..., Result]


@pytest.fixture
def run(app: Flask) -> Command:
    return lambda *arguments: app.test_cli_runner().invoke(args=["links", "export", *map(str, arguments)])


def test_the_command_writes_the_same_as_the_api(run: Command, alice: Client, tmp_path: Path) -> None:
    for number in range(3):
        alice.add("/api/url/add", {"url": f"https://example.com/{number}", "password": "secret"})
    for form in ("csv", "json", "jsonl"):
        text = alice.get(f"/api/urls/export?format={form}").text
        file = tmp_path / f"links.{form}"
        result = run("--user", "alice", "--format", form, "--output", file)
        assert (result.exit_code, result.output) == (0, "")
        assert file.read_bytes().decode() == text
        assert run("--user", "alice", "--format", form).stdout == text.replace("\r\n", "\n")
    assert len(json.loads((tmp_path / "links.json").read_text())["data"]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.csv", "links.json", "links.jsonl"]


def test_an_export_that_fails_leaves_the_file_as_it_was(
    run: Command, alice: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/"})
    file = tmp_path / "links.csv"
    file.write_text("before")
    result = run("--user", "alice", "--output", tmp_path / "missing" / "links.csv")
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory." in result.output

    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("linkmgr.web.csv.lines", interrupt)
    assert run("--user", "alice", "--output", file).exit_code != 0
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("links.csv", "before")]
