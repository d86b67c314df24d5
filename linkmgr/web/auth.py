"""Authentication of API requests.

The rate limit is checked before the key, so that it also limits clients that guess keys.

Each process keeps the callers of the last second, and the numbers of the requests that it has counted in advance, so
that a request of a busy key needs no statement before its handler. It counts in advance only while at least 64 requests
are left in the window, and drops the numbers at its end, so that no key gets more than its limit.
"""

import ipaddress
import time
from collections import deque
from typing import Any, NamedTuple

from flask import Flask, Response

from linkmgr import keys
from linkmgr.db import restricted
from linkmgr.errors import AppError
from linkmgr.repository import callers
from linkmgr.request import rate_limit, scopes
from linkmgr.request import request as web_request
from linkmgr.request.rate_limit import Window
from linkmgr.request.request import Caller, Key
from linkmgr.settings import this_app
from linkmgr.web import middleware, operation
from linkmgr.web.operation import Operation

KEEP_SECONDS = 1  # during which a change by another process has no effect
_MAX_BLOCK = 64  # requests to count with one statement
_MAX_RECENT = 4096
_changes = 0  # of users, keys and plans by this process


class _Recent(NamedTuple):
    caller: Caller
    counter: tuple[str, float | None]  # the bucket, and the end of its window by the clock of PostgreSQL
    window: Window | None  # with the requests that were counted, or None if Redis counts
    ends: float  # the window, by the monotonic clock
    numbers: deque[int]  # of the requests in the window that were counted in advance
    changes: int
    stale_at: float

    def take(self, now: float) -> int | None:
        """Return the number of a request that was counted in advance, or None if there is none."""
        try:
            return self.numbers.popleft() if now < self.ends else None
        except IndexError:
            return None

    def block(self) -> int:
        """Return the number of requests to count: in advance only while many are left."""
        left = rate_limit.left(self.caller.rate, self.window) if self.window else 0
        return min(left // _MAX_BLOCK + 1, _MAX_BLOCK)


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def _identify(key: str) -> tuple[Caller, Window | None]:
    """Return the caller and its window, in which this request is counted. The window is None if Redis counts."""
    if not key.startswith(keys.SCOPED_PREFIX):
        return _recent_or_stored(callers.identify, keys.digest(key), web_request.network())
    if not keys.is_well_formed(key):  # a mistyped key is not looked up
        return _recent_or_stored(callers.identify, keys.digest(""), web_request.network())
    try:
        address = str(ipaddress.ip_address(web_request.address()))
    except ValueError:
        address = None
    return _recent_or_stored(callers.identify_scoped, keys.digest(key), web_request.network(), address)


def _recent_or_stored(lookup: Any, *arguments: Any) -> tuple[Caller, Window | None]:
    callers: dict[tuple[Any, ...], _Recent] = this_app().extensions["linkmgr_recent_callers"]
    recent, changes, now = callers.get(arguments), _changes, time.monotonic()
    number = recent.take(now) if recent else None
    if recent and recent.changes == changes and now < recent.stale_at:
        if recent.window is None:
            return recent.caller, None
        if number:
            return recent.caller, recent.window._replace(requests=number)
    by = recent.block() if recent and not number else 1
    row = lookup(*arguments, by)
    count, until, clock = row.pop("count") or 0, row.pop("until"), row.pop("now") or 0
    caller = Caller(**row | {"key": Key(**row["key"]) if row.get("key") else None})
    counter, counted = (caller.bucket, until), deque(range(count - by + 1, count + 1))
    if recent and recent.counter == counter:
        number = number or counted.popleft()
        recent.numbers.extend(counted)
        counted = recent.numbers
    else:
        number = counted.popleft()
    window = None if until is None else rate_limit.local_window(number, until, clock)
    if caller.id is not None:
        if len(callers) >= _MAX_RECENT:
            callers.clear()
        kept = caller._replace(key=caller.key._replace(is_first_use=False)) if caller.key else caller
        total, ends = window and window._replace(requests=count), now + (until or 0) - clock
        callers[arguments] = _Recent(kept, counter, total, ends, counted, changes, now + KEEP_SECONDS)
    return caller, window


def forget() -> None:
    """Identify all callers again, after a change of users, keys or plans."""
    global _changes  # noqa: PLW0603 - all applications of a process use the same database
    _changes += 1


def _forget_after_write(response: Response) -> Response:
    request = web_request.current()
    stated = operation.current()
    if request.method not in ("GET", "HEAD", "OPTIONS") and (stated.changes_callers if stated else not request.is_api):
        forget()
    return response


def _check_request() -> Response | None:
    request = web_request.current()
    if not request.is_api:
        if request.method not in ("GET", "HEAD", "OPTIONS") and not middleware.is_same_origin(request):
            raise AppError("foreign_origin")
        return None
    if request.method == "OPTIONS" and (preflight := middleware.answer_preflight(request)):
        return preflight
    authenticate(request)
    return None


def authenticate(request: web_request.Request) -> None:
    key = _key(request)
    caller, window = _identify(key or "")
    request.caller = caller
    web_request.set_log_user(caller.id)
    rate_limit.enforce(caller.bucket, caller.rate, window)
    stated = operation.current()
    if stated and stated.scope == operation.PUBLIC:
        return
    if key is None:
        raise AppError("key_missing")
    if caller.id is None:
        raise _refusal(caller)
    if not (caller.api or caller.admin):
        raise AppError("plan_feature", detail="the API")
    if caller.key is not None:
        _use(caller.key, stated)
    if stated and stated.scope == scopes.ADMIN and not caller.admin:
        raise AppError("administrators_only")


def _refusal(caller: Caller) -> AppError:
    if caller.suspended:
        return AppError("account_suspended")
    if caller.key is not None and not caller.key.is_allowed:
        return AppError("address_not_allowed")
    return AppError("key_expired" if caller.key_valid is False else "key_unknown")


def _use(key: Key, stated: Operation | None) -> None:
    """Check that a scoped key allows the request, and restrict its statements to the rows that it may use."""
    if key.is_first_use:
        callers.record_use(key.id, web_request.address())
    if stated:
        scopes.require(key, stated.scope, stated.restricted, stated.selections)
    if key.is_restricted:
        restricted.restrict(key.id, own_only=key.own_only, domains=key.domains)


def init_app(app: Flask) -> None:
    """Call this after the hook that rejects other hosts, which have no API."""
    app.extensions["linkmgr_recent_callers"] = {}
    app.before_request(_check_request)
    app.after_request(_forget_after_write)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    """Return the caller's user id, the first parameter of every API statement."""
    caller_id = caller().id
    assert caller_id is not None
    return caller_id
