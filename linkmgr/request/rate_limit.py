"""Rates, windows and headers of limits. `linkmgr/web/limiter.py` enforces them."""

import math
import time
from functools import lru_cache

from limits import RateLimitItem, parse

from linkmgr.errors import RETRY_SECONDS
from linkmgr.request.request import Window
from linkmgr.settings import settings

Headers = list[tuple[str, str]]

PLAN_WINDOW = 60  # seconds: a plan's own rate is per minute


def local_window(requests: int, until: float, now: float) -> Window:
    """Convert a window of PostgreSQL to the local clock.

    The difference between the clocks is rounded, so that all responses of a window have the same `Reset`.
    """
    return Window(requests, until - round(now - time.time()))


@lru_cache
def parse_rate(rate: str) -> RateLimitItem:
    return parse(rate)


def period(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"


def window() -> int | None:
    """Return the window of RATE_LIMIT in seconds, or None if PostgreSQL does not count."""
    return None if settings().rate_limit_storage else parse_rate(settings().rate_limit).get_expiry()


def page_window() -> int | None:
    return None if settings().rate_limit_storage else parse_rate(settings().page_rate_limit).get_expiry()


def of_plan(rate: int | None) -> str:
    return f"{rate} per minute" if rate else settings().rate_limit


def left(rate: int | None, window: Window) -> int:
    return max(0, parse_rate(of_plan(rate)).amount - window.requests)


def later(seconds: float) -> float:
    return time.time() + seconds


def seconds_left(until: float, limit: RateLimitItem) -> int:
    return min(limit.get_expiry(), max(1, math.ceil(until - time.time())))


def headers_of_uncounted(rate: str, *, is_whole: bool = False) -> Headers:
    """Return the headers for a request that was not counted, for example because the database is unavailable. They
    report the whole limit for a malformed request, whose caller is unknown."""
    limit = parse_rate(rate)
    seconds, remaining = min(limit.get_expiry(), RETRY_SECONDS), limit.amount * is_whole
    policy, state = draft("default", limit, remaining, seconds)
    return [
        *documented("X-RateLimit", limit, remaining, later(RETRY_SECONDS)),
        ("RateLimit-Policy", policy),
        ("RateLimit", state),
    ]


def documented(prefix: str, limit: RateLimitItem, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-Limit", str(limit.amount)),
        (f"{prefix}-Remaining", str(remaining)),
        (f"{prefix}-Reset", str(math.ceil(reset))),
    ]


def draft(name: str, limit: RateLimitItem, remaining: int, seconds: int) -> tuple[str, str]:
    """Return the values of RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11)."""
    return f'"{name}";q={limit.amount};w={limit.get_expiry()}', f'"{name}";r={remaining};t={seconds}'
