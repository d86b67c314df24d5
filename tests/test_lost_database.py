"""A lost or read-only database is reported as unavailable, and requests recover as soon as it is back."""

import socket
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

import psycopg2
import pytest
from flask import Flask
from psycopg2.extensions import parse_dsn

from linkmgr.core.database import deadlines, statements
from linkmgr.core.database.statements import Database
from tests.conftest import Client
from tests.support.races import at_once
from tests.support.targets import wait_until

PIXEL = {"type": "bing", "name": "n", "tag": "t"}


@pytest.fixture
def failing_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make the next statement that contains the text fail with the bare base class, as psycopg2 sometimes does."""
    once = Database._execute_once

    def fail(text: str) -> None:
        failed: list[str] = []

        def lose(self: Database, sql: str, params: Any, prelude: str, **options: Any) -> Any:
            if text in sql and not failed:
                failed.append(sql)
                raise psycopg2.DatabaseError("server closed the connection unexpectedly")
            return once(self, sql, params, prelude, **options)

        monkeypatch.setattr(Database, "_execute_once", lose)

    return fail


def test_a_read_is_retried_after_a_connection_loss_without_a_specific_error(
    alice: Client, failing_once: Callable[[str], None]
) -> None:
    failing_once("FROM pixels")
    assert alice.get("/api/pixels").status_code == 200


def test_a_write_is_not_retried_and_returns_503(alice: Client, failing_once: Callable[[str], None]) -> None:
    failing_once("INSERT INTO pixels")
    assert alice.post("/api/pixel/add", PIXEL).status_code == 503
    assert alice.get("/api/pixels").get_json()["data"]["result"] == 0


def test_a_read_only_database_is_unavailable_until_it_accepts_writes(
    make_app: Callable[..., Flask], alice: Client, raw: psycopg2.extensions.connection
) -> None:
    standby = Client(make_app().test_client(), alice.key)
    with raw.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        [name] = cursor.fetchone() or [""]
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            assert standby.post("/api/pixel/add", PIXEL).status_code == 503
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert standby.post("/api/pixel/add", PIXEL).status_code == 200


def test_the_last_used_connection_is_reused_first_by_any_thread(app: Flask) -> None:
    def process(_number: int) -> Any:
        with app.app_context():
            return statements.rows("SELECT pg_backend_pid() AS pid")[0]["pid"]

    with app.app_context():
        used = statements.database()
        used._idle[:] = [used._open(), used._open()]
    assert len({at_once(1, process)[0] for _ in range(5)}) == 1


def test_a_connection_left_in_a_transaction_is_not_reused(app: Flask) -> None:
    class Cursor(psycopg2.extensions.cursor):
        def execute(self, *arguments: Any) -> None:
            super().execute("BEGIN")
            super().execute(*arguments)

    with app.app_context():
        statements.rows("SELECT 1")
        left = statements.database()._idle[-1].connection
        left.cursor_factory = Cursor
        statements.rows("SELECT 1")
        assert left.closed
        assert statements.rows("SELECT 1 AS found") == [{"found": 1}]


def test_a_read_is_retried_on_a_new_connection_when_the_unused_ones_are_dead(
    app: Flask, raw: psycopg2.extensions.connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app.app_context():
        used = statements.database()
        used._idle[:] = [used._open(), used._open()]
        monkeypatch.setattr(Database, "close_idle", lambda _self: None)
        with raw.cursor() as cursor:
            for kept in used._idle:
                cursor.execute("SELECT pg_terminate_backend(%s)", [kept.connection.info.backend_pid])
        assert statements.rows("SELECT 1 AS found") == [{"found": 1}]
        monkeypatch.undo()
        used.close_idle()  # other tests use the same connections


@pytest.fixture
def hanging() -> Iterator[list[int]]:
    """The ports of two servers that accept connections and never respond."""
    any_port = ("127.0.0.1", 0)
    with socket.create_server(any_port) as first, socket.create_server(any_port) as second:
        yield [first.getsockname()[1], second.getsockname()[1]]


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("host", ["localhost", "balancer.example.net"])
def test_health_does_not_wait_for_each_host_that_hangs(
    make_app: Callable[..., Flask], dsn: str, hanging: list[int], host: str
) -> None:
    third = parse_dsn(dsn)
    hosts = f"127.0.0.1,127.0.0.1,{third['host']}"
    ports = ",".join(map(str, [*hanging, third["port"]]))
    several = urlencode(third | {"host": hosts, "port": ports})
    service = make_app(database_url=f"postgresql:///?{several}")

    def check(_: int) -> tuple[int, float]:
        began = time.monotonic()
        status = service.test_client().get("/healthz", headers={"Host": host}).status_code
        return status, time.monotonic() - began

    answers = at_once(8, check)
    assert {status for status, _ in answers} == {503}
    assert max(seconds for _, seconds in answers) < 3.5  # libpq waits for two seconds for each
    wait_until(lambda: check(0)[0] == 200)


def test_connections_that_are_made_at_once_share_one_thread_for_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    start, begun, is_over = Thread.start, [], Event()

    def check() -> None:
        begun.append(1)
        is_over.wait()

    def start_slowly(thread: Thread) -> None:
        if thread.daemon:
            time.sleep(0.05)  # meanwhile the others look for one
        start(thread)

    monkeypatch.setattr(deadlines, "_thread", Thread())
    monkeypatch.setattr(deadlines, "_check", check)
    monkeypatch.setattr(Thread, "start", start_slowly)
    at_once(8, lambda _: deadlines.start(), threads=8)
    is_over.set()
    assert begun == [1]
