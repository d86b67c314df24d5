"""The callers that this process identified within the last second, and the requests that it has counted in advance.

A request of a busy key needs no statement before its handler. A request is counted in advance only while at least 64
are left in the window, and is never used after the window, so that no key gets more than its limit.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from flask import Flask, Response

from linkmgr.db.statements import Row
from linkmgr.settings import this_app
from linkmgr.web import rate_limit
from linkmgr.web import request as web_request
from linkmgr.web.caller import Caller

KEEP_SECONDS = 1  # during which a change by another process has no effect
_MAX_BLOCK = 64  # requests to count with one statement
_MAX_ENTRIES = 4096
# Blueprints of the API that change what an entry contains.
_WRITERS = ("account", "default_key", "keys", "plans", "users")
_changes = 0  # of users, keys and plans by this process


class Entry(NamedTuple):
    caller: Caller
    until: float  # end of the window
    numbers: deque[int]  # of the requests in the window that were counted in advance
    block: int  # requests to count with the next statement
    changes: int
    stale_at: float


def identify(lookup: Callable[..., Row], *arguments: Any) -> tuple[Caller, rate_limit.Window | None]:
    """Return the caller and its window, in which this request is counted. The window is None if Redis counts."""
    entries: dict[tuple[Any, ...], Entry] = this_app().extensions["linkmgr_recent_callers"]
    changes, entry = _changes, entries.get(arguments)
    number = _take(entry) if entry else None
    if entry and entry.changes == changes and time.monotonic() < entry.stale_at:
        if number:
            return entry.caller, rate_limit.Window(number, entry.until)
        if rate_limit.window() is None:
            return entry.caller, None
    counted = 0 if number else entry.block if entry else 1
    row = lookup(*arguments, counted)
    window = rate_limit.local_window(row.pop("count"), row.pop("until"), row.pop("now")) if "count" in row else None
    caller = Caller(**row)
    until, numbers, block = 0.0, deque[int](), 1
    if window:
        if entry and (entry.caller.bucket, entry.until) == (caller.bucket, window.until):
            numbers = entry.numbers
        elif number:  # it was counted in another window
            entries.pop(arguments, None)
            return identify(lookup, *arguments)
        until, block = window.until, rate_limit.left(caller.rate, window) // _MAX_BLOCK + 1
        numbers.extend(range(window.requests - counted + 2, window.requests + 1))
        window = window._replace(requests=number or window.requests - counted + 1)
    if caller.id is not None:
        if len(entries) >= _MAX_ENTRIES:
            entries.clear()
        kept = caller._replace(key=caller.key._replace(is_first_use=False)) if caller.key else caller
        stale_at = time.monotonic() + KEEP_SECONDS
        entries[arguments] = Entry(kept, until, numbers, min(block, _MAX_BLOCK), changes, stale_at)
    return caller, window


def _take(entry: Entry) -> int | None:
    """Return the number of a request that was counted in advance, or None if there is none."""
    try:
        return entry.numbers.popleft() if time.time() < entry.until else None
    except IndexError:
        return None


def forget() -> None:
    """Identify all callers again, after a change of users, keys or plans."""
    global _changes  # noqa: PLW0603 - all applications of a process use the same database
    _changes += 1


def _forget_after_write(response: Response) -> Response:
    request = web_request.current()
    if request.method not in ("GET", "HEAD", "OPTIONS") and (not request.is_api or request.blueprint in _WRITERS):
        forget()
    return response


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_recent_callers"] = {}
    app.after_request(_forget_after_write)
