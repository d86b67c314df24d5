"""The rate limit: flask-limiter decides and words the headers, over a count that the gate already has.

In PostgreSQL the statement that looks the caller up counts the request as well.  In Redis one script counts it.
Either way `g.hits` remembers the answer, since flask-limiter would ask for it again for each header.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, current_app, g, request
from flask_limiter import HeaderNames, Limiter, RateLimitExceeded, RequestLimit
from limits import RateLimitItem, WindowStats, parse
from limits.storage import Storage
from limits.storage.redis import RedisStorage
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from linkmgr import metrics
from linkmgr.envelope import is_api
from linkmgr.errors import RETRY_SECONDS, Refusal
from linkmgr.settings import settings

PLAN_WINDOW = 60  # seconds: a plan's own rate is per minute
_SCOPE = "api"
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Hits:
    """A caller's requests in the current window, this one included, and the epoch second of the window's end."""

    count: int
    until: float


def _hits() -> Hits:
    found: Hits | None = g.get("hits")
    if found is None:  # counted in this process, and meanwhile Redis came back
        raise RedisError
    return found


class _Remembered:
    """What flask-limiter asks for is what was counted in this request."""

    def get(self, key: str) -> int:
        return _hits().count

    def get_expiry(self, key: str) -> float:
        return _hits().until


class _Counted(_Remembered, Storage):
    """PostgreSQL, which the gate has asked already."""

    STORAGE_SCHEME = ["postgresql"]
    base_exceptions = RedisError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        return self.get(key)

    def check(self) -> bool:
        return True

    def reset(self) -> None:
        raise NotImplementedError

    def clear(self, key: str) -> None:
        raise NotImplementedError


class _RedisCounted(_Remembered, RedisStorage):
    """Redis, asked once a request."""

    STORAGE_SCHEME = ["linkmgr+redis", "linkmgr+rediss", "linkmgr+redis+unix"]
    _COUNT = """
        local count = redis.call('INCRBY', KEYS[1], ARGV[2])
        if count == tonumber(ARGV[2]) then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
        return {count, redis.call('PTTL', KEYS[1])}
    """

    def __init__(self, uri: str, **options: Any) -> None:
        super().__init__(uri.removeprefix("linkmgr+"), **options)
        self._count = self.storage.register_script(self._COUNT)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        count, milliseconds = self._count([self.prefixed_key(key)], [expiry, amount])
        g.hits = Hits(count, time.time() + milliseconds / 1000)
        return int(count)


class _Decided(RequestLimit):
    """One whose window is known: flask-limiter would ask the storage for it, twice."""

    @property
    def window(self) -> WindowStats:
        hits: Hits = g.hits
        return WindowStats(hits.until, max(0, self.limit.amount - hits.count))


class _GateLimiter(Limiter):
    """Asked by the gate."""

    guarded: Callable[[], None]
    word_headers: Callable[[Response], Any]

    def decide(self, item: RateLimitItem, bucket: str) -> RequestLimit:
        """What flask-limiter does once it has found which limits apply.  There is one, and no storage that could
        fail: finding that out again for each request takes longer than the decision."""
        identifiers = [bucket, _SCOPE]
        breached = not self.limiter.hit(item, *identifiers)
        self.context.view_rate_limit = decided = _Decided(self, item, identifiers, breached, shared=True)
        return decided

    def ask(self) -> RequestLimit:
        """What the storage of flask-limiter's own, or its replacement in this process, has counted.

        When Redis goes while several requests wait for it, flask-limiter turns to the replacement in one of them and
        fails in the others, which ask again.
        """
        for _ in range(_TRIES - 1):
            with suppress(RedisError):
                return self._ask()
        return self._ask()

    def _ask(self) -> RequestLimit:
        with suppress(RateLimitExceeded):
            self.guarded()
        assert self.current_limit is not None
        assert self.current_limit.window  # kept from now on, whichever storage is asked by then
        return self.current_limit


def counts_in_database() -> bool:
    return not settings().rate_limit_storage


@lru_cache
def _item(rate: str) -> RateLimitItem:
    return parse(rate)


def window() -> int:
    """Of the setting RATE_LIMIT, in seconds."""
    return _item(settings().rate_limit).get_expiry()


def _rate() -> str:
    rate: int | None = g.caller.rate
    return f"{rate} per minute" if rate else settings().rate_limit


def _bucket() -> str:
    bucket: str = g.caller.bucket
    return bucket


def _limiter() -> _GateLimiter:
    found: _GateLimiter = current_app.extensions["linkmgr_limiter"]
    return found


def _complete_headers(response: Response) -> Response:
    """The three headers on every answer of the API, and Retry-After on 429 and 503 alone."""
    if not is_api():
        return response
    _limiter().word_headers(response)
    headers = response.headers
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        headers["Retry-After"] = str(g.seconds_left)
    elif response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_SECONDS)
    else:
        headers.pop("Retry-After", None)
    if HeaderNames.LIMIT.value not in headers:
        # The request failed before it could be counted: nothing remains until it may be tried again.
        headers[HeaderNames.LIMIT.value] = str(_item(settings().rate_limit).amount)
        headers[HeaderNames.REMAINING.value] = "0"
        headers[HeaderNames.RESET.value] = str(int(time.time()) + RETRY_SECONDS)
    return response


def init_app(app: Flask) -> None:
    app.after_request(_complete_headers)
    options: dict[str, Any] = {}
    if settings().rate_limit_storage:
        # A dead Redis must cost a request next to nothing; it is then counted in this process.
        options = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2, "retry": Retry(NoBackoff(), 0)}
    limiter = _GateLimiter(
        _bucket,
        app=app,
        headers_enabled=True,
        storage_uri=f"linkmgr+{settings().rate_limit_storage}" if settings().rate_limit_storage else "postgresql://",
        storage_options=options,
        in_memory_fallback_enabled=bool(settings().rate_limit_storage),
        # Paths that match no route are limited too.
        request_identifier=lambda: request.endpoint or "unmatched",
    )
    # Its hooks would cost every public page as well: the gate asks it, and its headers are asked for above.
    app.before_request_funcs[None].pop()
    app.teardown_request_funcs[None].pop()
    limiter.word_headers = app.after_request_funcs[None].pop()
    app.extensions["linkmgr_limiter"] = limiter
    limiter.guarded = limiter.shared_limit(_rate, scope=_SCOPE)(_guarded)


def _guarded() -> None:
    """What flask-limiter guards: one bucket over all of the API."""


def admit() -> None:
    """Refuses the request when its caller has used up the window."""
    limiter = _limiter()
    decided = limiter.decide(_item(_rate()), g.caller.bucket) if counts_in_database() else limiter.ask()
    if decided.breached:
        metrics.count("limiter_refusals")
        item = decided.limit
        g.seconds_left = max(1, math.ceil(decided.reset_at - time.time()))
        per = item.GRANULARITY.name if item.multiples == 1 else f"{item.multiples} {item.GRANULARITY.name}s"
        raise Refusal("rate_limited", limit=item.amount, per=per, seconds=g.seconds_left)
