"""The caller of an API request."""

from typing import NamedTuple

from linkmgr.settings import settings


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
        """Return True if the key can use only some rows of its user."""
        return self.own_only or self.domains is not None


class Caller(NamedTuple):
    """A row of `repository.api_keys.identify`. The members after `bucket` are None if the key is unknown."""

    bucket: str  # of the rate limit: the user's, or the client network's if the key is not valid
    id: int | None  # None if the key is not valid
    admin: bool | None  # False for a scoped key without the scope `admin`
    api: bool | None
    rate: int | None  # the plan's requests per minute, or None for the default
    key_valid: bool | None  # False if the key has expired, or if the user is suspended
    suspended: bool | None
    # The account. GET /api/account saves a second statement, 84 of 341 µs; GET /api/channels takes 7 of 354 µs longer.
    email: str | None
    username: str | None
    status: str | None
    expires: str | None
    registered: str | None
    version: str | None  # of the row, for the ETag of the account
    key: Key | None = None  # None for the key that each user has

    @property
    def avatar(self) -> str:
        return f"{settings().base_url}/avatar/{self.username}.png"
