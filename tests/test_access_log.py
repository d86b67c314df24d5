"""The access log: one line of JSON for each request, and the request id shared by response and logs."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.logging import default_handler

from linkmgr.core.database.statements import Database
from linkmgr.core.web.request import logged_address
from tests.conftest import ROOT, Client
from tests.support.factories import Sql
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
        "method": "GET", "path": "/api/account", "status": 200, "user": alice.id, "key": None,
        "request": "of-the.client_1",
    }  # fmt: skip
    assert (unknown["status"], unknown["user"]) == (404, None)
    assert MADE.fullmatch(unknown["request"])


def test_addresses_are_logged_on_demand_and_fail2ban_finds_those_that_guess(
    serve: Callable[..., str], tmp_path: Path, alice: Client, make_key: Callable[..., Client], sql: Sql
) -> None:
    if not shutil.which("fail2ban-regex"):
        pytest.skip("fail2ban is missing: apt-get install fail2ban")
    base = serve("--workers", "1", log_addresses="full", trusted_proxies="1")
    log = Log(base, next(tmp_path.glob("*.log")))
    key, [scoped] = make_key(alice, scopes=["*"]), sql("SELECT id FROM api_keys")
    log.ask("/api/account", Authorization=f"Bearer {key.key}", X_Forwarded_For="2001:db8:1:2::3")
    log.ask("/api/account", Authorization="Bearer wrong", X_Forwarded_For="192.0.2.7:4711")
    log.ask("/", X_Forwarded_For="not-an-address")
    body = b"email=alice&password=wrong"
    head = "POST /login HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.8\r\nConnection: close\r\n"
    form = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    assert send(base, (head + form).encode() + body)[0] == 401
    lines = log.lines()
    assert [line["address"] for line in lines] == ["2001:db8:1:2::3", "192.0.2.7", None, "192.0.2.8"]
    assert [line["key"] for line in lines] == [scoped["id"], None, None, None]
    command = ["fail2ban-regex", "--out", "ip", str(log.file), str(ROOT / "deploy/fail2ban/filter.conf")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [
        "192.0.2.7",
        "192.0.2.8",
    ]


@pytest.mark.parametrize(("address", "network"), [("1.2.3.4", "1.2.3.0/24"), ("2001:db8:1:2::3", "2001:db8:1::/48")])
def test_a_network_can_be_logged_instead(address: str, network: str) -> None:
    assert logged_address({"REMOTE_ADDR": address}, is_full=False) == network


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
