"""The three hooks that requests of the API pass: identify the caller, limit it (Flask-Limiter), authorize it.

The limit comes before the check of the key, so that clients that guess keys are limited too.
"""

import time

from flask import Flask
from flask.typing import ResponseReturnValue

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, act_as
from linkmgr.core.errors import AppError
from linkmgr.core.fields.unknown import warn_unknown_parameters
from linkmgr.core.hooks import hooks
from linkmgr.core.web import limiter, middleware, rate_windows, scopes
from linkmgr.core.web import request as web_request
from linkmgr.core.web.caller import Caller, Window


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def identify() -> ResponseReturnValue | None:
    """Read the caller of the API by its key, and count the request in the same statement, before the key is refused."""
    request = web_request.current()
    if not request.is_api:
        _check_form(request)
        return None
    if request.method == "OPTIONS" and (preflight := middleware.answer_preflight(request)):
        return preflight
    row = _find(request, 1)
    request.caller = Caller.of(row)
    if row["until"] is not None:  # otherwise Redis counts
        # The difference between the clocks is rounded, so that all responses of a window have the same `Reset`.
        request.window = Window(row["count"], row["until"] - round(row["now"] - time.time()))
    web_request.set_log_user(request.caller.id, request.caller.key and request.caller.key.id)
    return None


def _find(request: web_request.Request, by: int) -> Row:
    key = _key(request) or ""
    return hooks().find_key(key, by) or rate_windows.identify(keys.digest(key), web_request.network(), by)


def _check_form(request: web_request.Request) -> None:
    """Refuse forms of other origins."""
    if request.method not in ("GET", "HEAD", "OPTIONS") and not middleware.is_same_origin(request):
        raise AppError("foreign_origin")


def authorize() -> None:
    """Refuse what the key, the plan or the scopes do not allow."""
    request = web_request.current()
    if not request.is_api:
        return
    stated = request.operation
    if stated and request.query_string:
        warn_unknown_parameters(stated.query)
    if stated and stated.scope == scopes.PUBLIC:
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
        request.caller = Caller.of(_find(request, 0))
        authorize()


def _refusal(caller: Caller) -> AppError:
    if caller.suspended:
        return AppError("account_suspended")
    if caller.key is not None and not caller.key.is_allowed:
        return AppError("address_not_allowed")
    return AppError("key_expired" if caller.key_valid is False else "key_unknown")


def init_app(app: Flask) -> None:
    app.before_request(identify)
    limiter.init_app(app)
    app.before_request(authorize)


def caller() -> Caller:
    return web_request.current().caller


def user_id() -> int:
    return web_request.current().user_id
