"""The pool of slots for requests that take long.

A request takes a slot before it waits for a client or a host, or works in proportion to a user's
rows, and keeps it until its response is sent. There are half as many slots as threads in the
process, and a user has at most half of them, so that other requests are served meanwhile. Without a
free slot a request is refused, because waiting would block another thread. Background threads are
not those of requests, and need no slot.
"""

import threading
from contextlib import ExitStack
from typing import Any

from flask import has_request_context

from linkmgr.core.errors import RETRY_SECONDS, AppError
from linkmgr.core.web import request as web_request

MANY_ROWS = 10_000  # rows that a request reads without a slot
_HOLDER, _HOLDER_OF_SLOT = "linkmgr.slot", "linkmgr.slot_holder"  # keys of the WSGI environment
_lock = threading.Lock()
_holders: list[object] = []
_slots = 2


def resize(threads: int) -> None:
    global _slots  # noqa: PLW0603 - all applications of a process share its threads
    _slots = max(1, threads // 2)


def count_for(holder: object) -> None:
    web_request.current().environ[_HOLDER_OF_SLOT] = holder


def take(busy: str, own_busy: str = "") -> None:
    """Take a slot for this request, unless it has one. `busy` is the code of the error if none is
    free, and `own_busy` if the user has as many as allowed."""
    if not has_request_context() or _HOLDER in (environ := web_request.current().environ):
        return
    holder = environ.get(_HOLDER_OF_SLOT) or web_request.user_id() or web_request.network()
    with _lock:
        is_own = _holders.count(holder) >= max(1, _slots // 2)
        if is_own or len(_holders) >= _slots:
            raise AppError((is_own and own_busy) or busy, seconds=RETRY_SECONDS)
        _holders.append(holder)
    environ[_HOLDER] = holder
    web_request.current().at_end.callback(_release, environ)


def take_for(rows: int, busy: str) -> None:
    if rows > MANY_ROWS:
        take(busy)


def take_for_image() -> None:
    """Take a slot to draw an image. Those that any client can request have half of the slots
    together."""
    if has_request_context() and web_request.user_id() is None:
        count_for("images")
    take("image_busy")


def keep() -> ExitStack:
    """Keep the slot of this request, whose response is streamed, until the returned stack is
    closed."""
    environ, end = web_request.current().environ, ExitStack()
    end.callback(_remove, environ[_HOLDER])
    environ[_HOLDER] = None
    return end


def _remove(holder: object) -> None:
    with _lock:
        _holders.remove(holder)


def _release(environ: dict[str, Any]) -> None:
    if holder := environ[_HOLDER]:
        environ[_HOLDER] = None
        _remove(holder)
