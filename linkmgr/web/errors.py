"""Every failure becomes {"error": 1, "message": ..., "code": ...} here, or a page for people, and nowhere else.

The catalogue has each refusal's status and sentence by its code, which programs read and which therefore stays as it
is.  A refusal that the database decides has the name of the constraint that decides it (schema.sql).
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
from linkmgr.web import error_pages
from linkmgr.web import request as web_request
from linkmgr.web.responses import Json

RETRY_SECONDS = 2  # Retry-After of every 503: about what a restart of the database takes

CATALOGUE: dict[str, tuple[int, str]] = {
    # what was sent
    "invalid": (400, "{problems}."),
    "value_refused": (400, "One of the values that you sent cannot be stored."),
    "bad_request": (400, "The request is malformed."),
    "address_too_long": (414, "The address is too long: at most 8 KiB are read."),
    "expectation_failed": (417, "The header 'Expect' may only be '100-continue': leave it out."),
    "headers_too_large": (431, "The headers are too large: at most 100 of 8 KiB and 64 KiB in all are read."),
    "not_implemented": (501, "The body must be sent with Content-Length, or with 'Transfer-Encoding: chunked'."),
    "not_json": (415, "Send the body as JSON, with the header 'Content-Type: application/json'."),
    "request_timeout": (408, "The request did not arrive within 10 seconds: send it again, without pauses."),
    "too_large": (413, "The body is too large: at most 64 KiB are read."),
    # who sent it
    "key_missing": (401, "Send your API key in the header 'Authorization: Bearer API_KEY'."),
    "key_unknown": (401, "This API key is not known: it was mistyped, replaced, or its user was deleted."),
    "key_expired": (
        401,
        "This API key has expired: ask for a new one on your account page or of an administrator.",
    ),
    "metrics_token": (401, "Send the token of LINKMGR_METRICS_TOKEN in the header 'Authorization: Bearer TOKEN'."),
    "administrators_only": (403, "This operation is open to administrators only."),
    "rate_limited": (
        429,
        "You have used up your {limit} requests per {per}: try again in {seconds} seconds.",
    ),
    # what it asked for
    "no_such_operation": (404, "There is no such operation: check the path."),
    "unknown_host": (
        404,
        "This host name is not served. To use it for the service, set LINKMGR_BASE_URL; to use it as a branded domain, "
        "add it with POST /api/domain/add.",
    ),
    "no_such_page": (404, "The address was mistyped, or what stood here has been taken away."),
    "redirect_loop": (508, "This address leads in a circle: its owner must change where it leads."),
    "method_not_allowed": (405, "This path does not take {method}: it takes {allowed}."),
    "missing": (404, "There is no {what} with this id."),
    # plans
    "plan_feature": (403, "Your plan does not include {detail}: ask an administrator for another plan."),
    "plan_limit": (400, "Your plan allows {detail}, and you have them: delete one or ask for another plan."),
    "plan_name_taken": (400, "There already is a plan with this name."),
    "plan_not_premium": (400, "planid must be the id of a premium plan."),
    # campaigns and channels
    "campaign_name_taken": (400, "You already have a campaign with that name."),
    "campaign_slug_taken": (400, "There already is a campaign with this slug."),
    "channel_name_taken": (400, "You already have a channel with this name."),
    # links and bio pages
    "alias_taken": (400, "This alias is taken: choose another one."),
    "domain_in_use": (400, "Links use this domain: delete them or move them to another one first."),
    "domain_unknown": (400, "domain must be one of your branded domains."),
    "link_branded": (
        400,
        "No target of a link may be on a branded domain, which could send the visitor in a circle.",
    ),
    "campaign_unknown": (400, "campaign must be the id of one of your campaigns."),
    "splash_unknown": (400, "type names a splash page that is not one of yours."),
    "overlay_unknown": (400, "type names an overlay that is not one of yours."),
    "pixel_unknown": (400, "pixels must be ids of your pixels."),
    "channel_unknown": (400, "channel must be the id of one of your channels."),
    # accounts
    "username_taken": (400, "There already is a user with this username."),
    "email_taken": (400, "There already is a user with this email."),
    "delete_self": (400, "You cannot delete your own account: ask another administrator."),
    "delete_last_administrator": (400, "You cannot delete the last administrator."),
    # domains
    "domain_taken": (400, "This domain is in use already."),
    "domain_unproven": (400, "Point {host} to the server of {base_url}, then try again: now it {found}."),
    "redirect_branded": (
        400,
        "redirectroot and redirect404 must not lead to a branded domain, which could send the visitor in a circle.",
    ),
    # what we fetch
    "fetch_refused": (400, "Nothing is fetched from {host}: it must be a public address, on port 80 or 443."),
    "fetch_unresolved": (400, "The name {host} does not resolve to any address."),
    "fetch_unreachable": (400, "No web server could be reached at {host}."),
    "fetch_timed_out": (400, "The server of {host} did not answer within {deadline:g} seconds."),
    "fetch_too_large": (400, "The server of {host} sent more than 1 MiB, which is the most that is fetched."),
    "fetch_status": (
        400,
        "The server of {host} answered {status} instead of 200; at most {redirects} redirects are followed.",
    ),
    "fetch_busy": (503, "Too much is being fetched already: try again in {seconds} seconds."),
    # QR codes
    "colours_too_close": (
        400,
        "The foreground cannot be read on the background: choose colours with a contrast of at least 3 to 1.",
    ),
    "logo_missing": (
        400,
        "There is no logo with this file name: logos are files in the folder 'logos' of the service, or URLs.",
    ),
    "logo_unusable": (400, "logo must be a PNG or JPEG image of at most 4 megapixels and 1 MiB."),
    "image_busy": (503, "Too many images are being drawn already: try again in {seconds} seconds."),
    "image_missing": (404, "There is no QR code at this address."),
    # campaigns' own addresses
    "campaign_missing": (404, "There is no public campaign at this address, or it has no links."),
    # overlays
    "answer_unplaced": (400, "This form is older than a day or is not one of ours: open the short link again."),
    "answers_full": (403, "No more answers are taken here: as many as are kept have been sent."),
    "too_many_answers": (429, "Too many answers were sent from your address: try again in {seconds} seconds."),
    # signing in
    "link_spent": (410, "This sign-in link was used already or is older than an hour: ask for a new one."),
    "sign_in_failed": (401, "There is no user with this e-mail address and this password."),
    "too_many_sign_ins": (429, "Too many wrong passwords were sent: try again in {seconds} seconds."),
    "too_many_for_account": (
        429,
        "Too many wrong passwords were sent for this e-mail address. Try again in {seconds} seconds, or ask an"
        " administrator for a login link.",
    ),
    "password_wrong": (400, "Your current password is not the one that you gave."),
    "foreign_origin": (403, "This form was not sent from a page of this service."),
    "link_password_wrong": (401, "This is not the password of this link."),
    # ours
    "unavailable": (503, "The service cannot reach its database: try again in {seconds} seconds."),
    "busy": (503, "The database is too busy or short of resources: try again in {seconds} seconds."),
    "schema_too_old": (
        503,
        "The database is older than the service: run 'flask --app app database upgrade'.",
    ),
    "other_secret": (
        503,
        "The API keys were encrypted with another secret: name it in LINKMGR_SECRET_KEY_FALLBACKS.",
    ),
    "bug": (500, "Something went wrong on our side, and nothing was changed that you were not told of."),
}


# What HTTP itself fails with, also where gunicorn answers (deploy/gunicorn.conf.py); all others are bad_request.
HTTP_CODES = {
    408: "request_timeout",
    413: "too_large",
    414: "address_too_long",
    417: "expectation_failed",
    431: "headers_too_large",
    500: "bug",
    501: "not_implemented",
}


class AppError(Exception):
    """Ends the request with the catalogue's status and sentence for `code`."""

    def __init__(self, code: str, **values: object) -> None:
        self.code = code
        self.status, sentence = CATALOGUE[code]
        self.message = sentence.format(**values)
        self.seconds = values.get("seconds")  # after which it may be tried again
        super().__init__(self.message)


