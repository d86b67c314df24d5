"""Authentication of API requests.

The rate limit is checked before the key, so that it also limits clients that guess keys.
"""

from collections.abc import Callable
from typing import Any

from flask import Flask

from linkmgr.settings import this_app
from linkmgr.web import client_address, keys, middleware, rate_limit
from linkmgr.web import request as web_request
from linkmgr.web.caller import Caller
from linkmgr.web.errors import AppError

ADMINISTRATION = ("plans", "users")  # blueprints for administrators only
PUBLIC_BLUEPRINTS = ("openapi", "docs")  # need no key; their requests are counted like all others

# (key digest, client network) -> the members of Caller, and `count`, `until` and `now` if PostgreSQL counts requests
Identify = Callable[[bytes, str], dict[str, Any]]


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def authenticate() -> None:
    request = web_request.current()
    if not request.is_api:
        return
    key = _key(request)
    identify: Identify = this_app().extensions["linkmgr_identify"]
    row = identify(keys.digest(key or ""), client_address.network())
    window = rate_limit.local_window(row.pop("count"), row.pop("until"), row.pop("now")) if "count" in row else None
    request.caller = caller = Caller(**row)
    middleware.log_user(caller.id)
    rate_limit.enforce(caller.bucket, caller.rate, window)
    if request.blueprint in PUBLIC_BLUEPRINTS:
        return
    if key is None:
        raise AppError("key_missing")
    if caller.id is None:
        raise AppError("key_expired" if caller.key_valid is False else "key_unknown")
    if not (caller.api or caller.admin):
        raise AppError("plan_feature", detail="the API")
    if request.blueprint in ADMINISTRATION and not caller.admin:
        raise AppError("administrators_only")


def init_app(app: Flask, identify: Identify) -> None:
    app.extensions["linkmgr_identify"] = identify
    app.before_request(authenticate)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    """Return the caller's user id, the first parameter of every API statement."""
    caller_id = caller().id
    assert caller_id is not None
    return caller_id
