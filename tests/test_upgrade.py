"""The database is upgraded while the old version serves requests."""

import shutil
from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from click.testing import Result
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.database.statements import VERSION
from tests.conftest import MANY, ROOT, Client
from tests.support import nginx
from tests.support.clusters import ask
from tests.support.factories import Sql
from tests.support.pages import pages
from tests.support.races import meanwhile
from tests.support.servers import service
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

# Columns, types, rows and an index of the tables that requests read and write.
MIGRATION = """
    DROP SCHEMA restricted_own, restricted_domains, noted CASCADE;
    ALTER TABLE pixels ADD note text NOT NULL DEFAULT '', ALTER name TYPE varchar(1000);
    ALTER TABLE channels ALTER description TYPE varchar(1000);
    ALTER TABLE users ADD note text;
    UPDATE pixels SET note = name;
    CREATE INDEX ON pixels (note);
    SELECT create_restricted_views(), create_noted_views();
"""


def test_no_request_fails_while_the_database_is_upgraded(
    empty: str,
    flask: Callable[..., Result],
    serve: Callable[..., str],
    migrate: Callable[..., None],
    tmp_path: Path,
) -> None:
    flask("database", "create")
    flask("users", "add", "alice", "alice@example.com", "--admin")
    key = flask("users", "key", "alice").output.strip()
    old = serve("--workers=2", database_url=empty, rate_limit=MANY)
    numbers = count()

    def add(kind: str, **members: str) -> TestResponse:
        return alice.post(f"/api/{kind}/add", members | {"name": f"{kind} {next(numbers)}"})

    with nginx.running(tmp_path / "nginx", urlsplit(old).port or 0) as front:
        alice = Client(front, key)  # type: ignore[arg-type]
        calls = {
            "pixels": lambda: alice.get("/api/pixels"),
            "channels": lambda: alice.get("/api/channels"),
            "pixel": lambda: add("pixel", type="bing", tag="t"),
            "channel": lambda: add("channel"),
        }
        with meanwhile(*[lambda name=name, call=call: (name, call()) for name, call in calls.items()]) as answers:
            wait_until(lambda: len(answers) > 100)
            migrate(notes=MIGRATION)
            upgraded = flask("database", "upgrade")
            after = len(answers)
            wait_until(lambda: len(answers) > after + 100)
    assert upgraded.output == f"The database has schema {VERSION + 1}, which is up to date.\n"
    done = [name for name, answer in answers if answer.status_code == 200]
    # On a slow machine a table may be locked for longer than a request waits: 503 with Retry-After.
    assert {answer.status_code for _, answer in answers} <= {200, 503}
    assert len(done) > 0.9 * len(answers)
    for kind in ("pixel", "channel"):
        assert ask(empty, f"SELECT count(*) FROM {kind}s") == str(done.count(kind))


def test_a_running_service_reads_no_page_of_a_new_version(
    app: Flask, dsn: str, admin: Client, sql: Sql, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "linkmgr", checkout / "linkmgr")
    for name in ("app.py", "schema.sql"):
        shutil.copy2(ROOT / name, checkout)
    browser = build_opener(HTTPCookieProcessor())
    token = admin.get(f"/api/user/login/{admin.id}").get_json()["url"].rsplit("/", 1)[1]
    with service(app, dsn, tmp_path, "--workers=1", f"--chdir={checkout}") as base:
        for file in (checkout / "linkmgr").rglob("*.*"):
            if file.suffix in {".py", ".html"}:
                file.write_text("{% of a newer version %}")
        browser.open(f"{base}/login/{token}", data=b"")
        for path in ("/api/docs", "/account", *pages(app, sql, admin.id)):
            assert browser.open(base + path).status == HTTPStatus.OK, path
