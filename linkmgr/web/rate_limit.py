"""The rate limit: flask-limiter decides and words the headers, over a count that the gate already has.

In PostgreSQL the statement that looks the caller up counts the request as well.  In Redis one script counts it.
Either way the answer is remembered for this request, since flask-limiter would ask for it again for each header.
"""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from flask import Flask, request
from flask_limiter import HeaderNames, Limiter, RateLimitExceeded, RequestLimit
from flask_limiter._extension import LimiterContext
from limits import RateLimitItem, WindowStats, parse
from limits.storage import Storage
from limits.storage.redis import RedisStorage
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from linkmgr.settings import settings, this_app
from linkmgr.web import metrics
from linkmgr.web import request as web_request
from linkmgr.web.errors import RETRY_SECONDS, Refusal

PLAN_WINDOW = 60  # seconds: a plan's own rate is per minute
_HEADERS = "linkmgr.rate_headers"  # key of the WSGI environment
_SCOPE = "api"
_TRIES = 3


class Hits(NamedTuple):
    """A caller's requests in the current window, this one included, and the epoch second of the window's end."""

    requests: int
    until: float


def counted(requests: int, until: float, now: float) -> Hits:
    """Return what PostgreSQL counted, by the clock of this machine. Whole seconds are added to PostgreSQL's time, so
    that all responses of a window have the same end."""
    return Hits(requests, until - round(now - time.time()))


class _Asked(threading.local):
    """What is known of the request that the thread works on."""

    bucket: str
    rate: str
    hits: Hits | None

    def __init__(self) -> None:
        self.decision = LimiterContext()


_asked = _Asked()


def _hits() -> Hits:
    if _asked.hits is None:  # counted in this process, and meanwhile Redis came back
        raise RedisError
    return _asked.hits


class _Remembered:
    """What flask-limiter asks for is what was counted in this request."""

    def get(self, key: str) -> int:
        return _hits().requests

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
        local left = redis.call('PTTL', KEYS[1])
        if left < 0 or left > ARGV[1] * 1000 then
            redis.call('EXPIRE', KEYS[1], ARGV[1])
            left = ARGV[1] * 1000
        end
        return {count, left}
    """

    def __init__(self, uri: str, **options: Any) -> None:
        super().__init__(uri.removeprefix("linkmgr+"), **options)
        self._count = self.storage.register_script(self._COUNT)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        count, milliseconds = self._count([self.prefixed_key(key)], [expiry, amount])
        _asked.hits = Hits(count, time.time() + milliseconds / 1000)
        return int(count)


class _Decided(RequestLimit):
    """One whose window is known, and whose key nobody needs: flask-limiter would ask the storage for it, twice."""

    def __init__(self, limit: RateLimitItem, hits: Hits, *, breached: bool) -> None:
        self.limit, self.breached = limit, breached
        self._window = WindowStats(hits.until, max(0, limit.amount - hits.requests))


class _Answer:
    """Stands for the one that there will be, when flask-limiter words its headers."""

    def __init__(self) -> None:
        self.headers = self
        self.worded: list[tuple[str, str]] = []

    def add(self, name: str, value: str) -> None:
        self.worded.append((name, value))

    def get(self, name: str) -> None:
        """None is there yet."""

    def set(self, name: str, value: str) -> None:
        """Retry-After, which flask-limiter would put on every answer."""


class _GateLimiter(Limiter):
    """Asked by the gate."""

    window: int | None
    rate: str  # of who has none of a plan's
    guarded: Callable[[], None]
    inject: Callable[[Any], Any]

    @property
    def context(self) -> LimiterContext:
        return _asked.decision

    def decide(self, hits: Hits) -> RequestLimit:
        """What flask-limiter does once it has found which limits apply.  There is one, and no storage that could
        fail: finding that out again for each request takes longer than the decision."""
        item = _item(_asked.rate)
        self.context.view_rate_limit = decided = _Decided(item, hits, breached=not self.limiter.hit(item))
        return decided

    def ask(self) -> RequestLimit:
        """What the storage of flask-limiter's own, or its replacement in this process, has counted.

        When Redis goes while several requests wait for it, flask-limiter turns to the replacement in one of them and
        fails in the others, which ask again.
        """
        _asked.decision.reset()
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

    def headers(self) -> list[tuple[str, str]]:
        answer = _Answer()
        self.inject(answer)
        return answer.worded


@lru_cache
def _item(rate: str) -> RateLimitItem:
    return parse(rate)


def _limiter() -> _GateLimiter:
    found: _GateLimiter = this_app().extensions["linkmgr_limiter"]
    return found


def window() -> int | None:
    """Of the setting RATE_LIMIT, in seconds.  None: PostgreSQL has nothing to count."""
    return _limiter().window


def headers(environ: dict[str, Any]) -> list[tuple[str, str]]:
    """The three of every answer of the API."""
    found: list[tuple[str, str]] | None = environ.get(_HEADERS)
    if found is not None:
        return found
    # The request failed before it could be counted: nothing remains until it may be tried again.
    return [
        (HeaderNames.LIMIT.value, str(_item(_limiter().rate).amount)),
        (HeaderNames.REMAINING.value, "0"),
        (HeaderNames.RESET.value, str(int(time.time()) + RETRY_SECONDS)),
    ]


def init_app(app: Flask) -> None:
    options: dict[str, Any] = {}
    redis = settings().rate_limit_storage
    if redis:
        # A dead Redis must cost a request next to nothing; it is then counted in this process.
        options = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2, "retry": Retry(NoBackoff(), 0)}
    limiter = _GateLimiter(
        lambda: _asked.bucket,
        app=app,
        headers_enabled=True,
        storage_uri=f"linkmgr+{redis}" if redis else "postgresql://",
        storage_options=options,
        in_memory_fallback_enabled=bool(redis),
        # Paths that match no route are limited too.
        request_identifier=lambda: request.endpoint or "unmatched",
    )
    limiter.rate = settings().rate_limit
    limiter.window = None if redis else _item(limiter.rate).get_expiry()
    # Its hooks would cost every public page as well: the gate asks it, and for its headers.
    app.before_request_funcs[None].pop()
    app.teardown_request_funcs[None].pop()
    limiter.inject = app.after_request_funcs[None].pop()
    app.extensions["linkmgr_limiter"] = limiter
    limiter.guarded = limiter.shared_limit(lambda: _asked.rate, scope=_SCOPE)(_guarded)


def _guarded() -> None:
    """What flask-limiter guards: one bucket over all of the API."""


def admit(bucket: str, rate: int | None, hits: Hits | None) -> None:
    """Refuses the request when its caller has used up the window.

    `rate` is the plan's, a minute; `hits` is what PostgreSQL counted, where it counts.
    """
    limiter = _limiter()
    _asked.bucket, _asked.rate = bucket, f"{rate} per minute" if rate else limiter.rate
    _asked.hits = hits
    decided = limiter.decide(hits) if hits else limiter.ask()
    web_request.current().environ[_HEADERS] = limiter.headers()
    if decided.breached:
        metrics.count("limiter_refusals")
        item = decided.limit
        # Not `reset_at`, which is the second after the window's end.
        seconds = min(item.get_expiry(), max(1, math.ceil(decided.window.reset_time - time.time())))
        per = item.GRANULARITY.name if item.multiples == 1 else f"{item.multiples} {item.GRANULARITY.name}s"
        raise Refusal("rate_limited", limit=item.amount, per=per, seconds=seconds)