def not_found(what: str) -> AppError:
    """For an id that never existed and for somebody else's, which must not be told apart."""
    return AppError("missing", what=what)


def as_json(code: str, message: str) -> Json:
    return {"error": 1, "message": message, "code": code}


def _answer(refusal: AppError, **headers: str) -> ResponseReturnValue:
    if refusal.seconds is not None:
        headers["Retry-After"] = str(refusal.seconds)
    if not error_pages.prefers_html():
        return as_json(refusal.code, refusal.message), refusal.status, headers
    headers["Cache-Control"] = "no-store"
    return error_pages.page(refusal.status, refusal.message), refusal.status, headers


def _refused(refusal: AppError) -> ResponseReturnValue:
    if refusal.status == HTTPStatus.UNAUTHORIZED and (web_request.current().is_api or refusal.code == "metrics_token"):
        return _answer(refusal, **{"WWW-Authenticate": "Bearer"})
    return _answer(refusal)


def _http(error: HTTPException) -> ResponseReturnValue:
    match error.code:
        case 404:
            return _answer(AppError("no_such_operation" if web_request.current().is_api else "no_such_page"))
        case 405:
            assert isinstance(error, MethodNotAllowed)
            allowed = ", ".join(sorted(set(error.valid_methods or ()) - {"HEAD"}))
            return _answer(AppError("method_not_allowed", method=request.method, allowed=allowed), Allow=allowed)
        case _:
            return _answer(AppError(HTTP_CODES.get(error.code or 0, "bad_request")))


