"""/login, and /login/<token>: single-use links.  Both lead to the account page."""

from functools import cache

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.pages import attempts, known_browsers
from linkmgr.repository import account as accounts
from linkmgr.repository import login
from linkmgr.web import keys, passwords, security_headers, sessions
from linkmgr.web.errors import AppError

bp = Blueprint("login", __name__)
bp.after_request(security_headers.keep_private)


@cache
def _dummy_hash() -> str:
    """What the password is compared with when nobody has the e-mail address, so that it takes as long."""
    return passwords.hashed(keys.new_token())


@bp.record_once
def _prepare(_state: object) -> None:
    _dummy_hash()  # the first to ask must not wait for it longer than others


def _owner(email: str, password: str) -> int | None:
    """Return the id of the user with this e-mail address and this password, and remember the browser.  An unknown
    e-mail address takes the same steps as a known one."""
    account = login.find_credentials(email.replace("\0", ""))
    user_id, password_hash = account["id"] or 0, account["password_hash"] or _dummy_hash()
    own = known_browsers.limit(user_id, password_hash) or attempts.by_account(account["bucket"])
    if not attempts.matches(password, password_hash, attempts.by_sender(), own) or not user_id:
        return None
    known_browsers.remember(user_id, password_hash)
    return int(user_id)


@bp.get("/login")
def form() -> ResponseReturnValue:
    if sessions.current():
        return redirect(url_for("account_page.show"), code=303)
    return render_template("login.html")


@bp.post("/login")
def sign_in() -> ResponseReturnValue:
    email = request.form.get("email", "").strip()
    user_id = _owner(email, request.form.get("password", ""))
    if user_id is None:
        failed = AppError("sign_in_failed")
        return render_template("login.html", email=email, problem=failed.message), failed.status
    token = keys.new_token()
    login.add_session(user_id, session=keys.digest(token))
    return _enter(token)


@bp.get("/login/<token>")
def offer(token: str) -> str:
    """Burns nothing, so that mail scanners and previews cannot use a link up."""
    if not login.is_usable(keys.digest(token)):
        raise AppError("link_spent")
    return render_template("login_link.html", signed_in=sessions.current() is not None)


@bp.post("/login/<token>")
def use(token: str) -> Response:
    session = keys.new_token()
    user_id = login.consume_link(keys.digest(token), session=keys.digest(session))
    if user_id is None:
        raise AppError("link_spent")
    known_browsers.remember(user_id, accounts.password_hash(user_id))
    return _enter(session)


def _enter(token: str) -> Response:
    sessions.begin(token)
    return redirect(url_for("account_page.show"), code=303)
