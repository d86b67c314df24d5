"""A worker that has as many connections as it may have makes room for new ones (deploy/worker.py)."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.test_jobs import children
from tests.test_slow_clients import BEGINNINGS, BOUND, many, opened, seconds_for

pytestmark = pytest.mark.services


def test_connections_beyond_the_maximum_replace_the_slowest(unlimited: str) -> None:
    with many(unlimited, b"GET /healthz HTTP/1.1\r\nX-Slow: ", 1010):
        assert seconds_for(f"{unlimited}/healthz") < BOUND


def test_another_connection_is_closed_if_the_slowest_completes_its_request_meanwhile(serve: Callable[..., str]) -> None:
    before = set(children(os.getpid()))
    base = serve("--workers", "1", "--worker-connections", "10")
    [master] = set(children(os.getpid())) - before
    [worker] = children(master)
    with many(base, BEGINNINGS["a body after 100 Continue"], 9) as sockets:
        for each in sockets:
            assert each.recv(100).startswith(b"HTTP/1.1 100")
        os.kill(worker, signal.SIGSTOP)  # so that the worker sees both events in the same round
        with opened(base):
            sockets[0].sendall(b"123456789")
            os.kill(worker, signal.SIGCONT)
            assert seconds_for(f"{base}/healthz") < BOUND
