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
from linkmgr.web.rate_limit import Window

KEEP_SECONDS = 1  # during which a change by another process has no effect
_MAX_BLOCK = 64  # requests to count with one statement
_MAX_ENTRIES = 4096
# Blueprints of the API that change what an entry contains.
_WRITERS = ("account", "default_key", "keys", "plans", "users")
_changes = 0  # of users, keys and plans by this process


class Entry(NamedTuple):
    caller: Caller
    counter: tuple[str, float | None]  # the bucket, and the end of its window by the clock of PostgreSQL
    window: Window | None  # with the requests that were counted, or None if Redis counts
    ends: float  # the window, by the monotonic clock
    numbers: deque[int]  # of the requests in the window that were counted in advance
    changes: int
    stale_at: float


def identify(lookup: Callable[..., Row], *arguments: Any) -> tuple[Caller, Window | None]:
    """Return the caller and its window, in which this request is counted. The window is None if Redis counts."""
    entries: dict[tuple[Any, ...], Entry] = this_app().extensions["linkmgr_recent_callers"]
    entry, changes, began = entries.get(arguments), _changes, time.monotonic()
    number = _take(entry, began)
    if entry and entry.changes == changes and began < entry.stale_at:
        if entry.window is None:
            return entry.caller, None
        if number:
            return entry.caller, entry.window._replace(requests=number)
    by = 0 if number else _block(entry)
    row = lookup(*arguments, by)
    count, until, now = row.pop("count") or 0, row.pop("until"), row.pop("now") or 0
    caller = Caller(**row)
    counter, numbers = (caller.bucket, until), deque[int]()
    if entry and entry.counter == counter:
        numbers = entry.numbers
    elif number:  # it was counted in another window
        entries.pop(arguments, None)
        return identify(lookup, *arguments)
    window = None if until is None else rate_limit.local_window(count, until, now)
    numbers.extend(range(count - by + 2, count + 1))
    if caller.id is not None:
        if len(entries) >= _MAX_ENTRIES:
            entries.clear()
        kept = caller._replace(key=caller.key._replace(is_first_use=False)) if caller.key else caller
        ends = began + (until or 0) - now
        entries[arguments] = Entry(kept, counter, window, ends, numbers, changes, began + KEEP_SECONDS)
    return caller, window and window._replace(requests=number or count - by + 1)


def _take(entry: Entry | None, now: float) -> int | None:
    """Return the number of a request that was counted in advance, or None if there is none."""
    try:
        return entry.numbers.popleft() if entry and now < entry.ends else None
    except IndexError:
        return None


def _block(entry: Entry | None) -> int:
    """Return the number of requests to count: in advance only while many are left."""
    left = rate_limit.left(entry.caller.rate, entry.window) if entry and entry.window else 0
    return min(left // _MAX_BLOCK + 1, _MAX_BLOCK)


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
