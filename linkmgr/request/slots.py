"""Slots of a process for work that takes long. Without a free one a request is refused, because waiting would block
further threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linkmgr.errors import RETRY_SECONDS, AppError


class Slots:
    def __init__(self, number: int, busy: str, own_busy: str = "") -> None:
        """`busy` is the code of the error if no slot is free, and `own_busy` if the user has one."""
        self._number, self._busy, self._own_busy = number, busy, own_busy or busy
        self._holders: set[object] = set()
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, user_id: int | None = None) -> Iterator[None]:
        """Hold a slot. A user holds at most one."""
        holder = object() if user_id is None else user_id
        with self._lock:
            if holder in self._holders:
                raise AppError(self._own_busy, seconds=RETRY_SECONDS)
            if len(self._holders) == self._number:
                raise AppError(self._busy, seconds=RETRY_SECONDS)
            self._holders.add(holder)
        try:
            yield
        finally:
            with self._lock:
                self._holders.remove(holder)
