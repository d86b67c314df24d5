"""Every error response is made here: {"error": 1, "message": ..., "code": ...} for the API, an HTML
page for browsers."""

from http import HTTPStatus
from typing import cast

import psycopg2
from cryptography.fernet import InvalidToken
from flask import Flask, Response, current_app, redirect, request
from flask.typing import ResponseReturnValue
from flask_limiter import RateLimitExceeded
from psycopg2 import errors as pg
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from linkmgr.core.database import session
from linkmgr.core.database.deadlines import TimedOut
from linkmgr.core.database.statements import SchemaTooOld
from linkmgr.core.error_catalogue import HTTP_CODES
from linkmgr.core.errors import RETRY_SECONDS, AppError, from_constraint
from linkmgr.core.fields import bodies
from linkmgr.core.hooks import hooks
from linkmgr.core.web import error_pages, limiter, suggestions
from linkmgr.core.web import request as web_request

_UNAVAILABLE = (
    psycopg2.OperationalError,
    psycopg2.InterfaceError,
    pg.ReadOnlySqlTransaction,
    pg.IdleInTransactionSessionTimeout,
)


def _response(error: AppError, **headers: str) -> ResponseReturnValue:
    request = web_request.current()
    if request.foreign_host is None and (path := error_pages.meant()):
        return redirect(path)
    is_missing = error.code == "no_such_page" or request.foreign_host is not None
    if error.status == HTTPStatus.NOT_FOUND and is_missing and error.code != "unknown_host":
        try:
            if page := hooks().missing_page():
                return cast("Response", page)
        except AppError as refusal:
            return _response(refusal)
    if error.seconds is not None:
        headers["Retry-After"] = str(error.seconds)
    if error.status == HTTPStatus.UNAUTHORIZED and (request.is_api or error.code == "metrics_token"):
        headers["WWW-Authenticate"] = "Bearer"
    if error.scope is not None:  # RFC 6750
        headers["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{error.scope}"'
    if error.status == HTTPStatus.GONE:  # caches may keep it otherwise, also after a link is turned on again
        headers["Cache-Control"] = "no-store"
    if not error_pages.prefers_html():
        stated = request.operation
        problems = error.problems(bodies.members_of(stated.body) if stated and stated.body else ())
        body = web_request.error_body(error) | ({"errors": problems} if problems else {})
        return body, error.status, headers
    headers["Cache-Control"] = "no-store"
    if error.code == "unknown_host":
        page, headers["Content-Security-Policy"] = error_pages.unknown_host_page(error.message)
        return page, error.status, headers
    return error_pages.page(error.status, error.message), error.status, headers


def _no_such_path() -> AppError:
    if not web_request.current().is_api:
        return AppError("no_such_page")
    exists = request.routing_exception is None  # but not on this host
    return AppError(
        "no_such_operation", hint=suggestions.hint(request.method, "" if exists else request.path)
    )


def _http_error(error: HTTPException) -> ResponseReturnValue:
    match error.code:
        case 404:
            return _response(_no_such_path())
        case 405:
            assert isinstance(error, MethodNotAllowed)
            methods = set(error.valid_methods or ())
            allowed = ", ".join(sorted(methods - {"HEAD"}))
            is_read = web_request.current().is_api and allowed == "GET"
            hint = suggestions.method_hint(request.method, request.path) if is_read else ""
            refused = AppError("method_not_allowed", method=request.method, allowed=allowed, hint=hint)
            return _response(refused, Allow=", ".join(sorted(methods)))
        case _:
            return _response(
                AppError(HTTP_CODES.get(error.code or 0, "bad_request"), id=web_request.current().id)
            )


def _database_error(error: psycopg2.Error) -> AppError | None:
    match error:
        case psycopg2.IntegrityError():
            return from_constraint(error)
        case pg.WithCheckOptionViolation():  # a key with `domains` stores a link outside of them (schema.sql)
            return AppError("domain_needed")
        case psycopg2.DataError():
            message = (
                "%s let through a value that PostgreSQL refused: "
                "%s"  # validation should have rejected it
            )
            current_app.logger.error(message, request.endpoint, error.pgcode)
            return AppError("value_refused")
        case _ if not isinstance(error, _UNAVAILABLE):
            return None
    # A timeout, lock, deadlock or full disk is not an outage.
    code = "unavailable" if session.is_connection_lost(error) and type(error) is not TimedOut else "busy"
    if isinstance(error, SchemaTooOld):
        code = "schema_too_old"
    name = type(error).__name__
    current_app.logger.warning("%s: %s: %s, SQLSTATE %s", request.endpoint, code, name, error.pgcode)
    return AppError(code, seconds=RETRY_SECONDS)


def _bug(error: Exception) -> ResponseReturnValue:
    # The rule, because the path can contain the token of a sign-in link.
    current_app.logger.error("%s %s failed", request.method, request.url_rule, exc_info=error)
    bug = AppError("bug", id=web_request.current().id)
    try:
        return _response(bug)
    except Exception:  # the page cannot be rendered
        return web_request.error_body(bug), bug.status


def handle(error: Exception) -> ResponseReturnValue:
    match error:
        case AppError():
            return _response(error)
        case RateLimitExceeded():
            return _response(limiter.refusal())
        case HTTPException():
            return _http_error(error)
        case psycopg2.Error() if app_error := _database_error(error):
            return _response(app_error)
        case InvalidToken():
            other_secret = AppError("other_secret", seconds=RETRY_SECONDS)
            current_app.logger.error("%s: %s", request.endpoint, other_secret.message)
            return _response(other_secret)
        case _:
            return _bug(error)


def init_app(app: Flask) -> None:
    app.register_error_handler(Exception, handle)
