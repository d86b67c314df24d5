"""Lock for image processing, which needs much memory: one thread of a process at a time.

One thread renders, one waits, and further requests fail with image_busy, so that two of a worker's four threads remain
free for other requests.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.errors import RETRY_SECONDS, AppError
from linkmgr.web.slots import Slots

_WAIT_SECONDS = 1.0
_slots = Slots(2, "image_busy")
_lock = threading.Lock()
_thread = threading.local()


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the lock. Raise image_busy if two threads hold or wait for it, or after _WAIT_SECONDS.

    A thread that holds the lock may take it again.
    """
    if getattr(_thread, "holds_lock", False):
        yield
        return
    with _slots.hold():
        if not _lock.acquire(timeout=_WAIT_SECONDS):
            raise AppError("image_busy", seconds=RETRY_SECONDS)
        _thread.holds_lock = True
        try:
            yield
        finally:
            _thread.holds_lock = False
            _lock.release()
