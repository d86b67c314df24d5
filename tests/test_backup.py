"""Dumps taken under load, and the services restored from them."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr import demo
from linkmgr.core.database import binaries
from tests.conftest import MANY, ROOT, Client
from tests.support.factories import Sql
from tests.support.schemas import execute
from tests.support.servers import children
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def script(app: Flask, dsn: str) -> Script:
    """Run deploy/backup or deploy/restore on the database of the tests, or on another."""

    def run(name: str, *arguments: object, database_url: str = dsn, **settings: str) -> Any:
        given = {"DATABASE_URL": database_url, "DATA_DIR": app.extensions["linkmgr_settings"].data_dir} | settings
        return subprocess.run(
            [ROOT / "deploy" / name, *map(str, arguments)],
            env=os.environ | {"PYTHON": sys.executable} | {f"LINKMGR_{each}": value for each, value in given.items()},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def command(make_app: Callable[..., Flask]) -> Callable[..., str]:
    """Run the command of a script without a process of its own. Return what it prints last."""

    def run(name: str, file: Path, database_url: str, *, code: int = 1) -> str:
        result = make_app(database_url=database_url).test_cli_runner().invoke(args=["database", name, str(file)])
        assert (result.exit_code, "Traceback" in result.output) == (code, False), result.output
        return str(result.output.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def dump(script: Script, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    assert script("backup", folder).returncode == 0
    [file] = folder.iterdir()
    return file


@pytest.fixture
def empty(dsn: str, raw: psycopg2.extensions.connection) -> Iterator[str]:
    """An empty database next to that of the tests."""
    with raw.cursor() as cursor:
        cursor.execute("CREATE DATABASE restored TEMPLATE template0")
        yield dsn.replace("/linkmgr?", "/restored?")
        cursor.execute("DROP DATABASE restored WITH (FORCE)")


@pytest.fixture
def busy(register: Callable[..., Client], sql: Sql) -> Client:
    """An administrator on a plan without its own rate, so that the setting applies."""
    sql("INSERT INTO plans (name, free, limits) SELECT 'Many', false, limits FROM plans WHERE name = 'Pro' RETURNING 1")
    return register("busy", admin=True, plan="Many")


def call(base: str, key: str | None, path: str, members: dict[str, Any] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if members is None else json.dumps(members).encode()
    with urllib.request.urlopen(urllib.request.Request(base + path, data, headers), timeout=60) as answer:
        return json.loads(answer.read())


class Writer(threading.Thread):
    """Add QR codes or pixels one by one, and remember those that were acknowledged."""

    def __init__(self, base: str, key: str | None, kind: str, members: dict[str, str]) -> None:
        super().__init__()
        self.base, self.key, self.kind, self.members = base, key, kind, members
        self.acknowledged: list[int] = []
        self.ending = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ending.is_set():
            made = call(self.base, self.key, f"/api/{self.kind}/add", self.members | {"name": f"{self.kind} of many"})
            self.acknowledged.append(made["id"])


def listed(base: str, key: str | None, path: str, name: str) -> set[int]:
    first = call(base, key, f"{path}?limit=1000")["data"]
    pages = [call(base, key, f"{path}?limit=1000&page={page + 1}")["data"] for page in range(first["maxpage"])]
    return {row["id"] for page in pages for row in page[name]}


def contents(folder: Path) -> list[str]:
    """Return the statements and rows of the dump in a folder, in an order that does not depend on that of the rows."""
    [file] = folder.iterdir()
    command = [str(binaries.find_clients(18) / "pg_restore"), "--file=-", str(file)]
    text = subprocess.check_output(command, text=True)
    # PostgreSQL invents keys and the names of NOT NULL.
    return sorted(re.sub(r"restrict \w+|CONSTRAINT \w+_not_null\d* (?=NOT NULL)", "", text).splitlines())


@pytest.fixture
def seeded(app: Flask, drop_past_months: None) -> None:
    with app.app_context():
        demo.seed(with_demo=True)


@pytest.mark.usefixtures("seeded")
def test_a_dump_under_load_restores_into_an_equal_service(
    serve: Callable[..., str], busy: Client, script: Script, empty: str, tmp_path: Path
) -> None:
    settings = {"rate_limit": MANY, "base_url": "https://go.example.org", "serve_loopback": "1"}
    base = serve("--workers", "1", **settings)
    own = call(base, busy.key, "/api/key/add", {"name": "Own", "scopes": ["*"], "own_only": True})["key"]
    own_code = call(base, own, "/api/qr/add", {"type": "text", "data": "own"})["id"]
    writers = [
        Writer(base, busy.key, "pixel", {"type": "bing", "tag": "1"}),
        Writer(base, busy.key, "qr", {"type": "text", "data": "hello"}),
    ]
    try:
        wait_until(lambda: all(len(writer.acknowledged) > 50 for writer in writers))
        before = [list(writer.acknowledged) for writer in writers]
        dumped = script("backup", tmp_path / "dumps")
        during = [len(writer.acknowledged) - len(seen) for writer, seen in zip(writers, before, strict=True)]
    finally:
        for writer in writers:
            writer.ending.set()
        for writer in writers:
            writer.join()
    assert dumped.returncode == 0, dumped.stderr
    assert min(during) > 0, "there was load during the dump"
    [file] = (tmp_path / "dumps").iterdir()
    assert dumped.stdout == f"The database has been dumped to {file} ({file.stat().st_size:,} bytes).\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    restored = script("restore", file, database_url=empty)
    assert restored.returncode == 0, restored.stderr
    assert "which is up to date" in restored.stdout
    assert script("backup", tmp_path / "again", database_url=empty).returncode == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "dumps")
    again = serve("--workers", "1", database_url=empty, **settings)
    for acknowledged, path, name in zip(before, ("/api/pixels", "/api/qr"), ("pixels", "qrs"), strict=True):
        assert set(acknowledged) <= listed(again, busy.key, path, name)
    assert listed(again, own, "/api/qr", "qrs") == {own_code}, "the dump has the views of such keys"
    assert call(again, busy.key, f"/api/user/{busy.id}") == call(base, busy.key, f"/api/user/{busy.id}")
    assert call(again, busy.key, "/api/pixel/add", {"type": "bing", "name": "new", "tag": "1"})["error"] == 0


def test_only_the_newest_dumps_are_kept(script: Script, app: Flask, tmp_path: Path) -> None:
    for hour in range(3):
        (tmp_path / f"linkmgr-20200101T0{hour}0000Z.dump").touch()
    (tmp_path / "another file").touch()
    older = tmp_path / "monthly/linkmgr-20190101T000000Z.dump"
    older.parent.mkdir()
    older.touch()
    running, interrupted = (tmp_path / f"linkmgr-2020010{day}T000000Z.dump.part" for day in (3, 4))
    running.touch()
    interrupted.touch()
    os.utime(interrupted, (0, 0))
    assert script("backup", tmp_path, 2).returncode == 0
    assert running.exists(), "another backup may write it"
    running.unlink()
    kept = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert older.exists(), "files in a folder there belong to another program"
    assert (kept[0], kept[1]) == ("another file", "linkmgr-20200101T020000Z.dump")
    assert len(kept) == 3


def test_a_failed_dump_or_restore_is_reported_in_one_sentence(
    script: Script, command: Callable[..., str], dump: Path, empty: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.dump").write_text("nonsense")
    (tmp_path / "cut.dump").write_bytes(dump.read_bytes()[:-1000])
    (tmp_path / "file").touch()
    for name, file, database, sentence in [
        ("restore", "broken.dump", empty.replace("restored", "linkmgr"), "The database is not empty: restore into an "),
        ("restore", "broken.dump", empty, "pg_restore failed: pg_restore: error: "),
        ("restore", "no.dump", empty, 'no.dump": No such file or directory.'),
        ("restore", "cut.dump", empty, "has a part of the dump: create it anew, then "),
        ("backup", "d", empty.replace("restored", "none"), "The database cannot be "),
    ]:
        assert sentence in command(name, tmp_path / file, database)
    refused = script("backup", tmp_path / "file")
    assert (refused.returncode, "File exists" in refused.stderr) == (1, True)
    assert list(tmp_path.glob("**/*.part")) == []
    assert execute(empty, "SELECT FROM service") == [], "the service refuses a part of a dump"


def test_a_failed_restore_names_the_first_error_and_what_to_do(
    command: Callable[..., str], dump: Path, empty: str, raw: psycopg2.extensions.connection, tmp_path: Path
) -> None:
    newer = tmp_path / "newer.dump"
    content = dump.read_bytes()
    newer.write_bytes(b"PGDMP\x01\x63" + content[7:])  # version 1.99 of the format
    refused = command("restore", newer, empty)
    assert "error: unsupported version (1.99) in file header. The dump is of a later PostgreSQL than" in refused
    with psycopg2.connect(empty) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE pixels ()")
    connection.close()
    refused = command("restore", dump, empty)
    assert refused.endswith(': ERROR:  relation "pixels" already exists.')
    with raw.cursor() as cursor:
        cursor.execute("CREATE ROLE reader LOGIN")
        try:
            user = empty.replace("user=postgres", "user=reader").replace("//postgres@", "//reader@")
            refused = command("restore", dump, user)
        finally:
            cursor.execute("DROP ROLE reader")
    assert "ERROR:  permission denied for database restored. Grant the role of the service CREATE on" in refused


def test_a_dump_restores_where_the_extensions_of_the_search_are_refused(
    command: Callable[..., str], dump: Path, empty: str
) -> None:
    execute(empty, "CREATE SCHEMA elsewhere; CREATE EXTENSION pg_trgm SCHEMA elsewhere")
    assert "which is up to date. Searches read all links" in command("restore", dump, empty, code=0)


def test_a_dump_that_is_terminated_leaves_nothing(
    app: Flask, dsn: str, raw: psycopg2.extensions.connection, sql: Sql, tmp_path: Path
) -> None:
    data_dir = app.extensions["linkmgr_settings"].data_dir
    environment = os.environ | {"LINKMGR_DATABASE_URL": dsn, "LINKMGR_DATA_DIR": data_dir}
    command = [sys.executable, "-m", "flask", "--app", "app", "database", "backup", str(tmp_path / "dump")]
    with raw.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE pixels")
        running = subprocess.Popen(command, cwd=ROOT, env=environment)
        wait_until(lambda: sql("SELECT FROM pg_stat_activity WHERE application_name = 'pg_dump'"))
        [program] = children(running.pid)
        running.terminate()
        assert running.wait(60) == 128 + signal.SIGTERM
        cursor.execute("ROLLBACK")
    wait_until(lambda: not Path(f"/proc/{program}").exists())
    assert list(tmp_path.iterdir()) == []


def test_the_private_postgresql_is_dumped_and_restored_running_or_stopped(script: Script, tmp_path: Path) -> None:
    def private(name: str, folder: str, *arguments: object) -> str:
        done = script(name, *arguments, database_url="", DATA_DIR=str(tmp_path / folder))
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "old").mkdir()
    created = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", "database", "create"],
        env=os.environ | {"LINKMGR_DATA_DIR": str(tmp_path / "old")},
        cwd=ROOT,
        check=True,
    )
    assert created.returncode == 0
    private("backup", "old", tmp_path / "dumps")
    [file] = (tmp_path / "dumps").iterdir()
    assert "which is up to date" in private("restore", "new", file)


def test_the_programs_are_of_the_server_version_or_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in (15, 17, 18):
        folder = tmp_path / str(version)
        folder.mkdir()
        (folder / "pg_dump").write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}.1 (Debian {version}.1-1)'")
        (folder / "pg_dump").chmod(0o755)
    monkeypatch.setattr(binaries, "_binary_folders", lambda: sorted(tmp_path.iterdir()))
    found = {server: binaries.find_clients(server).name for server in (15, 16, 17)}
    assert found == {15: "15", 16: "17", 17: "17"}
    with pytest.raises(SystemExit, match="postgresql-client-19"):
        binaries.find_clients(19)
