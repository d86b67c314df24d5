"""The hook before every request to the API: rate limit, key, administrator.  In this order, so that a caller
who guesses keys is stopped as well."""

from typing import NamedTuple

from flask import Flask

from linkmgr.repository import callers
from linkmgr.web import client_address, keys, middleware, rate_limit
from linkmgr.web import request as web_request
from linkmgr.web.errors import Refusal

ADMINISTRATION = ("plans", "users")  # the blueprints that are open to administrators only
KEYLESS = ("openapi", "docs")  # those that are open to everybody, counted like requests without a key


class Caller(NamedTuple):
    """Who sent the request, as its statement in repository/callers.py tells."""

    bucket: str  # what the requests are counted by: the user, or the address when the key does not hold
    id: int | None  # None: the key does not hold
    admin: bool | None
    api: bool | None
    rate: int | None
    holds: bool | None  # False: the key has expired
    # What the account shows, so that reading it is no statement of its own.
    email: str | None
    username: str | None
    status: str | None
    expires: str | None
    registered: str | None


def _key(request: web_request.Request) -> str | None:
    """From `Authorization: Bearer KEY`; clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def _check() -> None:
    request = web_request.current()
    if not request.is_api:
        return
    key = _key(request)
    found = callers.identify(keys.digest(key or ""), client_address.network())
    hits = rate_limit.counted(found.pop("count"), found.pop("until"), found.pop("now")) if "count" in found else None
    request.caller = known = Caller(**found)
    middleware.called_by(known.id)
    rate_limit.admit(known.bucket, known.rate, hits)
    blueprint = request.blueprint
    if blueprint in KEYLESS:
        return
    if key is None:
        raise Refusal("key_missing")
    if known.id is None:
        raise Refusal("key_expired" if known.holds is False else "key_unknown")
    if not (known.api or known.admin):
        raise Refusal("plan_feature", detail="the API")
    if blueprint in ADMINISTRATION and not known.admin:
        raise Refusal("administrators_only")


def init_app(app: Flask) -> None:
    app.before_request(_check)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    """Of the caller: what every statement of the API names first."""
    found = caller().id
    assert found is not None
    return found
