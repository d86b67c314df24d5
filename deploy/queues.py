"""Complete requests that wait for a thread, in three queues.

Writes may wait for a standby or a lock as long as the database does. They and all other requests have as many threads
as gunicorn's setting `threads`. Redirects have two more, and health checks one more than these, which help only while
all others wait.
"""

import re
import threading
import time
from collections import deque
from typing import Any

WAIT = -1  # instead of an event of epoll
OTHERS, REDIRECTS, HEALTH = 0, 2, 3  # additional threads
_REDIRECT = re.compile(r"/(?:(?:[qr]/)?([A-Za-z0-9_-]+))?")


def additional(environ: dict[str, Any], pages: frozenset[str]) -> int:
    """Return the number of additional threads that a request may use. `pages` are paths of the service, not of
    links."""
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return OTHERS
    path = environ["PATH_INFO"]
    if path == "/healthz":
        return HEALTH
    match = _REDIRECT.fullmatch(path)
    return REDIRECTS if match and match[1] not in pages else OTHERS


class Queues:
    def __init__(self, threads: int) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.threads = threads
        self.free_at = time.monotonic()  # when one of `threads` was last free
        self.waiting: dict[int, deque[Any]] = {number: deque() for number in (HEALTH, REDIRECTS, OTHERS)}

    def add(self, connection: Any) -> None:
        with self.lock:
            self.waiting[connection.additional].append(connection)

    def start(self) -> Any:
        """Return the next connection whose request may run, or None."""
        with self.lock:
            for number, connections in self.waiting.items():
                if connections and self.running < self.threads + number:
                    self.running += 1
                    return connections.popleft()
        return None

    def are_all_busy(self, seconds: float) -> bool:
        return self.running >= self.threads and time.monotonic() - self.free_at > seconds

    def end(self) -> None:
        with self.lock:
            self.running -= 1

    def remove(self, connection: Any) -> bool:
        """Return False if a thread has started it."""
        with self.lock:
            try:
                self.waiting[connection.additional].remove(connection)
            except ValueError:
                return False
        return True
