"""Callers of the API by their keys, and the requests that are counted for them.

Callers are cached for a second. For busy keys one statement reserves up to 64 requests of the window. A limit still
admits exactly its number of requests: they are reserved only while many more are left, and those that a process has not
used after a quarter of a second are given back.
"""

import threading
import time
from collections import deque
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from flask import Flask

from linkmgr.core import keys
from linkmgr.core.database.background import Background
from linkmgr.core.database.statements import Row
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web import limiter
from linkmgr.core.web import rate_windows as stored_callers
from linkmgr.core.web import request as web_request
from linkmgr.core.web.caller import Caller, Key, Limit, Lookup, Window

KEEP_SECONDS = 1.0  # during which a change by another process has no effect
RESERVED_SECONDS = 0.25
# Requests that are left in the window behind those that are reserved. To count so many, one by one, takes longer than
# RESERVED_SECONDS. So whatever is reserved has been used or given back when the last request is counted. A share of
# what is left would not be exact: the whole of a limit of 600 requests can be counted in less than RESERVED_SECONDS.
MARGIN = 3000
_MAX_RESERVED = 64  # by one statement
_MAX_CALLERS = 4096
_changes = 0  # of users, keys and plans by this process
_members = itemgetter(*Caller._fields[1:-1])  # of a row: all but the limit and the key


class _Cached(NamedTuple):
    lookup: Lookup
    caller: Caller
    changes: int
    stale_at: float


class _Reserved(NamedTuple):
    counted: Window  # all requests of the window, when these were reserved
    until: float  # the end of the window by the clock of PostgreSQL
    size: int
    numbers: deque[int]
    expires: float

    def take(self) -> Window | None:
        try:
            if time.monotonic() < self.expires:
                return Window(self.numbers.popleft(), self.counted.until)
        except IndexError:
            pass
        return None

    def next_size(self, limit: Limit) -> int:
        """Return the number of requests to count: twice as many as were used of those of the last time."""
        size = min(2 * max(1, self.size - len(self.numbers)), _MAX_RESERVED)
        return size if _left(limit, self.counted) >= size + MARGIN else 1


class Reservations(Background):
    """The reserved requests of this process by bucket. Those that expire are given back."""

    name = "giving back reserved requests"
    pause = RESERVED_SECONDS / 5

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self.buckets: dict[str, _Reserved] = {}  # of limits that are larger than MARGIN
        self._adding = threading.Lock()

    def add(self, bucket: str, reserved: _Reserved) -> Window:
        self.start()
        with self._adding:
            previous = self.buckets.get(bucket)
            if previous and previous.until == reserved.until:
                reserved.numbers.extendleft(reversed(_drain(previous.numbers)))
            first = reserved.numbers.popleft()
            self.buckets[bucket] = reserved
        return reserved.counted._replace(requests=first)

    def work(self, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        with self._adding:
            expired = {bucket: kept for bucket, kept in self.buckets.items() if now >= kept.expires}
            for bucket in expired:
                del self.buckets[bucket]
        for bucket, kept in expired.items():
            if unused := len(_drain(kept.numbers)):
                stored_callers.give_back(bucket, unused, until=kept.until)

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


def _left(limit: Limit, window: Window) -> int:
    return limiter.parse_rate(limit.rate).amount - window.requests


def get(key: str, address: str) -> tuple[Caller, Window | None]:
    """Return the caller of a key at an IP address, and its window, in which this request is counted. The window is None
    if Redis counts."""
    callers: dict[tuple[str, str], _Cached] = this_app().extensions["linkmgr_callers"]
    reservations: Reservations = this_app().extensions["linkmgr_reservations"]
    identity, changes, now, size = (key, address), _changes, time.monotonic(), 1
    cached = callers.get(identity)
    if cached and cached.changes == changes and now < cached.stale_at:
        if settings().rate_window is None:
            return cached.caller, None
        if reserved := reservations.buckets.get(cached.caller.limit.bucket):
            if window := reserved.take():
                return cached.caller, window
            size = reserved.next_size(cached.caller.limit)
    lookup = cached.lookup if cached else _lookup(key)
    row = lookup(size)
    count, until, clock = row["count"], row["until"], row["now"]
    caller = _caller(row)
    window = None
    if until is not None:
        # The difference between the clocks is rounded, so that all responses of a window have the same `Reset`.
        window = Window(count, until - round(clock - time.time()))
        if size > 1 or (caller.id is not None and _left(caller.limit, window) >= MARGIN):
            window = reserve(caller.limit.bucket, window, size, until, now + min(RESERVED_SECONDS, until - clock))
    if caller.id is not None:
        if len(callers) >= _MAX_CALLERS:
            callers.clear()
        kept = caller._replace(key=caller.key._replace(is_first_use=False)) if caller.key else caller
        callers[identity] = _Cached(lookup, kept, changes, now + KEEP_SECONDS)
    return caller, window


def stored(key: str) -> Caller:
    return _caller(_lookup(key)(0))


def _caller(row: Row) -> Caller:
    key = Key(**row["key"]) if row.get("key") else None
    return Caller._make((Limit(row["bucket"], row["rate"], "rate_limited"), *_members(row), key))


def reserve(bucket: str, counted: Window, size: int, until: float, expires: float) -> Window:
    """Return the window with the number of this request. Keep the others of `size` requests that have been counted for
    the next requests."""
    numbers = deque(range(counted.requests - size + 1, counted.requests + 1))
    reservations: Reservations = this_app().extensions["linkmgr_reservations"]
    return reservations.add(bucket, _Reserved(counted, until, size, numbers, expires))


def forget() -> None:
    global _changes  # noqa: PLW0603 - all applications of a process use the same database
    _changes += 1


def _lookup(key: str) -> Lookup:
    return hooks().find_key(key) or partial(stored_callers.identify, keys.digest(key), web_request.network())


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_callers"] = {}
    app.extensions["linkmgr_reservations"] = Reservations(app)
