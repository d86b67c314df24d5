"""The three hooks that requests of the API pass: identify the caller, limit it (Flask-Limiter),
authorize it.

The limit comes before the check of the key, so that clients that guess keys are limited too.
"""

import time

from flask import Flask
from flask.typing import ResponseReturnValue

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, act_as, run_repeatable
from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import refuse_others
from linkmgr.core.fields.unknown import warn_unknown_parameters
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, middleware, scopes
from linkmgr.core.web import request as web_request
from linkmgr.core.web.caller import Caller, Key, Window


def _key(request: web_request.Request) -> str | None:
    """Return the key of `Authorization: Bearer KEY`. Clients also send `Token KEY` and the bare
    key."""
    match request.headers.get("Authorization", "").split():
        case [scheme, key] if scheme.lower() in ("bearer", "token"):
            return key
        case [key] if key.lower() not in ("bearer", "token"):
            return key
        case _:
            return None


def identify(by: int = 1) -> ResponseReturnValue | None:
    """Read the caller of the API by its key, and count the request in the same statement, before
    the key is refused."""
    request = web_request.current()
    if request.foreign_host is not None:
        response: ResponseReturnValue | None = hooks().answer_host()
        if response is not None:
            return response
    if not request.is_api:
        _check_form(request)
        return None
    if request.method == "OPTIONS" and (preflight := middleware.answer_preflight(request)):
        return preflight
    if request.is_free:
        return None
    key = _key(request)
    row = (_find(key, by) if key else None) or _count_unknown(by)
    row["key"] = Key(**row["key"]) if row.get("key") else None
    request.caller = caller = Caller._make(map(row.get, Caller._fields))
    if by and row["until"] is not None:  # otherwise Redis counts
        # The difference between the clocks is rounded, so that all responses of a window have the
        # same `Reset`.
        request.window = Window(row["count"], row["until"] - round(row["now"] - time.time()))
    web_request.set_log_user(caller.id, caller.key and caller.key.id)
    return None


def _find(key: str, by: int) -> Row | None:
    """Return the members of a `Caller`, or None if there is no such key. If PostgreSQL keeps the
    counters, count `by` requests and return `count`, `until` and `now` too, which are None
    otherwise."""
    if key.startswith(keys.SCOPED_PREFIX) and (caller := hooks().find_key(key, by)):
        return caller
    return run_repeatable(
        """
        SELECT caller.*, coalesce(plan_rate || ' per minute', %(rate)s) AS rate, count,
               date_part('epoch', until) AS until, date_part('epoch', clock_timestamp()) AS now
          FROM (SELECT CASE WHEN key_valid THEN id END AS id, admin, api, plan_rate, key_valid,
                       suspended <> 'no' AS suspended, email, username, status, expires,
                       registered, updated, domain, version,
                       bucket_of(CASE WHEN key_valid THEN id END, plan_rate, %(source)s) AS bucket
                  FROM accounts,
                       LATERAL (SELECT (key_created + make_interval(days => %(lifetime)s) > now())
                                       IS NOT FALSE AND suspended = 'no' AS key_valid) key,
                       LATERAL (SELECT CASE WHEN key_valid THEN rate END AS plan_rate) limited
                 WHERE key_digest = %(key_digest)s AND NOT key_off
                OFFSET 0) caller
          LEFT JOIN count_in_window(bucket, %(by)s,
                                    CASE WHEN plan_rate IS NULL THEN %(window)s::float8
                                         ELSE %(plan_window)s::float8 END) ON true
        """,
        key_digest=keys.digest(key),
        source=web_request.network(),
        by=by,
        **settings().of_callers,
    )


def _count_unknown(by: int) -> Row:
    """Count requests without a known key, and return what `_find` does."""
    caller = run_repeatable(
        """
        SELECT bucket, %(rate)s AS rate, count, date_part('epoch', until) AS until,
               date_part('epoch', clock_timestamp()) AS now
          FROM (SELECT bucket_of(NULL, NULL, %(source)s) AS bucket) unknown
          LEFT JOIN count_in_window(bucket, %(by)s, %(window)s::float8) ON true
        """,
        source=web_request.network(),
        by=by,
        **settings().of_callers,
    )
    assert caller is not None
    return caller


def _check_form(request: web_request.Request) -> None:
    """Refuse forms of other origins, but for operations of everybody."""
    if request.method in ("GET", "HEAD", "OPTIONS") or middleware.is_same_origin(request):
        return
    if request.operation is None or request.operation.scope != scopes.PUBLIC:
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
    if stated and request.query_string and (request.method == "DELETE" or stated.deletes):
        refuse_others("parameter", request.args, stated.query)  # an ignored one would delete what it protects
    scope = stated.scope if stated else ""
    # Otherwise the owner is the actor of events. Those of these words are for administrators.
    is_named = caller.key or caller.admin or scope.startswith(("keys:", "account:", "members:"))
    if scope == scopes.ADMIN or (request.method != "GET" and is_named):
        request.at_end.enter_context(act_as(caller.id, caller.key and caller.key.id))


def check_again() -> None:
    """Authorize the request again, whose body took long to arrive. Pages check their session."""
    request = web_request.current()
    if request.is_api:
        identify(by=0)
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
    caller_id = web_request.current().caller.id
    assert caller_id is not None
    return caller_id
