"""Bodies of requests, whatever their framing, cost a worker no more than their payload (deploy/worker.py)."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from flask import Flask

from tests.support.raw_http import BOUND, HEAD, LARGEST, chunk, many, responses, seconds_for
from tests.support.servers import resident, service, started
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

BULK = HEAD.replace(b"/api/pixel/add", b"/api/urls/bulk")
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
MAX_MEMORY = 300  # MiB
_TICKS = os.sysconf("SC_CLK_TCK")


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def attack(base: str, worker: int, sent: bytes, number: int) -> tuple[float, float, set[int]]:
    """Send the same from several clients. Return the processor time, the longest wait of another client, and the
    statuses of the responses."""
    before, longest, statuses = processor_time(worker), 0.0, set()
    with many(base, b"", number) as sockets:
        for each in sockets:
            with suppress(OSError):
                each.sendall(sent)
            longest = max(longest, seconds_for(f"{base}/healthz"))
        for each in sockets:
            with suppress(OSError, IndexError):
                statuses.add(responses(each, 1)[0][0])
    for _ in range(5):
        longest = max(longest, seconds_for(f"{base}/healthz"))
        time.sleep(0.05)
    return processor_time(worker) - before, longest, statuses


@pytest.fixture(scope="module")
def attacked(app: Flask, dsn: str, logs: Path) -> Iterator[tuple[str, int]]:
    """A service, and the process id of its worker."""
    with ExitStack() as running:
        yield started(lambda *options: running.enter_context(service(app, dsn, logs, *options)))


@pytest.mark.parametrize(
    ("number", "payload", "framed"),
    [
        (8, b"x" * 650_000, chunk(b"x") * 650_000),
        (16, b"x" * 10_000, chunk(b"x") * 10_000),
        (8, b"x" * 320 * 6200, chunk(b"x" * 320) * 6200 + chunk(b"")),  # about as small as chunks may be
        (16, b"x" * LARGEST, chunk(b"x" * LARGEST) + b"0\r\n" + b"X-Trailer: y\r\n" * 2000 + b"\r\n"),
        (16, b"x" * 4096, b"0" * 60_000 + chunk(b"x" * 4096) + chunk(b"")),
    ],
    ids=["chunks of one byte", "few chunks of one byte", "chunks of 320 bytes", "trailers", "leading zeros"],
)
def test_framing_costs_at_most_three_times_the_processor_time_of_a_length(
    attacked: tuple[str, int], number: int, payload: bytes, framed: bytes
) -> None:
    base, worker = attacked

    def is_cheap() -> bool:
        """Attack once. On a busy machine, other programs empty the caches of the processor in the middle of it."""
        plain, _, _ = attack(base, worker, BULK + b"Content-Length: %d\r\n\r\n" % len(payload) + payload, number)
        used, longest, statuses = attack(base, worker, BULK + CHUNKED + framed, number)
        assert longest < BOUND
        assert statuses <= {401, 413}
        return used <= 3 * plain + 0.2

    def is_idle() -> bool:
        before = processor_time(worker)
        time.sleep(0.3)
        return processor_time(worker) - before <= 0.1

    assert any(is_cheap() for _ in range(3))
    wait_until(is_idle)


def test_chunk_extensions_of_400_clients_cost_little_memory_in_every_round(serve: Callable[..., str]) -> None:
    base, worker = started(serve)
    sent = BULK + CHUNKED + b"1;" + b"a" * (4 << 20)
    for _ in range(2):
        _, longest, statuses = attack(base, worker, sent, 400)
        assert (longest < BOUND, resident(worker) < MAX_MEMORY, statuses <= {413}) == (True, True, True)
