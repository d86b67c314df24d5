"""Lock for image processing, which needs much memory: one thread of a process at a time.

One thread renders, one waits, and further requests fail with image_busy, so that two of a worker's four threads remain
free for other requests.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.web.errors import RETRY_SECONDS, AppError

_WAIT_SECONDS = 1.0
_slots = threading.BoundedSemaphore(2)
_lock = threading.Lock()


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the lock. Raise image_busy if two threads hold or wait for it, or after _WAIT_SECONDS."""
    if not _slots.acquire(blocking=False):
        raise AppError("image_busy", seconds=RETRY_SECONDS)
    try:
        if not _lock.acquire(timeout=_WAIT_SECONDS):
            raise AppError("image_busy", seconds=RETRY_SECONDS)
        try:
            yield
        finally:
            _lock.release()
    finally:
        _slots.release()
