"""The rate limit of the API, which Flask-Limiter enforces, and the limits of pages.

PostgreSQL counts a request of the API in the statement that identifies its caller
(rate_windows.py). With RATE_LIMIT_STORAGE Redis counts, and this process while Redis is
unavailable. PostgreSQL always counts pages.
"""

import math
import threading
import time
from functools import lru_cache, partial
from typing import Any

from flask import Flask, Response
from flask_limiter import ApplicationLimit, HeaderNames, Limiter
from limits import RateLimitItem, parse
from limits.storage import RedisStorage, Storage

from linkmgr.core import metrics
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import RETRY_SECONDS, AppError
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web import rate_windows
from linkmgr.core.web.caller import Window
from linkmgr.core.web.request import current

Headers = list[tuple[str, str]]


@lru_cache
def parse_rate(rate: str) -> RateLimitItem:
    return parse(rate)


def period(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"


def _seconds_left(limit: RateLimitItem, until: float) -> int:
    return min(limit.get_expiry(), max(1, math.ceil(until - time.time())))


class Counted(Storage):
    """The window of the current request, which the statement that identified its caller has
    counted."""

    STORAGE_SCHEME = ["counted"]
    base_exceptions: Any = ()

    def incr(self, key: str, expiry: int = 0, amount: int = 1) -> int:
        return current().window.requests

    get = incr

    def get_expiry(self, key: str) -> float:
        return current().window.until

    def check(self) -> bool:
        return True

    def reset(self) -> None:
        raise NotImplementedError

    def clear(self, key: str) -> None:
        raise NotImplementedError


class RedisWindows(RedisStorage):
    """Counters in Redis. One round trip for a request, whose headers need the window too."""

    STORAGE_SCHEME = ["windows+redis", "windows+rediss", "windows+redis+unix"]

    def __init__(self, uri: str, **options: Any) -> None:
        from redis.backoff import NoBackoff  # noqa: PLC0415 - not imported without Redis
        from redis.retry import Retry  # noqa: PLC0415

        # Short timeouts: an unavailable Redis must not slow down requests.
        options |= {"socket_timeout": 0.2, "socket_connect_timeout": 0.2, "retry": Retry(NoBackoff(), 0)}
        super().__init__(uri.removeprefix("windows+"), **options)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        name = self.prefixed_key(key)
        redis: Any = self.get_connection()
        with redis.pipeline() as pipeline:
            pipeline.incrby(name, amount)
            pipeline.pttl(name)
            requests, milliseconds = pipeline.execute()
        if not 0 <= milliseconds <= expiry * 1000:  # a new window, or one without end, or with a later one
            redis.expire(name, expiry)
            milliseconds = expiry * 1000
        current().window = Window(requests, time.time() + milliseconds / 1000)
        return int(requests)

    def get(self, key: str) -> int:
        return current().window.requests

    def get_expiry(self, key: str) -> float:
        return current().window.until


class RateLimit(Limiter):
    """The limit of all operations together, by the caller."""

    def __init__(self, redis: str) -> None:
        super().__init__(
            lambda: current().caller.bucket,
            application_limits=[ApplicationLimit(lambda: current().caller.rate)],
            storage_uri=f"windows+{redis}" if redis else "counted://",
            in_memory_fallback_enabled=bool(redis),
            swallow_errors=bool(redis),  # other requests that wait for Redis when it is lost
            headers_enabled=True,
            # It would be sent with every response. `_report` replaces the value.
            header_name_mapping={HeaderNames.RETRY_AFTER: "RateLimit"},
            request_identifier=partial(str, "any"),  # paths without a route count too
        )
        self.request_filter(lambda: not current().is_api or current().is_free)
        self._was_lost, self._noting = False, threading.Lock()

    def note_storage(self) -> None:
        """Count the requests without Redis. Log its loss and its return once in each process."""
        is_lost = self.limiter.storage is not self.storage
        if is_lost:
            metrics.count("limiter_fallbacks")
        with self._noting:
            was_lost, self._was_lost = self._was_lost, is_lost
        if is_lost != was_lost:
            state = (
                "is unavailable, each process counts its own requests" if is_lost else "is available again"
            )
            this_app().logger.warning("rate limit: Redis %s", state)


def init_app(app: Flask) -> None:
    """Call this between the hooks that identify and that authorize the caller."""
    app.after_request(_report)  # after Flask-Limiter's own
    RateLimit(settings().rate_limit_storage).init_app(app)


def refusal() -> AppError:
    [limiter] = this_app().extensions["limiter"]
    exceeded = limiter.current_limit
    seconds = current().seconds_left = _seconds_left(exceeded.limit, exceeded.window[0])
    return _refusal("rate_limited", exceeded.limit, seconds)


def _refusal(code: str, limit: RateLimitItem, seconds: int) -> AppError:
    metrics.count("limiter_refusals")
    return AppError(code, limit=limit.amount, per=period(limit), seconds=max(1, seconds))


# --- the limits of pages


def enforce(bucket: str, rate: str, code: str) -> None:
    """Count a request. Raise the error if there are more than the rate in the current window of the
    bucket."""
    limit = parse_rate(rate)
    refuse_above(limit, rate_windows.count(bucket, window=limit.get_expiry()), code)


def refuse_above(limit: RateLimitItem, counted: Row, code: str = "pages_limited") -> None:
    if counted["count"] > limit.amount:
        raise _refusal(code, limit, counted["seconds"])


# --- the headers


def _report(response: Response) -> Response:
    request = current()
    if not request.is_api:
        return response
    [limiter] = this_app().extensions["limiter"]
    if settings().rate_limit_storage:
        limiter.note_storage()
    reached = limiter.current_limit
    if reached is None:
        response.headers.extend(headers_of_uncounted(settings().rate_limit, is_whole=request.is_free))
        return response
    seconds = request.seconds_left or _seconds_left(reached.limit, reached.window[0])
    policy, state = _draft("default", reached.limit, reached.remaining, seconds)
    if rows := request.rows:
        response.headers.extend(
            _documented("X-RateLimit-Rows", rows.limit, rows.remaining, time.time() + rows.seconds)
        )
        rows_policy, rows_state = _draft("rows", rows.limit, rows.remaining, rows.seconds)
        policy, state = f"{policy}, {rows_policy}", f"{state}, {rows_state}"
    response.headers["RateLimit-Policy"], response.headers["RateLimit"] = policy, state
    return response


def headers_of_uncounted(rate: str, *, is_whole: bool = False) -> Headers:
    """Return the headers for a request that was not counted, for example because the database is
    unavailable. They report the whole limit for a malformed request, whose caller is unknown."""
    limit = parse_rate(rate)
    seconds, remaining = min(limit.get_expiry(), RETRY_SECONDS), limit.amount * is_whole
    policy, state = _draft("default", limit, remaining, seconds)
    return [
        *_documented("X-RateLimit", limit, remaining, time.time() + RETRY_SECONDS),
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
    """Return the values of RateLimit-Policy and RateLimit
    (draft-ietf-httpapi-ratelimit-headers-11)."""
    return f'"{name}";q={limit.amount};w={limit.get_expiry()}', f'"{name}";r={remaining};t={seconds}'
