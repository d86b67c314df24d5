"""Authentication of API requests in three steps: identify the caller, limit it, authorize it.

The limit comes before the check of the key, so that clients that guess keys are limited too.
"""

from flask import Flask, Response

from linkmgr.db import restricted
from linkmgr.errors import AppError
from linkmgr.repository import callers as stored_callers
from linkmgr.request import rate_limit, scopes
from linkmgr.request import request as web_request
from linkmgr.request.request import Caller, Key, Limit
from linkmgr.web import callers, limiter, middleware, operation
from linkmgr.web.operation import Operation


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def _check_origin() -> Response | None:
    """Answer preflights of other origins, which have no key, and refuse their forms."""
    request = web_request.current()
    if request.is_api:
        return middleware.answer_preflight(request) if request.method == "OPTIONS" else None
    if request.method not in ("GET", "HEAD", "OPTIONS") and not middleware.is_same_origin(request):
        raise AppError("foreign_origin")
    return None


def identify() -> None:
    request = web_request.current()
    if request.is_api:
        caller, request.window = callers.get(_key(request) or "")
        request.caller, request.limit = caller, Limit(caller.bucket, rate_limit.of_plan(caller.rate), "rate_limited")
        web_request.set_log_user(caller.id)


def authorize() -> None:
    request, stated = web_request.current(), web_request.current().operation
    if not request.is_api or (stated and stated.scope == operation.PUBLIC):
        return
    caller = request.caller
    if caller.id is None:
        raise _refusal(caller) if _key(request) else AppError("key_missing")
    if not (caller.api or caller.admin):
        raise AppError("plan_feature", detail="the API")
    if caller.key is not None:
        _use(caller.key, stated)
    if stated and stated.scope == scopes.ADMIN and not caller.admin:
        raise AppError("administrators_only")


def check_again() -> None:
    """Authorize the request again, whose body took long to arrive. Pages check their session."""
    request = web_request.current()
    if request.is_api:
        request.caller = callers.stored(_key(request) or "")
        authorize()


def _forget_after_write(response: Response) -> Response:
    request = web_request.current()
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        stated = request.operation
        if stated.changes_callers if stated else not request.is_api:
            callers.forget()
    return response


def _refusal(caller: Caller) -> AppError:
    if caller.suspended:
        return AppError("account_suspended")
    if caller.key is not None and not caller.key.is_allowed:
        return AppError("address_not_allowed")
    return AppError("key_expired" if caller.key_valid is False else "key_unknown")


def _use(key: Key, stated: Operation | None) -> None:
    if key.is_first_use:
        stored_callers.record_use(key.id, web_request.address())
    if stated:
        scopes.require(key, stated.scope, stated.restricted, stated.selections)
    if key.is_restricted:
        restriction = restricted.restrict(key.id, own_only=key.own_only, domains=key.domains)
        web_request.current().at_end.enter_context(restriction)


def init_app(app: Flask) -> None:
    """Call this after the hook that rejects other hosts, which have no API."""
    callers.init_app(app)
    app.before_request(_check_origin)
    app.before_request(identify)
    limiter.init_app(app)
    app.before_request(authorize)
    app.after_request(_forget_after_write)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    caller_id = web_request.current().caller.id
    assert caller_id is not None
    return caller_id
