"""A worker that has as many connections as it may have makes room for new ones, and one that stops serves those that it
has (deploy/worker.py)."""

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import MANY
from tests.support.races import at_once
from tests.support.raw_http import BEGINNINGS, BOUND, many, opened, responses, seconds_for
from tests.support.servers import resident, started
from tests.support.targets import wait_until

pytestmark = pytest.mark.services


def accesses(folder: Path) -> int:
    """Return the number of requests in the access log."""
    [log] = folder.glob("gunicorn-*.log")
    return log.read_text().count('"status":')


def test_connections_beyond_the_maximum_replace_the_slowest(unlimited: str) -> None:
    with many(unlimited, b"GET /healthz HTTP/1.1\r\nX-Slow: ", 1010):
        assert seconds_for(f"{unlimited}/healthz") < BOUND


def test_a_request_that_waits_for_a_thread_is_refused_if_there_are_too_many_connections(
    serve: Callable[..., str],
) -> None:
    slow = "tests.support.slow_responses:app"
    base, _ = started(serve, "--worker-connections", "10", application=slow)
    request = b"GET /a/b HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with many(base, request, 10) as sockets, many(base, b"GET", 3):
        found = [each.recv(1 << 16) for each in sockets]
    refused = [answer for answer in found if answer.startswith(b"HTTP/1.1 503 ")]
    assert {answer[:12] for answer in found} == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    for answer in refused:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert {b"Connection: close", b"Retry-After: 2"} <= set(head.split(b"\r\n"))
        assert json.loads(body)["code"] == "busy"


def test_another_connection_is_closed_if_the_slowest_completes_its_request_meanwhile(serve: Callable[..., str]) -> None:
    base, worker = started(serve, "--worker-connections", "10")
    with many(base, BEGINNINGS["a body after 100 Continue"], 9) as sockets:
        for each in sockets:
            assert each.recv(100).startswith(b"HTTP/1.1 100")
        os.kill(worker, signal.SIGSTOP)  # so that the worker sees both events in the same round
        with opened(base):
            sockets[0].sendall(b"123456789")
            os.kill(worker, signal.SIGCONT)
            assert seconds_for(f"{base}/healthz") < BOUND


def test_unfinished_bodies_of_many_clients_cost_little_memory_and_block_nobody(serve: Callable[..., str]) -> None:
    base, worker = started(serve)
    body = b"x" * ((2 << 20) - 1)
    head = BEGINNINGS["a body"][:-1].replace(b"/api/pixel/add", b"/api/urls/bulk")
    before = resident(worker)
    with many(base, b"", 160) as sockets:
        for each in sockets:
            with suppress(ConnectionError):
                each.sendall(head.replace(b"Length: 10", b"Length: %d" % (len(body) + 1)) + body)
        assert seconds_for(f"{base}/healthz") < BOUND
        assert resident(worker) - before < 128  # MiB; all bodies have 320
        assert responses(sockets[0], 1)[0][0] == 408
        sockets[-1].sendall(b"x")
        assert responses(sockets[-1], 1)[0][0] == 401


def test_a_worker_without_free_file_descriptors_closes_the_connection_that_has_waited_longest(
    serve: Callable[..., str],
) -> None:
    base, worker = started(serve)
    at_once(40, lambda _: seconds_for(f"{base}/healthz"), threads=40)  # opens the files that requests need
    opened_files = len(list(Path(f"/proc/{worker}/fd").iterdir()))
    usual = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (opened_files + 8, usual[1]))
    with many(base, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 24) as sockets:
        for _ in range(10):
            assert seconds_for(f"{base}/healthz") < BOUND
        assert responses(sockets[-1], 1)[0][0] == 200
        sockets[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert responses(sockets[-1], 1)[0][0] == 200
        with suppress(ConnectionError):
            sockets[0].makefile("rb").read()  # ends, because the service has closed it


def test_a_pipelined_request_waits_until_other_connections_are_served(
    serve: Callable[..., str], tmp_path: Path
) -> None:
    base, _ = started(serve, rate_limit=MANY)
    with many(base, b"GET /api/account HTTP/1.1\r\nHost: localhost\r\n\r\n" * 60, 400):
        wait_until(lambda: accesses(tmp_path) > 400)
        for _ in range(5):
            before = accesses(tmp_path)
            seconds_for(f"{base}/healthz")
            assert accesses(tmp_path) - before < 200  # of 24,000


def test_an_idle_connection_can_send_a_request_when_its_worker_has_begun_to_stop(serve: Callable[..., str]) -> None:
    base, worker = started(serve)
    with opened(base) as idle:
        time.sleep(2.5)  # longer than the worker waits for idle connections
        os.kill(worker, signal.SIGTERM)
        time.sleep(1)
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert responses(idle, 1)[0][0] == 200


def test_a_connection_that_is_accepted_while_its_worker_stops_is_served(serve: Callable[..., str]) -> None:
    base, worker = started(serve, application="tests.support.slow_accept:app")
    with opened(base) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        time.sleep(0.1)
        os.kill(worker, signal.SIGTERM)
        assert responses(connection, 1)[0][0] == 200
