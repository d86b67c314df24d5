"""The caller of the API, and the limits of its requests and rows."""

from typing import NamedTuple

from limits import RateLimitItem

from linkmgr.core.settings import settings


class Key(NamedTuple):
    """A scoped key. The limits that it does not have are None."""

    id: int
    scopes: list[str]
    domains: list[int] | None
    own_only: bool
    expires: str | None
    allowed_ips: list[str] | None
    is_admin: bool  # True if its user is an administrator
    is_allowed: bool  # False if its `allowed_ips` exclude the client
    is_first_use: bool  # in this minute

    @property
    def is_restricted(self) -> bool:
        return self.own_only or self.domains is not None


def avatar_of(username: str | None) -> str:
    return f"{settings().base_url}/avatar/{username}.png"


class Caller(NamedTuple):
    """A row of `auth.identify`. The members after `rate` are None if the key is unknown."""

    bucket: str  # names the counter: of the user, or of the client's network if the key is not valid
    rate: str  # such as 30 per minute
    id: int | None  # None if the key is not valid
    admin: bool | None  # False for a scoped key without the scope `admin`
    api: bool | None
    key_valid: bool | None  # False if the key has expired, or if the user is suspended
    suspended: bool | None
    # The account. GET /api/account saves a second statement, 84 of 341 µs; GET /api/channels takes
    # 7 of 354 µs longer.
    email: str | None
    username: str | None
    status: str | None
    expires: str | None
    registered: str | None
    updated: str | None
    domain: str | None
    version: str | None  # of the row, for the ETag of the account
    key: Key | None = None  # None for the key that each user has

    @property
    def avatar(self) -> str:
        return avatar_of(self.username)


class Rows(NamedTuple):
    limit: RateLimitItem
    remaining: int
    seconds: int


class Window(NamedTuple):
    """Requests in the current window, including this one, and the end of the window in epoch
    seconds."""

    requests: int
    until: float