def from_constraint(error: psycopg2.IntegrityError) -> AppError | None:
    """Return the refusal that the constraint is named after, or None if no client can have caused the error."""
    name = error.diag.constraint_name or ""
    if name == "login_links_user_id_fkey":  # what an administrator makes for somebody else
        return not_found("user")
    if name.endswith("_user_id_fkey"):  # a user's own: the user was deleted meanwhile
        return AppError("key_unknown")
    return AppError(name, detail=error.diag.message_detail) if name in CATALOGUE else None


def _constraint(error: psycopg2.IntegrityError) -> ResponseReturnValue:
    refusal = from_constraint(error)
    return _refused(refusal) if refusal else _bug(error)


def _value(error: psycopg2.DataError) -> ResponseReturnValue:
    """Validation should have refused it first: the fault is logged, so that it will."""
    current_app.logger.error("%s let through a value that PostgreSQL refused: %s", request.endpoint, error.pgcode)
    return _answer(AppError("value_refused"))


def _unavailable(error: psycopg2.Error) -> ResponseReturnValue:
    """A server that refuses a statement is reached: a timeout, a lock, a deadlock or a full disk is `busy`."""
    code = "unavailable" if session.is_connection_lost(error) else "busy"
    if isinstance(error, SchemaTooOld):
        code = "schema_too_old"
    name = type(error).__name__
    current_app.logger.warning("%s: %s: %s, SQLSTATE %s", request.endpoint, code, name, error.pgcode)
    return _answer(AppError(code, seconds=RETRY_SECONDS))


def _other_secret(_error: InvalidToken) -> ResponseReturnValue:
    refusal = AppError("other_secret", seconds=RETRY_SECONDS)
    current_app.logger.error("%s: %s", request.endpoint, refusal.message)
    return _answer(refusal)


def _bug(error: Exception) -> ResponseReturnValue:
    # The rule rather than the path, which may hold the token of a login link.
    current_app.logger.error("%s %s failed", request.method, request.url_rule, exc_info=error)
    if error_pages.prefers_html():
        return error_pages.internal_error_page(), HTTPStatus.INTERNAL_SERVER_ERROR
    return _answer(AppError("bug"))


def init_app(app: Flask) -> None:
    handlers: dict[type[Exception], Callable[[Any], ResponseReturnValue]] = {
        AppError: _refused,
        HTTPException: _http,
        psycopg2.IntegrityError: _constraint,
        psycopg2.DataError: _value,
        psycopg2.OperationalError: _unavailable,
        psycopg2.InterfaceError: _unavailable,
        pg.ReadOnlySqlTransaction: _unavailable,
        pg.IdleInTransactionSessionTimeout: _unavailable,
        InvalidToken: _other_secret,
        Exception: _bug,
    }
    for kind, handler in handlers.items():
        app.register_error_handler(kind, handler)
    error_pages.init_app(app, AppError("bug").message)
