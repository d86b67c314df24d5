"""Rates, windows and headers of limits, which Flask-Limiter enforces.

PostgreSQL counts, mostly in the statement that identifies the caller or the session: the storage then returns what that
statement has counted. With RATE_LIMIT_STORAGE Redis counts, and this process while Redis is unavailable.
"""

import math
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from flask import Flask, Response
from flask_limiter import HeaderNames, Limiter, RateLimitExceeded
from limits import RateLimitItem, parse
from limits.storage import RedisStorage, Storage
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from linkmgr.core import metrics
from linkmgr.core.errors import RETRY_SECONDS, AppError
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web import rate_windows as callers
from linkmgr.core.web.caller import Limit, Window
from linkmgr.core.web.request import current

Headers = list[tuple[str, str]]

SCOPE = "limit"  # part of the key of each counter
# Short timeouts: an unavailable Redis must not slow down requests.
_REDIS: dict[str, Any] = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2, "retry": Retry(NoBackoff(), 0)}
_noting = threading.Lock()


@lru_cache
def parse_rate(rate: str) -> RateLimitItem:
    return parse(rate)


def period(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"


def later(seconds: float) -> float:
    return time.time() + seconds


def seconds_left(until: float, limit: RateLimitItem) -> int:
    return min(limit.get_expiry(), max(1, math.ceil(until - time.time())))


# --- the storages


class Windows(Storage):
    """Counters in PostgreSQL. The key of a counter contains its bucket and its rate."""

    STORAGE_SCHEME = ["windows"]
    base_exceptions: Any = ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        bucket, _ = _parse(key)
        return int(callers.count(bucket, by=amount, window=expiry)["count"])

    def get(self, key: str) -> int:
        return _stored(key).requests

    def get_expiry(self, key: str) -> float:
        return _stored(key).until

    def check(self) -> bool:
        return True

    def reset(self) -> None:
        raise NotImplementedError

    def clear(self, key: str) -> None:
        raise NotImplementedError


class CountedWindows(Windows):
    """The window of the current request, in which a statement may have counted it."""

    STORAGE_SCHEME = ["counted"]

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        window = current().window
        return window.requests if window else super().incr(key, expiry, amount)

    def get(self, key: str) -> int:
        window = current().window
        return window.requests if window else super().get(key)

    def get_expiry(self, key: str) -> float:
        window = current().window
        return window.until if window else super().get_expiry(key)


class RedisWindows(RedisStorage):
    """Counters in Redis. One round trip for a request, also if its headers ask for the window."""

    STORAGE_SCHEME = ["windows+redis", "windows+rediss", "windows+redis+unix"]

    def __init__(self, uri: str, **options: Any) -> None:
        super().__init__(uri.removeprefix("windows+"), **options)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        name, redis = self.prefixed_key(key), cast("Redis", self.get_connection())
        with redis.pipeline() as pipeline:
            pipeline.incrby(name, amount)
            pipeline.pttl(name)
            requests, milliseconds = pipeline.execute()
        if not 0 <= milliseconds <= expiry * 1000:  # a new window, or one without end, or with a later one
            redis.expire(name, expiry)
            milliseconds = expiry * 1000
        current().window = Window(requests, later(milliseconds / 1000))
        return int(requests)

    def get(self, key: str) -> int:
        window = current().window
        return window.requests if window else super().get(key)

    def get_expiry(self, key: str) -> float:
        window = current().window
        return window.until if window else super().get_expiry(key)


def _parse(key: str) -> tuple[str, int]:
    bucket, _, amount, multiples, granularity = key.removeprefix("LIMITER/").rsplit("/", 4)
    return bucket, parse_rate(f"{amount} per {multiples} {granularity}").get_expiry()


def _stored(key: str) -> Window:
    bucket, seconds = _parse(key)
    counters = callers.counts([bucket], window=seconds)
    counter = counters[0] if counters else {"count": 0, "seconds": 0}
    return Window(counter["count"], later(counter["seconds"]))


# --- the limits


class _Api:
    """The application for Flask-Limiter, which has no setting for the requests that its hooks run on.

    Its headers are for the API only. Its hook before requests has no limits and would run for every page and image:
    `enforce` counts a request as soon as its caller is known.
    """

    def __init__(self, app: Flask) -> None:
        self.config, self.extensions, self._app = app.config, app.extensions, app

    def before_request(self, hook: Callable[[], None]) -> None: ...

    def after_request(self, hook: Callable[[Response], Response]) -> None:
        self._app.after_request(lambda response: _report(hook(response)) if current().is_api else response)

    def teardown_request(self, hook: Callable[[BaseException | None], None]) -> None:
        """It clears what the context of the request drops anyway."""


def _nothing() -> None:
    pass


def init_app(app: Flask) -> None:
    redis = settings().rate_limit_storage
    limiter = Limiter(
        lambda: current().limit.bucket,
        storage_uri=f"windows+{redis}" if redis else "counted://",
        storage_options=_REDIS if redis else {},
        in_memory_fallback_enabled=bool(redis),
        swallow_errors=bool(redis),  # other requests that wait for Redis when it is lost
        headers_enabled=True,
        # It would be sent with every response. `_report` replaces the value.
        header_name_mapping={HeaderNames.RETRY_AFTER: "RateLimit"},
        request_identifier=lambda: "any",  # paths without a route count too
    )
    limiter.init_app(cast("Flask", _Api(app)))
    shared = limiter.shared_limit(lambda: current().limit.rate, scope=SCOPE, error_message=lambda: current().limit.code)
    app.extensions["linkmgr_redis_lost"] = False
    app.extensions["linkmgr_limiter"], app.extensions["linkmgr_enforce_limit"] = limiter, shared(_nothing)


def enforce(limit: Limit, window: Window | None = None) -> None:
    """Count a request, unless `window` has counted it. Raise RateLimitExceeded with the code of the limit."""
    request = current()
    request.limit, request.window = limit, window
    try:
        this_app().extensions["linkmgr_enforce_limit"]()
    finally:
        if settings().rate_limit_storage:
            _note_storage()


def _note_storage() -> None:
    """Count the requests without Redis. Log its loss and its return once in each process."""
    limiter: Limiter = this_app().extensions["linkmgr_limiter"]
    is_lost = limiter.limiter.storage is not limiter.storage
    if is_lost:
        metrics.count("limiter_fallbacks")
    with _noting:
        was_lost, this_app().extensions["linkmgr_redis_lost"] = this_app().extensions["linkmgr_redis_lost"], is_lost
    if is_lost != was_lost:
        state = "is unavailable, each process counts its own requests" if is_lost else "is available again"
        this_app().logger.warning("rate limit: Redis %s", state)


def enforce_pages(owner: object, window: Window | None = None) -> None:
    enforce(Limit(f"pages:{owner}", settings().page_rate_limit, "pages_limited"), window)


def refusal(error: RateLimitExceeded) -> AppError:
    metrics.count("limiter_refusals")
    limiter: Limiter = this_app().extensions["linkmgr_limiter"]
    exceeded = limiter.current_limit
    assert exceeded
    seconds = seconds_left(limiter.limiter.storage.get_expiry(exceeded.key), exceeded.limit)
    amount, per = exceeded.limit.amount, period(exceeded.limit)
    return AppError(error.description, limit=amount, per=per, seconds=seconds)


# --- the headers


def _window_of_process() -> Window | None:
    """Return the window that this process has counted because Redis is unavailable, or None if nothing is counted."""
    limiter: Limiter = this_app().extensions["linkmgr_limiter"]
    limit = limiter.current_limit
    if limit is None:
        return None
    storage = limiter.limiter.storage
    return Window(storage.get(limit.key), storage.get_expiry(limit.key))


def _report(response: Response) -> Response:
    request = current()
    window = request.window or _window_of_process()
    if window is None:
        response.headers.extend(headers_of_uncounted(settings().rate_limit))
        return response
    limit = parse_rate(request.limit.rate)
    remaining, seconds = max(0, limit.amount - window.requests), seconds_left(window.until, limit)
    policy, state = _draft("default", limit, remaining, seconds)
    if rows := request.rows:
        response.headers.extend(_documented("X-RateLimit-Rows", rows.limit, rows.remaining, later(rows.seconds)))
        rows_policy, rows_state = _draft("rows", rows.limit, rows.remaining, rows.seconds)
        policy, state = f"{policy}, {rows_policy}", f"{state}, {rows_state}"
    response.headers["RateLimit-Policy"], response.headers["RateLimit"] = policy, state
    return response


def headers_of_uncounted(rate: str, *, is_whole: bool = False) -> Headers:
    """Return the headers for a request that was not counted, for example because the database is unavailable. They
    report the whole limit for a malformed request, whose caller is unknown."""
    limit = parse_rate(rate)
    seconds, remaining = min(limit.get_expiry(), RETRY_SECONDS), limit.amount * is_whole
    policy, state = _draft("default", limit, remaining, seconds)
    return [
        *_documented("X-RateLimit", limit, remaining, later(RETRY_SECONDS)),
        ("RateLimit-Policy", policy),
        ("RateLimit", state),
    ]


def _documented(prefix: str, limit: RateLimitItem, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-Limit", str(limit.amount)),
        (f"{prefix}-Remaining", str(remaining)),
        (f"{prefix}-Reset", str(math.ceil(reset))),
    ]


def _draft(name: str, limit: RateLimitItem, remaining: int, seconds: int) -> tuple[str, str]:
    """Return the values of RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11)."""
    return f'"{name}";q={limit.amount};w={limit.get_expiry()}', f'"{name}";r={remaining};t={seconds}'
