"""A service that draws an image."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from linkmgr.qr import drawing


@contextmanager
def busy() -> Iterator[None]:
    """Let a thread hold the lock, and another one wait for it."""
    with ThreadPoolExecutor(1) as other, drawing._waiting.hold():
        other.submit(drawing._lock.acquire).result()
        yield
        other.submit(drawing._lock.release).result()
