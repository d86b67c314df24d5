"""Error handlers.

Every error response is made here: {"error": 1, "message": ..., "code": ...} for the API, an HTML page for browsers.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import psycopg2
from cryptography.fernet import InvalidToken
from flask import Flask, current_app, request
from flask.typing import ResponseReturnValue
from psycopg2 import errors as pg
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from linkmgr.db import session
from linkmgr.db.statements import SchemaTooOld
from linkmgr.errors import HTTP_CODES, RETRY_SECONDS, AppError, as_json, from_constraint
from linkmgr.web import error_pages, suggestions
from linkmgr.web import request as web_request


def _response(error: AppError, **headers: str) -> ResponseReturnValue:
    if error.seconds is not None:
        headers["Retry-After"] = str(error.seconds)
    if not error_pages.prefers_html():
        body = as_json(error.code, error.message) | ({"errors": error.errors} if error.errors else {})
        return body, error.status, headers
    headers["Cache-Control"] = "no-store"
    if error.code == "unknown_host":
        page, headers["Content-Security-Policy"] = error_pages.unknown_host_page(error.message)
        return page, error.status, headers
    return error_pages.page(error.status, error.message), error.status, headers


def _app_error(error: AppError) -> ResponseReturnValue:
    if error.status == HTTPStatus.UNAUTHORIZED and (web_request.current().is_api or error.code == "metrics_token"):
        return _response(error, **{"WWW-Authenticate": "Bearer"})
    if error.scope is not None:  # RFC 6750
        challenge = f'Bearer error="insufficient_scope", scope="{error.scope}"'
        return _response(error, **{"WWW-Authenticate": challenge})
    return _response(error)


def _no_such_path() -> AppError:
    if not web_request.current().is_api:
        return AppError("no_such_page")
    exists = request.routing_exception is None  # but not on this host
    return AppError("no_such_operation", hint=suggestions.hint(request.method, "" if exists else request.path))


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
        case 413:
            return _response(AppError(web_request.current().body_limit[1]))
        case _:
            return _response(AppError(HTTP_CODES.get(error.code or 0, "bad_request"), id=web_request.current().id))


def _integrity_error(error: psycopg2.IntegrityError) -> ResponseReturnValue:
    app_error = from_constraint(error)
    return _app_error(app_error) if app_error else _internal_error(error)


def _outside_domains(_error: pg.WithCheckOptionViolation) -> ResponseReturnValue:
    """Answer a key with `domains` that stores a link outside of them (schema.sql, "Restricted keys")."""
    return _response(AppError("domain_needed"))


def _data_error(error: psycopg2.DataError) -> ResponseReturnValue:
    """Log the endpoint, because its validation should have rejected the value."""
    current_app.logger.error("%s let through a value that PostgreSQL refused: %s", request.endpoint, error.pgcode)
    return _response(AppError("value_refused"))


def _database_error(error: psycopg2.Error) -> ResponseReturnValue:
    """Return `unavailable` for a lost connection and `busy` for a timeout, lock, deadlock or full disk."""
    code = "unavailable" if session.is_connection_lost(error) else "busy"
    if isinstance(error, SchemaTooOld):
        code = "schema_too_old"
    name = type(error).__name__
    current_app.logger.warning("%s: %s: %s, SQLSTATE %s", request.endpoint, code, name, error.pgcode)
    return _response(AppError(code, seconds=RETRY_SECONDS))


def _invalid_token(_error: InvalidToken) -> ResponseReturnValue:
    error = AppError("other_secret", seconds=RETRY_SECONDS)
    current_app.logger.error("%s: %s", request.endpoint, error.message)
    return _response(error)


def _internal_error(error: Exception) -> ResponseReturnValue:
    # The rule, because the path can contain the token of a sign-in link.
    current_app.logger.error("%s %s failed", request.method, request.url_rule, exc_info=error)
    request_id = web_request.current().id
    if error_pages.prefers_html():
        return error_pages.internal_error_page(request_id), HTTPStatus.INTERNAL_SERVER_ERROR
    return _response(AppError("bug", id=request_id))


def init_app(app: Flask) -> None:
    handlers: dict[type[Exception], Callable[[Any], ResponseReturnValue]] = {
        AppError: _app_error,
        HTTPException: _http_error,
        psycopg2.IntegrityError: _integrity_error,
        psycopg2.DataError: _data_error,
        pg.WithCheckOptionViolation: _outside_domains,
        psycopg2.OperationalError: _database_error,
        psycopg2.InterfaceError: _database_error,
        pg.ReadOnlySqlTransaction: _database_error,
        pg.IdleInTransactionSessionTimeout: _database_error,
        InvalidToken: _invalid_token,
        Exception: _internal_error,
    }
    for kind, handler in handlers.items():
        app.register_error_handler(kind, handler)
    error_pages.init_app(app, AppError("bug", id=error_pages.ID_PLACEHOLDER).message)
