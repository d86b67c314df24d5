"""Slow clients do not occupy the threads of a worker (deploy/worker.py). There is no nginx in front."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from linkmgr.core.error_catalogue import CATALOGUE
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.raw_http import (
    BEGINNINGS,
    BOUND,
    DEADLINE,
    HEAD,
    LARGEST,
    PIXEL,
    chunk,
    many,
    opened,
    responses,
    seconds_for,
)

pytestmark = pytest.mark.services


@pytest.fixture
def base(unlimited: str) -> str:
    return unlimited


def test_requests_that_never_end_do_not_block_others_and_end_with_408(base: str) -> None:
    began = time.monotonic()
    with ExitStack() as stack:
        slow = {name: stack.enter_context(many(base, sent, 48)) for name, sent in BEGINNINGS.items()}
        [idle] = stack.enter_context(many(base, b"", 1))
        [dripping] = stack.enter_context(many(base, BEGINNINGS["headers"], 1))
        while time.monotonic() < began + DEADLINE - 2:
            assert seconds_for(f"{base}/healthz") < BOUND
            dripping.sendall(b"x")
            time.sleep(0.2)
        for name, sockets in slow.items():
            for each in [*sockets, dripping] if name == "headers" else sockets:
                answer = each.makefile("rb").read()
                head, _, body = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 408 "), name
                assert b"X-RateLimit-Remaining: 1000000\r\n" in head
                message = CATALOGUE["request_timeout"][1]
                assert json.loads(body).items() >= {"error": 1, "message": message, "code": "request_timeout"}.items()
        assert idle.recv(1) == b""
    assert DEADLINE - 1 < time.monotonic() - began < 3 * DEADLINE


def test_rejected_bodies_that_never_end_do_not_block_others(base: str) -> None:
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b" " * LARGEST) + b"2\r\n1"
    for framing in (b"Content-Length: 1000000\r\n\r\n{", chunks):
        with many(base, HEAD + framing, 48) as sockets:
            assert seconds_for(f"{base}/healthz") < BOUND
            assert {responses(each, 1)[0][0] for each in sockets} == {401}


def test_clients_that_do_not_close_do_not_block_others(base: str) -> None:
    with many(base, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 48) as sockets:
        assert seconds_for(f"{base}/healthz") < BOUND
        assert {responses(each, 1)[0][0] for each in sockets} == {200}


def test_clients_that_do_not_read_do_not_block_others_and_get_everything_later(base: str) -> None:
    """Send many responses, because kernels buffer some MiB of a connection on loopback."""
    number = 100
    request = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with many(base, request * number, 12) as sockets:
        for _ in range(10):
            assert seconds_for(f"{base}/healthz") < BOUND
        found = [responses(each, number) for each in sockets]
    assert {status for each in found for status, _ in each} == {200}
    assert len({body for each in found for _, body in each}) == 1


def test_clients_that_do_not_read_long_lists_do_not_block_others(base: str, alice: Client, sql: Sql) -> None:
    """Lists of 4 MiB exceed what the worker buffers of all of them; the excess clients are disconnected."""
    sql(
        """
        INSERT INTO links (user_id, alias, url, description)
        SELECT %(user_id)s, 'long-' || i, 'https://example.com/' || i || repeat('a', 2000), repeat('b', 3000)
          FROM generate_series(1, 1000) i
        RETURNING id
        """,
        user_id=alice.id,
    )
    request = f"GET /api/urls?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {alice.key}\r\n\r\n"
    small = authorized(alice, b"Content-Length: %d\r\n\r\n" % len(PIXEL)) + PIXEL
    with many(base, request.encode(), 24, receive_buffer=2048):
        for _ in range(20):
            assert seconds_for(f"{base}/healthz") < BOUND
            with many(base, small, 8) as others:
                assert {responses(other, 1)[0][0] for other in others} == {200}
    with urllib.request.urlopen(
        urllib.request.Request(f"{base}/api/urls?limit=1000", headers={"Authorization": f"Bearer {alice.key}"})
    ) as answer:
        assert len(json.loads(answer.read())["data"]["urls"]) > 500


def test_stray_line_breaks_do_not_block_others(base: str) -> None:
    for beginning in (b"", b"\r\n", b"\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n\r\n"):
        with many(base, beginning, 48):
            for _ in range(5):
                assert seconds_for(f"{base}/healthz") < BOUND, beginning


FRAMINGS = [
    b"Content-Length: 99999999999999999999\r\n\r\n",
    b"Content-Length: 0000000000000000000000000000000000009\r\n\r\n",
    b"Content-Length: 9\r\nContent-Length: 9\r\n\r\n",
    b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"content-length:9\r\n\r\n",
    b"Content-Length\t: 9\r\n\r\n",
    b"Transfer-Encoding: gzip, Chunked\r\n\r\n9\r\n",
    b"Transfer-Encoding: gzip\r\nTransfer-Encoding:\tchunked\r\n\r\n9\r\n",
    b"Transfer-Encoding: identity\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n+9\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0_9\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n9;a=b\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n9\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n",
]


def test_no_framing_lets_a_client_occupy_a_thread(base: str) -> None:
    for framing in FRAMINGS:
        with many(base, HEAD + framing, 16):
            for _ in range(3):
                assert seconds_for(f"{base}/healthz") < BOUND, framing


def authorized(alice: Client, *headers: bytes) -> bytes:
    return HEAD + b"Authorization: Bearer %s\r\n" % str(alice.key).encode() + b"".join(headers)


@pytest.mark.parametrize("piece", [1, 7, 4096, 1 << 20])
def test_pipelined_requests_are_answered_in_order_however_they_arrive(base: str, alice: Client, piece: int) -> None:
    whole = PIXEL + b" " * (3000 - len(PIXEL))
    chunked = authorized(alice, b"Transfer-Encoding: chunked\r\n\r\n") + chunk(whole[:50]) + chunk(whole[50:])
    plain = authorized(alice, b"Content-Length: %d\r\n\r\n" % len(whole)) + whole
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sent = plain + chunked + chunk(b"") + health + chunked + b"0\r\nX-Trailer: y\r\n\r\n" + health
    with opened(base) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(sent), piece):
            connection.sendall(sent[at : at + piece])
        found = responses(connection, 5)
        assert [status for status, _ in found] == [200] * 5
        assert [b'"id"' in body for _, body in found] == [True, True, False, True, False]
        connection.sendall(health)
        assert responses(connection, 1)[0][0] == 200


def test_a_body_of_the_maximum_size_is_accepted(base: str, alice: Client) -> None:
    body = PIXEL + b" " * (LARGEST - len(PIXEL))
    with opened(base) as connection:
        for framing in (b"Content-Length: %d\r\n\r\n" % LARGEST + body,
                        b"Transfer-Encoding: chunked\r\n\r\n" + chunk(body) + chunk(b"")):  # fmt: skip
            connection.sendall(authorized(alice, framing))
            assert responses(connection, 1)[0][0] == 200


@pytest.mark.parametrize("framing", [[], ["-H", "Transfer-Encoding: chunked"]], ids=["length", "chunked"])
def test_a_client_that_expects_100_continue_gets_it_once(base: str, alice: Client, framing: list[str]) -> None:
    run = subprocess.run(
        ["curl", "--silent", "--show-error", "--include", "-H", "Expect: 100-continue", "--expect100-timeout", "60",
         "-H", f"Authorization: Bearer {alice.key}", "-H", "Content-Type: application/json", *framing,
         "--data-binary", PIXEL.decode(), f"{base}/api/pixel/add"],
        capture_output=True, text=True, check=True, timeout=50,
    )  # fmt: skip
    assert run.stdout.count("HTTP/1.1 100 ") == 1
    assert run.stdout.count("HTTP/1.1 200 ") == 1


@pytest.mark.parametrize("chunked", [True, False])
def test_a_bulk_request_of_the_maximum_size_is_accepted(base: str, alice: Client, chunked: bool) -> None:
    body = json.dumps({"urls": [{"url": "https://example.com/"}]}).ljust(2 << 20).encode()
    head = HEAD.replace(b"/api/pixel/add", b"/api/urls/bulk") + f"Authorization: Bearer {alice.key}\r\n".encode()
    framing, end = b"Content-Length: %d" % len(body), b""
    if chunked:
        framing, end = b"Transfer-Encoding: chunked", b"\r\n0\r\n\r\n"
        size = b"%x\r\n" % len(body)
    for extra, status in ((b"", 200), (b" ", 413)):
        if chunked:
            size = b"%x\r\n" % len(body + extra)
        else:
            framing, size = b"Content-Length: %d" % len(body + extra), b""
        with opened(base) as connection:
            connection.sendall(head + framing + b"\r\n\r\n" + size + body + extra + end)
            [(answered, answer)] = responses(connection, 1)
        assert (answered, json.loads(answer).get("code")) == (status, None if status == 200 else "bulk_too_large")


def test_a_connection_is_kept_after_a_bulk_request_whose_body_was_not_read(base: str) -> None:
    head = HEAD.replace(b"/api/pixel/add", b"/api/urls/bulk")
    with opened(base) as connection:
        for size in (LARGEST, 2 << 20, 1):
            body = b" " * size
            for framing in (b"Content-Length: %d\r\n\r\n" % size + body,
                            b"Transfer-Encoding: chunked\r\n\r\n" + chunk(body) + chunk(b"")):  # fmt: skip
                connection.sendall(head + framing)
                assert responses(connection, 1)[0][0] == 401


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /" + b"a" * 100_000, "address_too_long"),
        (b"GET / HTTP/1.1\r\n" + b"A: %s\r\n" % (b"b" * 8000) * 20, "headers_too_large"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;%s\r\n{\r\n" % (b"b" * 4000) * 40, "too_large"),
    ],
)  # fmt: skip
def test_a_request_that_is_too_large_is_rejected_before_it_ends(base: str, head: bytes, code: str) -> None:
    with opened(base) as connection:
        connection.sendall(head)
        [(status, body)] = responses(connection, 1)
    assert (status, json.loads(body)["code"]) == (CATALOGUE[code][0], code)


def test_1600_connections_of_slowhttptest_do_not_block_others(serve: Callable[..., str]) -> None:
    """Slow headers, bodies, overlapping ranges and slow readers at the same time."""
    if not shutil.which("slowhttptest"):
        pytest.skip("slowhttptest is missing: apt-get install slowhttptest")
    base = serve("--workers", "2")
    options = ["-c", "400", "-r", "200", "-i", "2", "-l", "5", "-u", f"{base}/static/style.css"]
    attacks = [
        subprocess.Popen(["slowhttptest", kind, *options], stdout=subprocess.DEVNULL)
        for kind in ("-H", "-B", "-R", "-X")
    ]
    longest = 0.0
    while any(attack.poll() is None for attack in attacks):
        longest = max(longest, seconds_for(f"{base}/healthz"))
        time.sleep(0.05)
    assert [attack.returncode for attack in attacks] == [0] * 4
    assert longest < BOUND
