"""flask --app app links ..."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask

from linkmgr.features.imports import job
from tests.conftest import BASE_URL, ROOT, Client
from tests.support.factories import Sql
from tests.support.imported import sale, shlink, yourls
from tests.support.pages import signed_in

Command = Callable[..., Result]


@pytest.fixture
def run(app: Flask) -> Command:
    return lambda *arguments: app.test_cli_runner().invoke(args=["links", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "links.csv"
    path.write_bytes(shlink(sale("summer"), sale("winter"), sale("x y")))
    return path


@pytest.mark.usefixtures("alice")
def test_a_file_is_imported_and_its_failed_rows_are_written(run: Command, file: Path, sql: Sql, tmp_path: Path) -> None:
    errors = tmp_path / "errors.csv"
    result = run("import", file, "--user", "alice", "--errors", errors)
    assert result.output == "3 rows read: 2 made, 0 updated, 0 skipped, 1 failed.\n"
    assert [row["alias"] for row in sql("SELECT alias FROM links ORDER BY id")] == ["summer", "winter"]
    assert ",x y," in errors.read_text().splitlines()[1]
    assert sql("SELECT FROM jobs") == []
    again = run("import", file, "--user", "alice", "--on-conflict", "rename")
    assert "2 made" in again.output


@pytest.mark.usefixtures("alice")
def test_visits_of_a_file_are_counted(run: Command, sql: Sql, tmp_path: Path) -> None:
    file = tmp_path / "yourls.sql"
    file.write_bytes(yourls("summer", 3, 3))
    assert run("import", file, "--user", "alice").output.endswith("3 visits stored.\n")
    assert sql("SELECT sum(visits)::int AS visits FROM account_targets") == [{"visits": 3}]


@pytest.mark.usefixtures("alice")
def test_a_dry_run_shows_rows_and_stores_nothing(run: Command, file: Path, sql: Sql) -> None:
    shown = run("import", file, "--user", "alice", "--dry-run").output
    assert shown.startswith("Format: csv. Source: shlink. Columns: createdAt, shortCode,")
    assert re.search(r"1 +summer +https://example.com/sale\n", shown)
    assert "'shortCode' must be" in shown
    assert sql("SELECT FROM imports") == sql("SELECT FROM links") == []


@pytest.mark.usefixtures("alice")
def test_wrong_arguments_are_refused_in_one_sentence(run: Command, file: Path, tmp_path: Path) -> None:
    for arguments, sentence in {
        ("--user", "alice"): "Name either a file, or a service with --address, or an import with --resume.",
        (file, "--user", "nobody"): "There is no user named 'nobody'",
        (file, "--user", "alice", "--mapping", "x"): "mapping must be a JSON object",
        ("--user", "alice", "--resume", "17"): "There is no import with this id.",
    }.items():
        result = run("import", *arguments)
        assert result.exit_code != 0
        assert sentence in result.output
        assert "Traceback" not in result.output
    (tmp_path / "empty.csv").touch()
    assert run("import", tmp_path / "empty.csv", "--user", "alice").exit_code == 1


@pytest.mark.usefixtures("alice")
def test_a_file_that_cannot_be_used_is_refused_before_the_import(
    run: Command, file: Path, sql: Sql, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for arguments, sentence in {
        (file, "--errors", tmp_path / "missing/errors.csv"): "errors.csv cannot be used: No such file or directory.",
        (tmp_path / "other.csv",): "other.csv cannot be used: No such file or directory.",
        (tmp_path / "pipe",): "FILE must be a regular file: save the content of a pipe to one first.",
    }.items():
        result = run("import", *arguments, "--user", "alice")
        assert result.exit_code != 0
        assert sentence in result.output
    assert sql("SELECT FROM imports") == []


def test_a_draft_of_the_console_is_not_resumed(run: Command, alice: Client, app: Flask, sql: Sql) -> None:
    form = {"file": (BytesIO(shlink(sale("summer"))), "links.csv")}
    signed_in(app).post("/console/imports/new", data=form, content_type="multipart/form-data")
    [draft] = sql("SELECT id FROM imports WHERE user_id = %(id)s", id=alice.id)
    result = run("import", "--user", "alice", "--resume", draft["id"])
    assert result.exit_code == 1
    assert (
        result.output == f"Error: Import {draft['id']} has not started. Start it in the console, or import its file.\n"
    )
    assert sql("SELECT state FROM imports") == [{"state": "draft"}]


def test_the_command_writes_the_same_as_the_api(run: Command, alice: Client, tmp_path: Path) -> None:
    for number in range(3):
        alice.add("/api/url/add", {"url": f"https://example.com/{number}", "password": "secret"})
    for form in ("csv", "json", "jsonl"):
        text = alice.get(f"/api/urls/export?format={form}").text
        file = tmp_path / f"links.{form}"
        result = run("export", "--user", "alice", "--format", form, "--output", file)
        assert (result.exit_code, result.output) == (0, "")
        assert file.read_bytes().decode() == text
        assert run("export", "--user", "alice", "--format", form).stdout == text.replace("\r\n", "\n")
    assert len(json.loads((tmp_path / "links.json").read_text())["data"]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.csv", "links.json", "links.jsonl"]


def test_an_export_that_fails_leaves_the_file_as_it_was(
    run: Command, alice: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/"})
    file = tmp_path / "links.csv"
    file.write_text("before")
    result = run("export", "--user", "alice", "--output", tmp_path / "missing" / "links.csv")
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory." in result.output

    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("linkmgr.core.web.csv.lines", interrupt)
    assert run("export", "--user", "alice", "--output", file).exit_code != 0
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("links.csv", "before")]


@pytest.mark.slow
def test_an_export_ends_quietly_with_its_reader(app: Flask, dsn: str, alice: Client, sql: Sql) -> None:
    sql(
        """
        INSERT INTO links (user_id, alias, url)
        SELECT %(id)s, 'row-' || n, 'https://example.com/' FROM generate_series(1, 3000) n
        RETURNING 1
        """,
        id=alice.id,
    )
    data_dir = app.extensions["linkmgr_settings"].data_dir
    settings = {"LINKMGR_DATABASE_URL": dsn, "LINKMGR_DATA_DIR": data_dir, "LINKMGR_BASE_URL": BASE_URL}
    command = f"{sys.executable} -m flask --app app links export --user alice | head -n 1"
    ended = subprocess.run(
        ["/bin/sh", "-c", command], cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=True
    )
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""


@pytest.mark.usefixtures("alice")
def test_an_interrupted_import_names_the_command_that_continues_it(
    run: Command, file: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 1)
    run_batch = job.run_batch

    def interrupted(*arguments: Any) -> bool:
        if sql("SELECT FROM imports WHERE made = 1"):
            raise KeyboardInterrupt
        return run_batch(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(job, "run_batch", interrupted)
        stopped = run("import", file, "--user", "alice")
    [row] = sql("SELECT id, state FROM imports")
    assert (stopped.exit_code, row["state"]) == (130, "running")
    assert stopped.stdout == "1 rows read: 1 made, 0 updated, 0 skipped, 0 failed.\n"
    assert stopped.stderr == f"Continue with: flask --app app links import --user alice --resume {row['id']}\n"
    resumed = run("import", "--user", "alice", "--resume", row["id"])
    assert resumed.output == "3 rows read: 2 made, 0 updated, 0 skipped, 1 failed.\n"
