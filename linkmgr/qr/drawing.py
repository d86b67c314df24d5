"""Lock for image processing, which needs much memory: one thread of a process at a time.

One thread renders, one waits, and further requests fail with image_busy, so that two of a worker's four threads remain
free for other requests.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.errors import RETRY_SECONDS, AppError
from linkmgr.request.slots import Slots

_WAIT_SECONDS = 1.0
_waiting = Slots(1, "image_busy")
_lock = threading.RLock()


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the lock. Raise image_busy if another thread waits for it, or after _WAIT_SECONDS.

    A thread that holds the lock may take it again.
    """
    if not _lock.acquire(blocking=False):
        with _waiting.hold():
            if not _lock.acquire(timeout=_WAIT_SECONDS):
                raise AppError("image_busy", seconds=RETRY_SECONDS)
    try:
        yield
    finally:
        _lock.release()
