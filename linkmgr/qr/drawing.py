"""A lock for work on images, which takes much memory: one thread of a process does it at a time.

Two of a worker's four threads stay free for other requests: one draws, one waits, and others are refused.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.web.errors import RETRY_SECONDS, AppError

_PATIENCE_SECONDS = 1.0
_places = threading.BoundedSemaphore(2)
_drawing = threading.Lock()


@contextmanager
def alone() -> Iterator[None]:
    """Wait for a moment until no other thread works on an image."""
    if not _places.acquire(blocking=False):
        raise AppError("image_busy", seconds=RETRY_SECONDS)
    try:
        if not _drawing.acquire(timeout=_PATIENCE_SECONDS):
            raise AppError("image_busy", seconds=RETRY_SECONDS)
        try:
            yield
        finally:
            _drawing.release()
    finally:
        _places.release()
