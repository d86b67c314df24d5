"""A database that responds late or with an error is reported as busy, not as unavailable."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg2
import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.conftest import Client

pytestmark = pytest.mark.slow

PIXEL = {"type": "bing", "name": "Shop", "tag": "1"}
BUSY = "The database is too busy or short of resources. Try again in 2 seconds."
Raw = psycopg2.extensions.connection


@contextmanager
def failing(raw: Raw, statement: str) -> Iterator[None]:
    """Run a PL/pgSQL statement before each pixel is stored."""
    with raw.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {statement}; RETURN NEW; END $$;
            CREATE TRIGGER fail BEFORE INSERT ON pixels FOR EACH ROW EXECUTE FUNCTION fail();
            """
        )
        try:
            yield
        finally:
            cursor.execute("DROP FUNCTION fail CASCADE")


def is_busy(answer: TestResponse, log: str, sqlstate: str) -> bool:
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.get_json().items() >= {"error": 1, "message": BUSY, "code": "busy"}.items()
    assert sqlstate in log
    return True


def test_a_write_that_waits_too_long_for_a_lock(alice: Client, raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL)
    raw.autocommit = False
    with raw.cursor() as cursor:
        cursor.execute("SELECT FROM pixels WHERE id = %s FOR UPDATE", (pixel_id,))
        answer = alice.put(f"/api/pixel/{pixel_id}/update", {"name": "New", "tag": "1"})
        assert alice.get(f"/api/pixel/{pixel_id}").status_code == 200, "reads do not wait"
    raw.rollback()
    assert is_busy(answer, caplog.text, "55P03")
    assert alice.put(f"/api/pixel/{pixel_id}/update", {"name": "New", "tag": "1"}).status_code == 200


def test_a_statement_past_its_timeout(alice: Client, raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    with failing(raw, "PERFORM pg_sleep(10)"):
        answer = alice.post("/api/pixel/add", PIXEL)
    assert is_busy(answer, caplog.text, "57014")
    assert alice.post("/api/pixel/add", PIXEL).status_code == 200


@pytest.mark.parametrize(
    "sqlstate",
    ["40P01", "40001", "25P03", "53000", "53100", "53200", "58030"],
    ids=["deadlock", "serialization", "idle", "resources", "disk full", "memory", "I/O error"],
)
def test_an_error_that_a_retry_may_not_meet(
    alice: Client, raw: Raw, caplog: pytest.LogCaptureFixture, sqlstate: str
) -> None:
    with failing(raw, f"RAISE EXCEPTION 'simulated' USING ERRCODE = '{sqlstate}'"):
        answer = alice.post("/api/pixel/add", PIXEL)
    assert is_busy(answer, caplog.text, sqlstate)
    assert "simulated" not in answer.text


@pytest.mark.parametrize("sqlstate", ["57P01", "57P02", "57P03", "25006"])
def test_a_server_that_accepts_no_statements_is_unavailable(
    alice: Client, raw: Raw, caplog: pytest.LogCaptureFixture, sqlstate: str
) -> None:
    with failing(raw, f"RAISE EXCEPTION 'simulated' USING ERRCODE = '{sqlstate}'"):
        answer = alice.post("/api/pixel/add", PIXEL)
    assert (answer.status_code, answer.get_json()["code"]) == (503, "unavailable")
    assert sqlstate in caplog.text


def test_a_page_says_that_the_database_is_busy(app: Flask, alice: Client, raw: Raw) -> None:
    made = alice.post("/api/url/add", {"url": "https://example.com/"}).get_json()["shorturl"]
    path = "/" + made.rpartition("/")[2]
    raw.autocommit = False
    with raw.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("LOCK links IN ACCESS EXCLUSIVE MODE")
        answer = pool.submit(app.test_client().get, path).result()
    raw.rollback()
    assert (answer.status_code, answer.mimetype, answer.headers["Retry-After"]) == (503, "text/html", "2")
    assert BUSY in answer.text


def test_no_connection_is_unavailable(app_with: Callable[..., Flask]) -> None:
    lost = Client(app_with(database_url="postgresql://postgres@127.0.0.1:1/linkmgr").test_client(), "key")
    assert lost.get("/api/account").get_json()["code"] == "unavailable"
