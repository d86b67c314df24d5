"""Callers of the API by their keys, and the requests that are counted for them.

Callers are cached for a second. For busy keys one statement reserves up to 64 requests of the window. A limit still
admits exactly its number of requests: they are reserved only while many more are left, and those that a process has not
used after a quarter of a second are given back.
"""

import ipaddress
import threading
import time
from collections import deque
from typing import Any, NamedTuple

from flask import Flask

from linkmgr import keys
from linkmgr.db.background import Background
from linkmgr.db.statements import Row
from linkmgr.repository import callers as stored_callers
from linkmgr.repository import rate_windows
from linkmgr.request import rate_limit
from linkmgr.request import request as web_request
from linkmgr.request.request import Caller, Key, Window
from linkmgr.settings import this_app

KEEP_SECONDS = 1.0  # during which a change by another process has no effect
RESERVED_SECONDS = 0.25
# Requests that are left in the window behind those that are reserved. To count so many, one by one, takes longer than
# RESERVED_SECONDS. So whatever is reserved has been used or given back when the last request is counted.
MARGIN = 3000
_MAX_RESERVED = 64  # by one statement
_MAX_CALLERS = 4096
_changes = 0  # of users, keys and plans by this process


class _Cached(NamedTuple):
    caller: Caller
    changes: int
    stale_at: float


class _Reserved(NamedTuple):
    """Requests that are counted in a window and not used yet, by their numbers."""

    counted: Window  # all requests of the window, when these were reserved
    until: float  # the end of the window by the clock of PostgreSQL
    size: int
    numbers: deque[int]
    expires: float


class Reservations(Background):
    """The reserved requests of this process by bucket. Those that expire are given back."""

    name = "giving back reserved requests"
    pause = RESERVED_SECONDS / 5

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self._buckets: dict[str, _Reserved] = {}  # of limits that are larger than MARGIN
        self._adding = threading.Lock()

    def next_reserved(self, bucket: str) -> Window | None:
        reserved = self._buckets.get(bucket)
        try:
            if reserved and time.monotonic() < reserved.expires:
                return Window(reserved.numbers.popleft(), reserved.counted.until)
        except IndexError:
            pass
        return None

    def size(self, caller: Caller) -> int:
        """Return the number of requests to count: twice as many as the last time if those were used before they
        expired."""
        reserved = self._buckets.get(caller.bucket)
        if reserved is None or time.monotonic() >= reserved.expires:
            return 1
        size = min(2 * reserved.size, _MAX_RESERVED)
        return size if rate_limit.left(caller.rate, reserved.counted) >= size + MARGIN else 1

    def add(self, bucket: str, reserved: _Reserved) -> Window:
        self.start()
        with self._adding:
            previous = self._buckets.get(bucket)
            if previous and previous.until == reserved.until:
                reserved.numbers.extendleft(reversed(_drain(previous.numbers)))
            first = reserved.numbers.popleft()
            self._buckets[bucket] = reserved
        return reserved.counted._replace(requests=first)

    def work(self, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        with self._adding:
            expired = {bucket: kept for bucket, kept in self._buckets.items() if now >= kept.expires}
            for bucket in expired:
                del self._buckets[bucket]
        for bucket, kept in expired.items():
            if unused := len(_drain(kept.numbers)):
                rate_windows.give_back(bucket, unused, until=kept.until)

    def end(self) -> None:
        self.work(now=float("inf"))


def _drain(numbers: deque[int]) -> list[int]:
    """Remove all numbers. Other threads may take some of them meanwhile, each of which only one thread gets."""
    drained = []
    while numbers:
        try:
            drained.append(numbers.popleft())
        except IndexError:
            break
    return drained


def get(key: str) -> tuple[Caller, Window | None]:
    """Return the caller of a key, and its window, in which this request is counted. The window is None if Redis
    counts."""
    statement, *arguments = _lookup(key)
    cached_callers: dict[tuple[Any, ...], _Cached] = this_app().extensions["linkmgr_callers"]
    identity, changes, now, size = tuple(arguments), _changes, time.monotonic(), 1
    cached = cached_callers.get(identity)
    if cached and cached.changes == changes and now < cached.stale_at:
        caller = cached.caller
        if rate_limit.window() is None:
            return caller, None
        if window := _reservations().next_reserved(caller.bucket):
            return caller, window
        size = _reservations().size(caller)
    row = statement(*arguments, size)
    count, until, clock = row.pop("count"), row.pop("until"), row.pop("now")
    caller = _caller(row)
    window = None
    if until is not None:
        counted = rate_limit.local_window(count, until, clock)
        window = reserve(caller, counted, size, until, now + min(RESERVED_SECONDS, until - clock))
    if caller.id is not None:
        if len(cached_callers) >= _MAX_CALLERS:
            cached_callers.clear()
        kept = caller._replace(key=caller.key._replace(is_first_use=False)) if caller.key else caller
        cached_callers[identity] = _Cached(kept, changes, now + KEEP_SECONDS)
    return caller, window


def stored(key: str) -> Caller:
    statement, *arguments = _lookup(key)
    row = statement(*arguments, 0)
    return _caller({name: value for name, value in row.items() if name not in ("count", "until", "now")})


def _caller(row: Row) -> Caller:
    return Caller(**row | {"key": Key(**row["key"]) if row.get("key") else None})


def reserve(caller: Caller, counted: Window, size: int, until: float, expires: float) -> Window:
    """Return the window with the number of this request. Keep the others of `size` requests that have been counted for
    the next requests."""
    if size == 1 and (caller.id is None or rate_limit.left(caller.rate, counted) < MARGIN):
        return counted
    numbers = deque(range(counted.requests - size + 1, counted.requests + 1))
    return _reservations().add(caller.bucket, _Reserved(counted, until, size, numbers, expires))


def forget() -> None:
    """Identify all callers again, after a change of users, keys or plans."""
    global _changes  # noqa: PLW0603 - all applications of a process use the same database
    _changes += 1


def _reservations() -> Reservations:
    reservations: Reservations = this_app().extensions["linkmgr_reservations"]
    return reservations


def _lookup(key: str) -> tuple[Any, ...]:
    network = web_request.network()
    if not key.startswith(keys.SCOPED_PREFIX):
        return stored_callers.identify, keys.digest(key), network
    if not keys.is_well_formed(key):  # a mistyped key is not looked up
        return stored_callers.identify, keys.digest(""), network
    try:
        address = str(ipaddress.ip_address(web_request.address()))
    except ValueError:
        address = None
    return stored_callers.identify_scoped, keys.digest(key), network, address


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_callers"] = {}
    app.extensions["linkmgr_reservations"] = Reservations(app)
