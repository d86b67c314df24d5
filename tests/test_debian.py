"""Debian's PostgreSQL with its own configuration: the oldest server that is supported, and one that compiles statements
(`jit`). The other tests use the newest, which is that of the wheel."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.conftest import ROOT
from tests.support.clusters import ask
from tests.support.races import at_once
from tests.support.schemas import execute
from tests.support.servers import free_port, serving
from tests.support.targets import FIREFOX, wait_until

pytestmark = pytest.mark.services

# Tests of statements whose plans matter, and of functions that the oldest server may not have
FILES = ("conversion_plans", "empty_tables", "jobs", "purge", "rollups", "visit_batches", "visits")
VISITS = 1000


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Run a cluster as Debian creates it, and return the URL of its server."""
    if not shutil.which("pg_virtualenv"):
        pytest.skip("pg_virtualenv is missing: apt-get install postgresql")
    script = 'echo "URL postgresql://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT"; cat'  # runs until its input ends
    with subprocess.Popen(
        ["pg_virtualenv", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        assert running.stdin
        url = next(line.removeprefix("URL ").strip() for line in running.stdout if line.startswith("URL "))
        assert ask(f"{url}/postgres", "SHOW jit") == "on"
        yield url
        running.stdin.close()
        running.stdout.read()


def test_an_installation_as_documented_has_1000_visits_within_five_seconds(cluster: str, tmp_path: Path) -> None:
    server = urlsplit(cluster)
    environment = dict(os.environ)
    for name in ("username", "password", "hostname", "port"):
        environment[f"PG{name.removesuffix('name').upper()}"] = str(getattr(server, name))
    installation = (ROOT / "deploy/README.md").read_text().partition("## Install on Debian")[2].partition("\n## ")[0]

    def run(pattern: str, prefix: str) -> str:
        """Run the documented commands that match, with a prefix in place of what comes before."""
        commands = re.findall(rf"^    (?:runuser -u postgres -- |deploy/)({pattern}.*)$", installation, re.MULTILINE)
        assert commands
        options: Any = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
        outputs = [subprocess.run(["sh", "-c", f"{prefix}{command}"], check=True, **options) for command in commands]
        return "".join(output.stdout for output in outputs)

    run("create(?:user|db) ", "")
    execute(f"{cluster}/linkmgr", "ALTER ROLE linkmgr PASSWORD 'its own'")
    url = f"postgresql://linkmgr:its%20own@{server.hostname}:{server.port}/linkmgr"
    settings = {"database_url": url, "data_dir": str(tmp_path / "data"), "link_check": "0", "domain_check": "off"}
    environment |= {f"LINKMGR_{name.upper()}": value for name, value in settings.items()}
    environment["email"] = "admin@example.com"
    [key] = re.findall(r"linkmgr_\S+", run("flask (?:database|users) ", f"{sys.executable} -m "))
    port = free_port()
    base_url = f"http://127.0.0.1:{port}"
    with serving(port, tmp_path / "log", base_url=base_url, rate_limit="10000 per minute", **settings) as base:

        def call(path: str, body: dict[str, str] | None = None) -> dict[str, object]:
            data = json.dumps(body).encode() if body else None
            with urlopen(Request(f"{base}/api/{path}", data, {"Authorization": f"Bearer {key}"})) as answer:
                return dict(json.load(answer))

        def visit(number: int) -> None:
            connection = HTTPConnection("127.0.0.1", port)
            for _ in range(number):
                connection.request("GET", "/here", headers={"User-Agent": FIREFOX})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 302
            connection.close()

        link = call("url/add", {"url": "https://example.com/", "custom": "here"})["id"]
        visit(10)
        wait_until(lambda: '"clicks": 10' in json.dumps(call(f"url/{link}")))
        # Autovacuum does so after a minute. Then plans seem expensive enough to be compiled.
        subprocess.run(["vacuumdb", "--analyze", "linkmgr"], check=True, env=environment, capture_output=True)
        at_once(10, lambda _: visit(VISITS // 10))
        ended = time.monotonic()
        wait_until(lambda: f'"clicks": {VISITS + 10}' in json.dumps(call(f"url/{link}")))
        assert time.monotonic() - ended < 5


def test_what_depends_on_plans_passes_on_the_oldest_server(cluster: str) -> None:
    for statement in ("DROP DATABASE IF EXISTS linkmgr", "CREATE DATABASE linkmgr TEMPLATE template0 ENCODING UTF8"):
        execute(f"{cluster}/postgres", statement)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    server = urlsplit(cluster)
    query = f"host={server.hostname}&port={server.port}&user={server.username}&password={server.password}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/test_{name}.py" for name in FILES)],
        cwd=ROOT,
        env=environment | {"TEST_DATABASE_URL": f"postgresql:///linkmgr?{query}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
