"""The programs of /api/docs/first-program, as a reader runs them after a copy."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from re import DOTALL, findall

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.busy import busy_at_first
from tests.support.factories import Sql
from tests.support.receivers import Deliver, Receiver, subscribe

LINKS = 205  # three pages
RATE = "1 per 2 seconds"
VERIFY = {  # programs that call the last function with a secret, headers and a body
    "py": "import json, sys; from first_program import *; "
    "print(json.dumps(is_genuine(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3].encode())))",
    "mjs": 'import { isGenuine } from "./first_program.mjs"; const [, secret, headers, body] = process.argv;'
    "console.log(isGenuine(secret, JSON.parse(headers), body))",
    "php": 'require "first_program.php";echo json_encode(is_genuine($argv[1], json_decode($argv[2], true), $argv[3]));',
}
COMMANDS = {"py": [sys.executable, "-c"], "mjs": ["node", "--input-type=module", "-e"], "php": ["php", "-r"]}
OTHERS = [pytest.param(ending, marks=pytest.mark.clients) for ending in ("mjs", "php")]


def output(*command: str | Path, folder: Path, **environment: str) -> str:
    environ = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(app: Flask, tmp_path: Path) -> Path:
    """A folder with the programs of the page."""
    page = app.test_client().get("/api/docs/first-program").text
    texts = findall(r'<pre class="text"[^>]+aria-label="(?:Command for|Program in) \w+">(.*?)</pre>', page, DOTALL)
    for command, text in zip(texts[::2], texts[1::2], strict=True):
        (tmp_path / command.split()[-1]).write_text(unescape(text))
    return tmp_path


@pytest.mark.services
@pytest.mark.parametrize("ending", ["py", *OTHERS])
def test_a_program_creates_one_link_and_lists_all_whatever_is_busy(
    ending: str, folder: Path, on_plan: Callable[..., Client], serve: Callable[..., str], sql: Sql
) -> None:
    user = on_plan()
    for _ in range(LINKS):
        factories.link(sql, user.id)
    base = serve("--workers", "1", rate_limit=RATE)
    with busy_at_first(base) as proxy:
        program = folder / f"first_program.{ending}"
        printed = output(COMMANDS[ending][0], program, folder=folder, BASE=proxy, KEY=user.key or "")
    created, listed = printed.splitlines()
    assert created.startswith(f"{base}/")
    assert listed == f"{LINKS + 1} links", "its request was repeated, and carried out once"


@pytest.mark.parametrize("ending", ["py", *OTHERS])
def test_a_program_verifies_a_webhook_and_refuses_a_changed_and_an_old_one(
    ending: str, folder: Path, alice: Client, receiver: Receiver, deliver: Deliver
) -> None:
    _, secret = subscribe(alice, receiver.url)
    alice.add("/api/url/add", {"url": "https://example.com/ü"})
    deliver()
    [sent] = receiver.received
    old = {"webhook-timestamp": str(int(sent.headers["webhook-timestamp"]) - 600)}
    for headers, body, expected in (
        (sent.headers, sent.body, True),
        (sent.headers | {"webhook-signature": f"v1,AAAA {sent.headers['webhook-signature']}"}, sent.body, True),
        (sent.headers, sent.body.replace(b"example", b"exampel"), False),
        (sent.headers | {"webhook-signature": "v1,AAAA"}, sent.body, False),
        (sent.headers | old, sent.body, False),
    ):
        arguments = secret, json.dumps(headers), body.decode()
        assert json.loads(output(*COMMANDS[ending], VERIFY[ending], *arguments, folder=folder)) is expected
