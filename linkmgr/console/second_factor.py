"""/login/passkey, a sign-in without a password, and /login/code, the second step of any other."""

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import login
from linkmgr.core import errors
from linkmgr.core.errors import AppError
from linkmgr.core.web import security_headers, session_store, sessions
from linkmgr.features.signin import passkeys, totp

bp = Blueprint("second_factor", __name__, url_prefix="/login")
bp.after_request(security_headers.keep_private)


@bp.get("/passkey")
def passkey(error: AppError | None = None) -> str:
    return render_template("login_passkey.html", error=error, options=passkeys.request_options([]))


@bp.post("/passkey")
def use_passkey() -> ResponseReturnValue:
    try:
        user_id = passkeys.use(request.form.get("credential", ""))
    except AppError as error:
        return passkey(error), error.status
    return login.begin_session(user_id, asks_code=False)


def _pending() -> tuple[bytes, int] | None:
    session = sessions.digest()
    user_id = session and session_store.find_pending(session)
    return (session, user_id) if session and user_id else None


def _ask(error: AppError | None = None) -> str:
    return render_template("login_code.html", error=error, passkeys=login.offers_passkeys())


@bp.get("/code")
def code() -> ResponseReturnValue:
    return _ask() if _pending() else redirect(url_for("login.form"), code=303)


@bp.post("/code")
def use_code() -> ResponseReturnValue:
    pending = _pending()
    if pending is None:
        raise AppError("sign_in_expired")
    session, user_id = pending
    if error := errors.refusal(lambda: totp.use(user_id, request.form.get("code", ""))):
        return _ask(error), error.status
    session_store.complete(session)
    return login.show_first_page(user_id)
