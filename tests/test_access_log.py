"""The access log: one line of JSON for each request, and the request id shared by response and logs."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.logging import default_handler

from linkmgr.db.statements import Database
from tests.conftest import Client
from tests.support.raw_http import TOKEN, send

MADE = re.compile("[0-9a-f]{16}")


class Log:
    def __init__(self, base: str, file: Path) -> None:
        self.base, self.file = base, file
        self.before = len(file.read_text())

    def ask(self, path: str, **headers: str) -> tuple[int, dict[str, str]]:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n".encode("latin-1")
        status, answered, _ = send(self.base, request)
        return status, answered

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of the test. gunicorn writes each before it closes the connection."""
        written = self.file.read_text()[self.before :]
        found = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
        return [line for line in found if line["path"] != "/healthz"]


@pytest.fixture
def log(base: str, logs: Path) -> Log:
    [file] = logs.iterdir()
    return Log(base, file)


def test_a_line_describes_the_request_and_the_response(log: Log, alice: Client) -> None:
    log.ask("/api/account?short=hidden", Authorization=f"Bearer {alice.key}", X_Request_Id="of-the.client_1")
    log.ask("/nothing")
    known, unknown = log.lines()
    assert datetime.fromisoformat(known.pop("time")).tzinfo
    assert 0 < known.pop("microseconds") < 60_000_000
    assert known == {
        "method": "GET", "path": "/api/account", "status": 200, "user": alice.id, "request": "of-the.client_1",
    }  # fmt: skip
    assert (unknown["status"], unknown["user"]) == (404, None)
    assert MADE.fullmatch(unknown["request"])


def test_no_path_breaks_its_line_or_logs_a_secret(log: Log, alice: Client) -> None:
    paths = {
        '/a"b': "/a%22b",
        "/a%0D%0Ab": "/a%0D%0Ab",
        "/a%250Ab": "/a%250Ab",
        "/a%20b": "/a%20b",
        "/caf%C3%A9%E2%80%A8": "/caf%C3%A9%E2%80%A8",
        f"/login/{TOKEN}": "/login/-",
        f"/%6Cogin/{TOKEN}": "/login/-",
        f"/api/linkmgr_{TOKEN}?{TOKEN}": "/api/-",
    }
    for path in paths:
        log.ask(path)
    assert [line["path"] for line in log.lines()] == list(paths.values())


def test_gunicorns_own_responses_have_a_line_and_an_id_too(log: Log) -> None:
    for request in (b"NONSENSE\r\n\r\n", b"GET /api/account HTTP/1.1\r\nBad Name: 1\r\n\r\n"):
        status, headers, _ = send(log.base, request)
        line = log.lines()[-1]
        assert MADE.fullmatch(headers["X-Request-Id"])
        assert (line["status"], line["request"]) == (status, headers["X-Request-Id"])
    assert len(log.lines()) == 2


def test_a_valid_request_id_is_accepted_and_any_other_replaced(app: Flask) -> None:
    client = app.test_client()
    for given in ("a", "0f-Z_.9", "linkmgr", "x" * 39, "1f0f0a2e-8a0e-4b6e-9d6c-2f4f1c1d2e3f"):
        assert client.get("/nothing", headers={"X-Request-Id": given}).headers.getlist("X-Request-Id") == [given]
    secrets = (f"linkmgr_{TOKEN}", TOKEN, "linkmgr_x", "of.linkmgr_x", f"lmk_{TOKEN}"[:39], "x" * 40, "x" * 64)
    for given in ("", "a b", "\xe9", "a,b", '"', "٣", *secrets):
        answer = client.get("/api", headers={"X-Request-Id": given.encode().decode("latin-1")})
        [made] = answer.headers.getlist("X-Request-Id")
        assert MADE.fullmatch(made)
    assert client.get("/").headers["X-Request-Id"] != client.get("/").headers["X-Request-Id"]


def test_a_bug_is_logged_with_the_id_of_its_response(
    app: Flask, alice: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(Database, "execute", fail)
    answer = alice.http.get("/api/account", headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.headers["X-Request-Id"]) == (500, "mine")
    [record] = caplog.records
    assert record.message == "GET /api/account failed"
    with app.test_request_context(environ_base={"linkmgr.request_id": "mine"}):
        first, *trace = default_handler.format(record).splitlines()
    assert first.endswith("GET /api/account failed [request mine]")
    assert trace[-1] == "LookupError: a bug"
