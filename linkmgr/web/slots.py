"""Slots of a process for work that takes long, at most one for each user."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.errors import RETRY_SECONDS, AppError


class Slots:
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
