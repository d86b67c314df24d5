"""A worker that stops answers each request of which it has received a byte (deploy/worker.py).

A client cannot know what became of a POST whose connection ends without a response.
"""

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.conftest import MANY
from tests.support.raw_http import BEGINNINGS, opened, responses
from tests.support.servers import started

pytestmark = pytest.mark.services

IDLE_SECONDS = 2  # that a stopping worker waits for a request on an idle connection
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HEAD, REST = BEGINNINGS["a body"], b"123456789"


def kept(stack: ExitStack, base: str, number: int) -> list[socket.socket]:
    """Open connections, each of which has had a response."""
    connections = [stack.enter_context(opened(base)) for _ in range(number)]
    for connection in connections:
        connection.sendall(HEALTH)
        assert responses(connection, 1)[0][0] == 200
    return connections


def has_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(60)


def test_a_head_that_arrives_when_idle_connections_are_closed_gets_a_response(
    serve: Callable[..., str],
) -> None:
    base, worker = started(serve, rate_limit=MANY)
    with ExitStack() as stack:
        connections = kept(stack, base, 100)
        os.kill(worker, signal.SIGTERM)
        time.sleep(IDLE_SECONDS / 2)
        os.kill(worker, signal.SIGSTOP)  # so that it closes idle connections before it reads
        for connection in connections:
            connection.sendall(HEAD)
        time.sleep(IDLE_SECONDS)
        os.kill(worker, signal.SIGCONT)
        time.sleep(0.3)
        for connection in connections:
            connection.sendall(REST)
        assert Counter(responses(connection, 1)[0][0] for connection in connections) == {401: 100}


def test_a_request_at_any_moment_of_a_stop_gets_a_response_or_its_connection_has_ended_before(
    serve: Callable[..., str],
) -> None:
    base, worker = started(serve, rate_limit=MANY)
    outcomes: Counter[str | int] = Counter()
    with ExitStack() as stack:
        connections = kept(stack, base, 120)
        os.kill(worker, signal.SIGTERM)
        stopped = time.monotonic()
        for number, connection in enumerate(connections):
            time.sleep(max(0, stopped + number * 0.025 - time.monotonic()))  # for three seconds
            if has_ended(connection):
                outcomes["ended"] += 1
                continue
            connection.sendall(HEAD)
            time.sleep(0.001 * (number % 20))
            connection.sendall(REST)
            outcomes[responses(connection, 1)[0][0]] += 1
    assert outcomes.keys() == {401, "ended"}


def test_an_idle_connection_ends_without_a_reset_even_if_its_client_is_sending(
    serve: Callable[..., str],
) -> None:
    base, worker = started(serve, rate_limit=MANY)
    with ExitStack() as stack:
        connections = kept(stack, base, 20)
        os.kill(worker, signal.SIGTERM)
        for connection in connections:
            assert connection.recv(1) == b""
            for _ in range(3):
                connection.sendall(HEAD)  # as what was on its way when the worker closed it
                time.sleep(0.001)
            assert connection.recv(1) == b""
