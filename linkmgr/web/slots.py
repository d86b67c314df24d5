"""Slots of a process for work that takes long. Without a free one a request is refused, because waiting would block
further threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.errors import RETRY_SECONDS, AppError


@contextmanager
def hold(slots: threading.Semaphore, busy: str) -> Iterator[None]:
    """Hold one of the slots. Raise the error with the code `busy` if none is free."""
    if not slots.acquire(blocking=False):
        raise AppError(busy, seconds=RETRY_SECONDS)
    try:
        yield
    finally:
        slots.release()


class Slots:
    """Slots of which each user has at most one."""

    def __init__(self, number: int, busy: str, own_busy: str = "") -> None:
        """`busy` is the code of the error if no slot is free, and `own_busy` if the user has one."""
        self._number, self._busy, self._own_busy = number, busy, own_busy or busy
        self._users: set[int] = set()
        self._lock = threading.Lock()

    @contextmanager
    def occupied(self, user_id: int) -> Iterator[None]:
        with self._lock:
            if user_id in self._users:
                raise AppError(self._own_busy, seconds=RETRY_SECONDS)
            if len(self._users) == self._number:
                raise AppError(self._busy, seconds=RETRY_SECONDS)
            self._users.add(user_id)
        try:
            yield
        finally:
            with self._lock:
                self._users.remove(user_id)
