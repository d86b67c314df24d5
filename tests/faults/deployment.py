"""Start what the faults are injected into: a durable PostgreSQL, the service under gunicorn, and Redis."""

import http.client
import json
import os
import secrets
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from psycopg2.extensions import parse_dsn

from bench.servers import gunicorn
from linkmgr import create_app
from linkmgr.core import keys
from linkmgr.core.database import embedded, migrations
from linkmgr.core.database.embedded import Server
from linkmgr.repository import users
from tests.faults.proxy import Proxy, between
from tests.support.servers import children, redis

TARGET = "https://example.com/"
TIMEOUT = 60
_SOCKET = ".s.PGSQL.5432"
_STEP = 0.1
_CALLS = 16  # enough to reach every worker
_DISK = "192m"
_USER = """
    WITH business AS (UPDATE plans SET rate = NULL WHERE name = 'Business' RETURNING id)
    UPDATE users SET plan_id = business.id FROM business WHERE users.id = %(user_id)s
"""
_LINK = "INSERT INTO links (user_id, alias, url) VALUES (%(user_id)s, %(alias)s, %(url)s) RETURNING id"


@dataclass
class Database:
    """A PostgreSQL server. While a caller waits here, it is restarted when it dies, as the launcher does."""

    server: Server | Any  # or a cluster, whose nodes Patroni restarts
    dsn: str

    def wait(self, seconds: float) -> None:
        self.until(lambda: False, seconds)

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(OSError):
                self.server.ensure()
            if condition():
                return True
            time.sleep(_STEP)
        return False

    def postmaster(self) -> int:
        return int((self.server.data / "postmaster.pid").read_text().split()[0])

    def connect(self) -> psycopg2.extensions.connection:
        connection = psycopg2.connect(self.dsn, application_name="faults", connect_timeout=5)
        connection.autocommit = True
        return connection

    def query(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def is_available(self) -> bool:
        with suppress(psycopg2.Error):
            return bool(self.query("SELECT 1"))
        return False


@dataclass
class Deployment:
    """The service with its database and a user."""

    database: Database
    base: str
    master: int  # process id of gunicorn's master
    user_id: int
    key: str
    proxy: Proxy | None = None
    redis: int = 0  # process id

    def workers(self) -> set[int]:
        return set(children(self.master))

    def link(self, alias: str) -> int:
        [(link,)] = self.database.query(_LINK, user_id=self.user_id, alias=alias, url=TARGET)
        return int(link)


def call(target: Deployment, method: str, path: str, body: object = b"", **headers: str) -> tuple[int, bytes]:
    """Send a request of the target's user. A body that is not bytes is sent as JSON."""
    head = {"Authorization": f"Bearer {target.key}"} | {name.replace("_", "-"): text for name, text in headers.items()}
    if not isinstance(body, bytes):
        head, body = head | {"Content-Type": "application/json"}, json.dumps(body).encode()
    with closing(http.client.HTTPConnection(urlsplit(target.base).netloc, timeout=TIMEOUT)) as connection:
        connection.request(method, path, body, head)
        response = connection.getresponse()
        return response.status, response.read()


def answer(target: Deployment, method: str, path: str, body: object = b"") -> Any:
    status, answer = call(target, method, path, body)
    assert status == 200, answer[:500]
    return json.loads(answer)


def settings(database: Database) -> dict[str, str]:
    return {
        "database_url": database.dsn,
        "data_dir": str(database.server.data.parent),
        "secret_key": "faults" * 8,
        "rate_limit": "1000000000 per minute",
        "metrics_token": "faults" * 8,
    }


@contextmanager
def folder() -> Iterator[Path]:
    """Create a temporary folder that PostgreSQL's user can enter."""
    with tempfile.TemporaryDirectory(prefix="linkmgr-faults-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def postgres(where: Path) -> Iterator[Database]:
    with embedded.running(where / "postgres") as server:
        database = Database(server, embedded.dsn(where / "postgres"))
        with create_app(**settings(database)).app_context():
            migrations.upgrade(create=True)
        yield database


def register(database: Database) -> tuple[int, str]:
    with create_app(**settings(database)).app_context():
        user_id = users.next_id()
        name = f"user-{user_id}"
        key = keys.new_key(user_id)
        users.add(user_id, username=name, email=f"{name}@example.com", password_hash="none", **key)
        database.query(_USER, user_id=user_id)
        return user_id, str(users.read(user_id)["apikey"])


@contextmanager
def service(database: Database, app: str = "app:app", *, workers: str = "2", **options: str) -> Iterator[Deployment]:
    user_id, key = register(database)
    with gunicorn(app, f"--workers={workers}", **(settings(database) | options)) as (base, master):
        for _ in range(_CALLS):
            with urllib.request.urlopen(f"{base}/healthz", timeout=30):
                pass
        yield Deployment(database, base, master, user_id, key)


@contextmanager
def proxied(database: Database, where: Path, app: str = "app:app") -> Iterator[Deployment]:
    """Run the service with a proxy between it and PostgreSQL."""
    sockets = where / secrets.token_hex(4)
    sockets.mkdir()
    dsn = f"postgresql://postgres@/linkmgr?host={sockets}"
    with (
        between(sockets, Path(parse_dsn(database.dsn)["host"], _SOCKET)) as proxy,
        service(database, app, database_url=dsn) as deployment,
    ):
        deployment.proxy = proxy
        yield deployment


@contextmanager
def with_redis(database: Database, where: Path) -> Iterator[Deployment]:
    with redis(where) as (storage, server), service(database, rate_limit_storage=storage) as deployment:
        deployment.redis = server.pid
        yield deployment


@contextmanager
def small_disk(where: Path) -> Iterator[Path | None]:
    """Mount a small file system in memory. Yield None if this user may not mount."""
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=755", "linkmgr-faults", str(where)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)
