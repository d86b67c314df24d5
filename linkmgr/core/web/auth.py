"""The hook before all requests. Those of the API pass three steps: identify the caller, limit it, authorize it.

The limit comes before the check of the key, so that clients that guess keys are limited too.
"""

from flask import Flask, Response, after_this_request
from flask.typing import ResponseReturnValue

from linkmgr.core.database.statements import act_as
from linkmgr.core.errors import AppError
from linkmgr.core.fields.unknown import warn_unknown_parameters
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import this_app
from linkmgr.core.web import callers, limiter, middleware, scopes
from linkmgr.core.web import request as web_request
from linkmgr.core.web.caller import Caller
from linkmgr.core.web.operation import PUBLIC, Operation


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def _check_request() -> ResponseReturnValue | None:
    request = web_request.current()
    if request.foreign_host is not None:
        response: ResponseReturnValue | None = this_app().extensions["linkmgr_check_host"]()
        if response is not None:
            return response
    if not request.is_api:
        _check_page(request)
        return None
    if request.method == "OPTIONS" and (preflight := middleware.answer_preflight(request)):
        return preflight
    request.caller, window = callers.get(_key(request) or "", request.remote_addr or "")
    web_request.set_log_user(request.caller.id, request.caller.key and request.caller.key.id)
    limiter.enforce(request.caller.limit, window)
    authorize()
    if request.query_string and request.operation:
        warn_unknown_parameters(request.operation.query)
    return None


def _check_page(request: web_request.Request) -> None:
    """Refuse forms of other origins. The form of a page may change users, keys or plans."""
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        if not middleware.is_same_origin(request):
            raise AppError("foreign_origin")
        after_this_request(_forget_callers)


def _forget_callers(response: Response) -> Response:
    callers.forget()
    return response


def authorize() -> None:
    request = web_request.current()
    stated: Operation | None = request.operation
    if stated and stated.scope == PUBLIC:
        return
    caller = request.caller
    if caller.id is None:
        raise _refusal(caller) if _key(request) else AppError("key_missing")
    if not (caller.api or caller.admin):
        raise AppError("plan_feature", detail="the API")
    if caller.key is not None:
        hooks().use_key(caller.key, stated)
    if stated and stated.scope == scopes.ADMIN and not caller.admin:
        raise AppError("administrators_only")
    scope = stated.scope if stated else ""
    # Otherwise the owner is the actor of events. Those of keys and accounts are for administrators.
    is_named = caller.key or caller.admin or scope.startswith(("keys:", "account:"))
    if scope == scopes.ADMIN or (request.method != "GET" and is_named):
        request.at_end.enter_context(act_as(caller.id, caller.key and caller.key.id))


def check_again() -> None:
    """Authorize the request again, whose body took long to arrive. Pages check their session."""
    request = web_request.current()
    if request.is_api:
        request.caller = callers.stored(_key(request) or "")
        authorize()


def _refusal(caller: Caller) -> AppError:
    if caller.suspended:
        return AppError("account_suspended")
    if caller.key is not None and not caller.key.is_allowed:
        return AppError("address_not_allowed")
    return AppError("key_expired" if caller.key_valid is False else "key_unknown")


def init_app(app: Flask) -> None:
    callers.init_app(app)
    limiter.init_app(app)
    app.before_request(_check_request)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    caller_id = web_request.current().caller.id
    assert caller_id is not None
    return caller_id
