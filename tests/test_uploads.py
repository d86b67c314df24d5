"""Large files under gunicorn: they are read by a thread, and their clients do not block others."""

import json
import select
import time
from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.core.error_catalogue import CATALOGUE
from tests.conftest import MANY, Client
from tests.support.factories import Sql
from tests.support.imported import sale, shlink
from tests.support.pages import signed_in
from tests.support.raw_http import BOUND, chunk, many, opened, responses, seconds_for
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

SIZE = 40_000  # rows


@pytest.fixture
def base(unlimited: str) -> str:
    return unlimited


def head(client: Client, framing: str) -> bytes:
    lines = ["POST /api/imports HTTP/1.1", "Host: localhost", f"Authorization: Bearer {client.key}",
             "Content-Type: text/csv", framing, "", ""]  # fmt: skip
    return "\r\n".join(lines).encode()


@pytest.fixture(scope="module")
def file() -> bytes:
    return shlink(*(sale(f"row-{n}") for n in range(SIZE)))


def test_a_large_file_arrives_with_and_without_its_length(base: str, alice: Client, file: bytes, sql: Sql) -> None:
    framings = (
        head(alice, f"Content-Length: {len(file)}") + file,
        head(alice, "Transfer-Encoding: chunked")
        + b"".join(chunk(file[at : at + 100_000]) for at in range(0, len(file), 100_000))
        + chunk(b""),
    )
    for sent in framings:
        with opened(base) as connection:
            connection.sendall(sent)
            [(status, body)] = responses(connection, 1)
        assert (status, json.loads(body)["message"]) == (200, "Import has been queued.")
        [stored] = sql(
            """
            SELECT size, (SELECT sum(length(content))::bigint FROM import_rows
                           WHERE import_id = id AND place < 0) AS stored
              FROM imports ORDER BY id DESC LIMIT 1
            """
        )
        assert stored["size"] == len(file) < stored["stored"], "the chunks are encrypted"


def test_a_refused_upload_is_answered_before_it_ends(base: str, alice: Client, sql: Sql) -> None:
    stranger = Client(alice.http, "linkmgr_" + "x" * 43)
    for sent, code in (
        (head(stranger, "Content-Length: 50000000"), "key_unknown"),
        (head(alice, "Content-Length: 100000000"), "file_too_large"),
        (head(alice, "Content-Length: 100000000000000"), "file_too_large"),
    ):
        with opened(base) as connection:
            connection.sendall(sent + b"x" * 100_000)
            [(status, body)] = responses(connection, 1)
        assert (status, json.loads(body)["code"]) == (CATALOGUE[code][0], code)
    assert sql("SELECT FROM imports") == []


def test_slow_uploads_do_not_block_others(base: str, alice: Client) -> None:
    """One is read; the others are told to come back."""
    with many(base, head(alice, "Content-Length: 10000000") + b"x" * 70_000, 12) as sockets:
        for _ in range(5):
            assert seconds_for(f"{base}/healthz") < BOUND
        wait_until(lambda: len(select.select(sockets, [], [], 0)[0]) == 11)
        for connection in select.select(sockets, [], [], 0)[0]:
            [(status, body)] = responses(connection, 1)
            assert (status, json.loads(body)["code"]) == (503, "uploads_busy")


def test_an_upload_that_ends_early_stores_nothing(base: str, alice: Client, sql: Sql) -> None:
    with opened(base) as connection:
        connection.sendall(head(alice, "Content-Length: 1000000") + b"x" * 500_000)
        connection.shutdown(1)
        [(status, body)] = responses(connection, 1)
    assert (status, json.loads(body)["code"]) == (400, "bad_request")
    assert sql("SELECT FROM imports") == []


@pytest.mark.parametrize(("change", "code"), [("delete", "key_unknown"), ("suspend", "account_suspended")])
def test_an_upload_whose_key_ends_meanwhile_stores_nothing(
    *, base: str, alice: Client, file: bytes, sql: Sql, change: str, code: str
) -> None:
    added = alice.post("/api/key/add", {"name": "Import", "scopes": ["*"]}).get_json()
    with opened(base) as connection:
        connection.sendall(head(Client(alice.http, added["key"]), f"Content-Length: {len(file)}") + file[:-1])
        wait_until(lambda: sql("SELECT FROM api_keys WHERE last_used IS NOT NULL"))  # so that it was checked
        if change == "delete":
            alice.delete(f"/api/key/{added['id']}/delete")
        else:
            sql("UPDATE users SET suspended = 'access' WHERE id = %(id)s RETURNING 1", id=alice.id)
        connection.sendall(file[-1:])
        [(status, body)] = responses(connection, 1)
    assert (status, json.loads(body)["code"]) == (CATALOGUE[code][0], code)
    assert sql("SELECT FROM imports") == []


def test_an_upload_whose_session_ends_meanwhile_stores_nothing(
    base: str, app: Flask, alice: Client, file: bytes, sql: Sql
) -> None:
    cookie = signed_in(app).get_cookie("linkmgr")
    assert cookie
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' + file + b"\r\n--x--\r\n"
    lines = ["POST /console/imports/new HTTP/1.1", "Host: localhost", f"Cookie: linkmgr={cookie.value}",
             "Content-Type: multipart/form-data; boundary=x", f"Content-Length: {len(form)}", "", ""]  # fmt: skip
    with opened(base) as connection:
        connection.sendall("\r\n".join(lines).encode() + form[:-1])
        time.sleep(1)  # so that the session was checked
        sql("DELETE FROM sessions RETURNING 1")
        connection.sendall(form[-1:])
        [(status, _)] = responses(connection, 1)
    assert status == 303
    assert sql("SELECT FROM imports") == []


def test_an_upload_that_takes_too_long_ends_with_408_and_makes_room(
    serve: Callable[..., str], alice: Client, sql: Sql
) -> None:
    base = serve("--workers", "1", rate_limit=MANY, application="tests.support.impatient:app")
    with opened(base) as connection:
        connection.sendall(head(alice, "Content-Length: 10000000") + b"x" * 70_000)
        began = time.monotonic()
        while time.monotonic() < began + 1:
            connection.sendall(b"x")
            time.sleep(0.1)
        [(status, body)] = responses(connection, 1)
        assert (status, json.loads(body)["code"]) == (408, "upload_timeout")
        assert 1.5 < time.monotonic() - began < 30
    file = shlink(*(sale(f"row-{n}") for n in range(2_000)))  # larger than what is read without a thread
    with opened(base) as connection:
        connection.sendall(head(alice, f"Content-Length: {len(file)}") + file)
        assert responses(connection, 1)[0][0] == 200
    assert len(sql("SELECT FROM imports")) == 1
