"""Complete requests that wait for a thread, in four queues, and the line of pipelined ones.

Writes may wait for a standby or a lock as long as the database does. They and all other requests
have as many threads as gunicorn's setting `threads`. Redirects have two more, and health checks one
more than these, which help only while all others wait. Passwords of sign-ins and visitors, each of
which takes 30 ms of a core, have half of the threads, so that others do not wait behind many of
them.
"""

import os
import re
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

WAIT, LINE = -1, -2  # for a thread, or for its turn in the line, instead of an event of epoll
OTHERS, REDIRECTS, HEALTH = 0, 2, 3  # additional threads
PASSWORDS = -1
_REDIRECT = re.compile(r"/(?:(?:[qr]/)?([A-Za-z0-9_-]+)/?)?")
_FIRST = (".well-known", "avatar", "c", "o", "q", "qr", "statistics", "u")  # of paths of others than links
_PAGE = re.compile(r"\+|/(?:ico|owner|pixels|qr(?:/[^/]*)?)/?$")  # of a link


def additional(environ: dict[str, Any], pages: frozenset[str]) -> int:
    """Return the number of additional threads that a request may use, or PASSWORDS. `pages` are
    paths of the service, not of links."""
    path = environ["PATH_INFO"]
    match = _REDIRECT.fullmatch(path)
    is_link = match[1] not in pages if match else _is_wide(path, pages)
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        has_password = is_link or path == "/login" or path.startswith("/statistics/")
        return PASSWORDS if has_password else OTHERS
    if path == "/healthz":
        return HEALTH
    return REDIRECTS if is_link else OTHERS


def _is_wide(path: str, pages: frozenset[str]) -> bool:
    """Return True for what may be an alias with `/`, `.` or letters of any script, or have a path
    behind its alias."""
    return path[1:].partition("/")[0] not in (*pages, *_FIRST) and not _PAGE.search(path)


class Overdue(Exception):
    """The request has waited too long for a thread."""


class Line:
    """Connections whose next request has already arrived. An epoll has one event for all of them,
    so that other connections do not wait behind them."""

    def __init__(self) -> None:
        self._connections: deque[Any] = deque()
        self._number = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        return self._number

    def wake(self) -> None:
        os.eventfd_write(self._number, 1)

    def add(self, connection: Any) -> None:
        self._connections.append(connection)
        self.wake()

    def take(self) -> Any:
        """Return the first one, or None if another thread has it."""
        with suppress(BlockingIOError, IndexError):
            os.eventfd_read(self._number)
            return self._connections.popleft()
        return None


class Queues:
    def __init__(self, threads: int) -> None:
        self.lock = threading.Lock()
        self.running = self.passwords = 0
        self.threads = threads
        self.free_at = time.monotonic()  # when one of `threads` was last free
        self.waiting: dict[int, deque[Any]] = {
            number: deque() for number in (HEALTH, REDIRECTS, PASSWORDS, OTHERS)
        }

    def add(self, connection: Any) -> None:
        with self.lock:
            self.waiting[connection.additional].append(connection)

    def start(self) -> Any:
        """Return the next connection whose request may run, or None."""
        with self.lock:
            for number, connections in self.waiting.items():
                is_full = number == PASSWORDS and self.passwords >= max(1, self.threads // 2)
                if connections and not is_full and self.running < self.threads + max(number, OTHERS):
                    self.running += 1
                    self.passwords += number == PASSWORDS
                    return connections.popleft()
        return None

    def are_all_busy(self, seconds: float) -> bool:
        return self.running >= self.threads and time.monotonic() - self.free_at > seconds

    def end(self, connection: Any) -> None:
        with self.lock:
            self.running -= 1
            self.passwords -= connection.additional == PASSWORDS

    def remove(self, connection: Any) -> bool:
        """Return False if a thread has started it."""
        with self.lock:
            try:
                self.waiting[connection.additional].remove(connection)
            except ValueError:
                return False
        return True
