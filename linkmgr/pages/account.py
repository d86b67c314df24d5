"""/account: the account page and its forms."""

from collections.abc import Callable
from functools import partial, wraps
from http import HTTPStatus

import psycopg2
from flask import Blueprint, flash, g, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr import errors, keys
from linkmgr.errors import AppError
from linkmgr.fields.base import Email, New, Password, load
from linkmgr.fields.periods import parse_zone, regional_zones
from linkmgr.pages import attempts, known_browsers, plan_use, signed_in
from linkmgr.pages.attempts import Limit
from linkmgr.repository import account as accounts
from linkmgr.repository import login
from linkmgr.web import passwords, security_headers, sessions

bp = Blueprint("account_page", __name__, url_prefix="/account")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)

_ABOUT_CURRENT_PASSWORD = ("password_wrong", "too_many_sign_ins")
_REFUSED = "refused_form"  # in the session
_MAX_TYPED = 255  # characters of a refused text that are kept in the cookie, as many as an e-mail address may have
_REFUSED_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS)


class NewEmail(New):
    email = Email(required=True)


class NewPassword(New):
    password = Password(required=True)


def _problem(form: str, error: AppError) -> dict[str, str]:
    """Return the message of a refused form by the id of the control that it is about."""
    return {f"{form}-password" if error.code in _ABOUT_CURRENT_PASSWORD else form: error.message}


def _page(
    *, with_key: bool = False, success: str | None = None, problems: dict[str, str] | None = None, typed: str = ""
) -> str:
    """Render the page. `success` is a message above the forms for the API key, and `typed` a refused e-mail address."""
    account = accounts.overview(g.user_id)
    return render_template(
        "account.html",
        account=account,
        key=keys.reveal(g.user_id, account["key_ciphertext"]) if with_key else None,
        success=success,
        problems=problems or {},
        typed=typed,
        usage=plan_use.usage(account),
        features=plan_use.features(account),
        rate=plan_use.rate(account),
        sessions=login.sessions(g.user_id, session=g.session),
        zones=regional_zones(),
    )


def _flash_result(form: str, view: Callable[[], str]) -> Callable[[], Response]:
    """Redirect to the account page, which shows the message of the view, or its error beside the field of the form."""

    @wraps(view)
    def wrapper() -> Response:
        try:
            flash(view(), "success")
        except (AppError, psycopg2.IntegrityError) as error:
            app_error = errors.as_app_error(error)
            if app_error is None or app_error.status not in _REFUSED_STATUSES:
                raise
            typed = request.form.get("email", "")[:_MAX_TYPED]
            session[_REFUSED] = {"problems": _problem(form, app_error), "typed": typed}
        return redirect(url_for("account_page.show"), code=303)

    return wrapper


def confirm_password() -> None:
    """Check the current password, so that nobody can take over the account with an unattended browser. Wrong passwords
    are limited per session, not per account, so that strangers cannot lock out the owner."""
    password = request.form.get("current_password", "")
    limits = attempts.by_client(), Limit(f"session:{g.session.hex()}")
    if not attempts.matches(password, accounts.password_hash(g.user_id), *limits):
        raise AppError("password_wrong")


def password_problem() -> dict[str, str]:
    """Return the message about the current password, by the name of its control, or nothing if it is right."""
    try:
        confirm_password()
    except AppError as error:
        return {"current_password": error.message}
    return {}


def _show_key(form: str, view: Callable[[], str | None]) -> Callable[[], ResponseReturnValue]:
    """Render the page with the API key and the message of the view, after checking the password.

    Only responses to POST contain the key, so that no URL in the browser history shows it.
    """

    @wraps(view)
    def wrapper() -> ResponseReturnValue:
        try:
            confirm_password()
        except AppError as error:
            return _page(problems=_problem(form, error)), error.status
        return _page(success=view(), with_key=True)

    return wrapper


@bp.get("")
def show() -> str:
    return _page(**session.pop(_REFUSED, {}))


@bp.get("/key")
@bp.get("/key/replace")
def return_to_key() -> Response:
    """Redirect browsers that reload the URL of a form."""
    return redirect(url_for("account_page.show", _anchor="key"), code=303)


@bp.post("/key")
@partial(_show_key, "key")
def show_key() -> None:
    return None


@bp.post("/key/replace")
@partial(_show_key, "replace")
def replace_key() -> str:
    accounts.replace_key(g.user_id, **keys.new_key(g.user_id))
    return "This is your new API key. The old one no longer works."


@bp.post("/email")
@partial(_flash_result, "email")
def change_email() -> str:
    changes = load(NewEmail, request.form.to_dict())
    confirm_password()
    accounts.update(g.user_id, **changes)
    return f"Your e-mail address is now {changes['email']}."


@bp.post("/password")
@partial(_flash_result, "password")
def change_password() -> str:
    """Change the password. Users who forgot it use a sign-in link: its session can set one, once and within an hour."""
    changes = load(NewPassword, request.form.to_dict())
    if not g.by_link:
        confirm_password()
    password_hash = passwords.hashed(changes["password"])
    accounts.update(g.user_id, password_hash=password_hash, session=g.session)
    known_browsers.remember(g.user_id, password_hash)
    return "Your password has been changed. Other browsers have been signed out."


@bp.post("/timezone")
@partial(_flash_result, "timezone")
def change_timezone() -> str:
    name = parse_zone(request.form.get("timezone", "")[:_MAX_TYPED]).key
    accounts.set_timezone(g.user_id, name)
    return f"Times are now shown in the time zone {name}."


@bp.post("/sessions/<session_id>/end")
def end_session(session_id: str) -> Response:
    try:
        has_ended = login.end_session(g.user_id, session=bytes.fromhex(session_id))
    except ValueError:
        raise AppError("no_such_page") from None
    flash("The browser has been signed out." if has_ended else "This browser was signed out before.", "success")
    return redirect(url_for("account_page.show"), code=303)


@bp.post("/sessions/end-others")
def end_other_sessions() -> Response:
    login.end_other_sessions(g.user_id, session=g.session)
    flash("All other browsers have been signed out.", "success")
    return redirect(url_for("account_page.show"), code=303)


@bp.post("/sign-out")
def sign_out() -> Response:
    sessions.end()
    flash("You have been signed out.", "success")
    return redirect(url_for("login.form"), code=303)
