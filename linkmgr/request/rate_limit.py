"""Rate limiting: one window per caller for the whole API.

PostgreSQL counts requests in the statement that identifies the caller (repository/api_keys.py). If RATE_LIMIT_STORAGE
is set, Redis counts them. The hooks of Flask-Limiter would run on every public page and query the storage again for
each header, so of its packages only `limits` is used, which parses the rates.
"""

import math
import time
from functools import lru_cache
from typing import Any

from flask import Flask
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from linkmgr import metrics
from linkmgr.db.statements import Row
from linkmgr.errors import RETRY_SECONDS, AppError
from linkmgr.request import request as web_request
from linkmgr.request.request import Window
from linkmgr.settings import settings, this_app

Headers = list[tuple[str, str]]

PLAN_WINDOW = 60  # seconds: a plan's own rate is per minute
_HEADERS = "linkmgr.rate_headers"  # key of the WSGI environment


def local_window(requests: int, until: float, now: float) -> Window:
    """Convert a window of PostgreSQL to the local clock.

    The difference between the clocks is rounded, so that all responses of a window have the same `Reset`.
    """
    return Window(requests, until - round(now - time.time()))


class RedisCounter:
    """Count requests in Redis. While Redis is unavailable, count in this process and retry Redis later."""

    # One round trip. The expiry is set again if it is missing or too long.
    _COUNT = """
        local count = redis.call('INCR', KEYS[1])
        local ttl = redis.call('PTTL', KEYS[1])
        if ttl < 0 or ttl > ARGV[1] * 1000 then
            redis.call('EXPIRE', KEYS[1], ARGV[1])
            ttl = ARGV[1] * 1000
        end
        return {count, ttl}
    """

    def __init__(self, url: str) -> None:
        # Short timeouts: an unavailable Redis must not slow down requests.
        timeouts: dict[str, Any] = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2}
        client = Redis.from_url(url.replace("redis+unix://", "unix://"), retry=Retry(NoBackoff(), 0), **timeouts)
        self._count = client.register_script(self._COUNT)
        self._local = MemoryStorage()
        self._retry_at = 0.0

    def hit(self, bucket: str, limit: RateLimitItem) -> Window:
        key = limit.key_for(bucket)
        if time.monotonic() >= self._retry_at:
            try:
                requests, milliseconds = self._count([key], [limit.get_expiry()])
                return Window(requests, time.time() + milliseconds / 1000)
            except RedisError:
                self._retry_at = time.monotonic() + RETRY_SECONDS
        return Window(self._local.incr(key, limit.get_expiry()), self._local.get_expiry(key))


@lru_cache
def parse_rate(rate: str) -> RateLimitItem:
    return parse(rate)


def period(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"


def window() -> int | None:
    """Return the window of RATE_LIMIT in seconds, or None if PostgreSQL does not count."""
    return None if settings().rate_limit_storage else parse_rate(settings().rate_limit).get_expiry()


def page_window() -> int:
    """Return the window of PAGE_RATE_LIMIT in seconds."""
    return parse_rate(settings().page_rate_limit).get_expiry()


def enforce_pages(counter: Row) -> None:
    """Raise `pages_limited` if more pages were opened in the current window than PAGE_RATE_LIMIT allows."""
    limit = parse_rate(settings().page_rate_limit)
    if counter["count"] > limit.amount:
        raise AppError("pages_limited", limit=limit.amount, per=period(limit), seconds=max(1, counter["seconds"]))


def init_app(app: Flask) -> None:
    if url := settings().rate_limit_storage:
        app.extensions["linkmgr_rate_counter"] = RedisCounter(url)


def headers(environ: dict[str, Any]) -> Headers:
    """Return the rate-limit headers of a response."""
    enforced: Headers | None = environ.get(_HEADERS)
    return enforced or headers_of_uncounted(settings().rate_limit)


def headers_of_uncounted(rate: str, *, is_whole: bool = False) -> Headers:
    """Return the headers for a request that was not counted, for example because the database is unavailable. They
    report the whole limit for a malformed request, whose caller is unknown."""
    limit = parse_rate(rate)
    seconds = min(limit.get_expiry(), RETRY_SECONDS)
    return _headers("default", limit, limit.amount * is_whole, time.time() + RETRY_SECONDS, seconds)


@lru_cache
def _names(name: str, limit: RateLimitItem) -> tuple[str, str, str, str]:
    """Return the names of the three documented headers, and the policy."""
    prefix = "X-RateLimit" if name == "default" else f"X-RateLimit-{name.title()}"
    policy = f'"{name}";q={limit.amount};w={limit.get_expiry()}'
    return f"{prefix}-Limit", f"{prefix}-Remaining", f"{prefix}-Reset", policy


def _headers(name: str, limit: RateLimitItem, remaining: int, reset: float, seconds: int) -> Headers:
    """Return the three documented headers, and those of draft-ietf-httpapi-ratelimit-headers-11."""
    name_of_limit, name_of_remaining, name_of_reset, policy = _names(name, limit)
    return [
        (name_of_limit, str(limit.amount)),
        (name_of_remaining, str(remaining)),
        (name_of_reset, str(math.ceil(reset))),
        ("RateLimit-Policy", policy),
        ("RateLimit", f'"{name}";r={remaining};t={seconds}'),
    ]


def report(name: str, limit: RateLimitItem, remaining: int, seconds: int) -> None:
    """Report a second limit in the headers of the response."""
    environ = web_request.current().environ
    reported = dict(headers(environ))
    for header, value in _headers(name, limit, remaining, math.ceil(time.time()) + seconds, seconds):
        reported[header] = f"{reported[header]}, {value}" if header in reported else value
    environ[_HEADERS] = [*reported.items()]


def _limit(rate: int | None) -> RateLimitItem:
    return parse_rate(f"{rate} per minute" if rate else settings().rate_limit)


def left(rate: int | None, window: Window) -> int:
    """Return the number of requests that the window still allows."""
    return max(0, _limit(rate).amount - window.requests)


def enforce(bucket: str, rate: int | None, window: Window | None) -> None:
    """Raise `rate_limited` if the caller has exceeded its limit.

    `rate` is the plan's requests per minute, or None for RATE_LIMIT. `window` is None if Redis counts.
    """
    limit = _limit(rate)
    if window is None:
        counter: RedisCounter = this_app().extensions["linkmgr_rate_counter"]
        window = counter.hit(bucket, limit)
    remaining = left(rate, window)
    seconds = min(limit.get_expiry(), max(1, math.ceil(window.until - time.time())))
    web_request.current().environ[_HEADERS] = _headers("default", limit, remaining, window.until, seconds)
    if window.requests > limit.amount:
        metrics.count("limiter_refusals")
        raise AppError("rate_limited", limit=limit.amount, per=period(limit), seconds=seconds)
