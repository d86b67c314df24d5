"""Requests to other hosts that a user can cause in an hour, besides deliveries of webhooks, which
have limits of their own. Pages of a service that is imported are counted apart, because an import
has thousands."""

from linkmgr.core.errors import AppError
from linkmgr.core.web import rate_windows

PER_HOUR = 100  # logos, and checks of domains and links
PAGES_PER_HOUR = 10_000  # of services that are imported
_HOUR = 3600


def spend(user_id: int | None) -> None:
    if user_id is not None:
        _spend(f"fetches:{user_id}", PER_HOUR)


def spend_page(user_id: int) -> None:
    _spend(f"pages of services:{user_id}", PAGES_PER_HOUR)


def _spend(bucket: str, limit: int) -> None:
    """Count a request. The transaction of the request does not begin for it, and does not undo
    it."""
    if rate_windows.spend(bucket, 1, limit=limit, window=_HOUR) is None:
        seconds = rate_windows.current(bucket, window=_HOUR)["seconds"]
        raise AppError("fetches_limited", limit=f"{limit:,}", seconds=seconds)
