"""The caller of an API request."""

from typing import NamedTuple


class Caller(NamedTuple):
    """A row of `repository.callers.identify`. The members after `bucket` are None if the key is unknown."""

    bucket: str  # of the rate limit: the user's, or the client network's if the key is not valid
    id: int | None  # None if the key is not valid
    admin: bool | None
    api: bool | None
    rate: int | None  # the plan's requests per minute, or None for the default
    key_valid: bool | None  # False if the key has expired
    # The account. GET /api/account saves a second statement, 84 of 341 µs; GET /api/channels takes 7 of 354 µs longer.
    email: str | None
    username: str | None
    status: str | None
    expires: str | None
    registered: str | None
    version: str | None  # of the row, for the ETag of the account
