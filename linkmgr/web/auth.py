"""Authentication of API requests.

The rate limit is checked before the key, so that it also limits clients that guess keys.
"""

import ipaddress
from typing import Any

from flask import Flask, request

from linkmgr import keys
from linkmgr.db import restricted
from linkmgr.errors import AppError
from linkmgr.repository import api_keys
from linkmgr.web import client_address, middleware, rate_limit, recent_callers, scopes
from linkmgr.web import request as web_request
from linkmgr.web.caller import Caller, Key

ADMINISTRATION = ("plans", "users")  # blueprints for administrators only
PUBLIC_BLUEPRINTS = scopes.PUBLIC  # need no key; their requests are counted like all others


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def _identify(key: str | None) -> tuple[Caller, rate_limit.Window | None]:
    network = client_address.network()
    if key is None or not key.startswith(keys.SCOPED_PREFIX):
        return recent_callers.identify(api_keys.identify, keys.digest(key or ""), network)
    if not keys.is_well_formed(key):  # a mistyped key is not looked up
        return recent_callers.identify(api_keys.identify, keys.digest(""), network)
    try:
        address = str(ipaddress.ip_address(client_address.address()))
    except ValueError:
        address = None
    return recent_callers.identify(_identify_scoped, keys.digest(key), network, address)


def _identify_scoped(digest: bytes, network: str, address: str | None, by: int) -> dict[str, Any]:
    row = api_keys.identify_scoped(digest, network, address, by)
    if row["key"] is not None:
        row["key"] = Key(**row["key"])
    return row


def authenticate() -> None:
    request = web_request.current()
    if not request.is_api:
        return
    key = _key(request)
    caller, window = _identify(key)
    request.caller = caller
    middleware.set_log_user(caller.id)
    rate_limit.enforce(caller.bucket, caller.rate, window)
    if request.blueprint in PUBLIC_BLUEPRINTS:
        return
    if key is None:
        raise AppError("key_missing")
    if caller.id is None:
        raise _refusal(caller)
    if not (caller.api or caller.admin):
        raise AppError("plan_feature", detail="the API")
    if caller.key is not None:
        _use(caller.key)
    if request.blueprint in ADMINISTRATION and not caller.admin:
        raise AppError("administrators_only")


def _refusal(caller: Caller) -> AppError:
    if caller.suspended:
        return AppError("account_suspended")
    if caller.key is not None and not caller.key.is_allowed:
        return AppError("address_not_allowed")
    return AppError("key_expired" if caller.key_valid is False else "key_unknown")


def _use(key: Key) -> None:
    """Check that a scoped key allows the request, and restrict its statements to the rows that it may use."""
    if key.is_first_use:
        api_keys.record_use(key.id, client_address.address())
    if request.endpoint:  # otherwise the answer is a 404 or a 405
        scopes.require(key)
    if key.is_restricted:
        restricted.restrict(key.id, own_only=key.own_only, domains=key.domains)


def init_app(app: Flask) -> None:
    app.before_request(authenticate)
    recent_callers.init_app(app)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    """Return the caller's user id, the first parameter of every API statement."""
    caller_id = caller().id
    assert caller_id is not None
    return caller_id
