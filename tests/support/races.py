"""Helpers for concurrent requests and transactions."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import psycopg2

from tests.support.targets import wait_until

T = TypeVar("T")
_PAUSE = 0.01  # seconds between calls, which would take all processors from what they accompany


def at_once(times: int, call: Callable[[int], T], *, threads: int = 16) -> list[T]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, range(times)))


def during(connection: psycopg2.extensions.connection, statement: str, call: Callable[[], T]) -> T:
    """Run `call` while `statement` is under way in another transaction. Commit it once the call waits for it, and
    return the result of the call."""
    with connection.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("BEGIN")
        cursor.execute(statement)
        answer = pool.submit(call)
        wait_until(lambda: _is_awaited(cursor))
        cursor.execute("COMMIT")
        return answer.result()


def _is_awaited(cursor: psycopg2.extensions.cursor) -> bool:
    cursor.execute("SELECT pg_stat_clear_snapshot()")
    cursor.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    return cursor.fetchone() is not None


@contextmanager
def meanwhile(*calls: Callable[[], T]) -> Iterator[list[T]]:
    """Repeat each call in a thread of its own while the block runs, and collect the results."""
    gave: list[T] = []
    ended = threading.Event()

    def go_on(call: Callable[[], T]) -> None:
        while not ended.is_set():
            gave.append(call())
            ended.wait(_PAUSE)

    with ThreadPoolExecutor(len(calls)) as pool:
        running = [pool.submit(go_on, call) for call in calls]
        try:
            yield gave
        finally:
            ended.set()
            for each in running:
                each.result()
