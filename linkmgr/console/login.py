"""/login, and /login/<token> for single-use sign-in links. Both redirect to the console."""

from functools import cache

import ua_parser
from flask import Blueprint, redirect, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.core import keys
from linkmgr.core.errors import AppError
from linkmgr.core.web import attempts, passwords, security_headers, session_store, sessions
from linkmgr.public.home import first_page
from linkmgr.repository import account as accounts
from linkmgr.visits import counting

bp = Blueprint("login", __name__)
bp.after_request(security_headers.keep_private)

_MAX_NAME = 60  # characters of the names of a browser and a system


@cache
def _dummy_hash() -> str:
    """Return a hash to compare with for unknown e-mail addresses, so that they take as long as
    known ones."""
    return passwords.hashed(keys.new_token())


@bp.record_once
def _cache_dummy_hash(_state: object) -> None:
    _dummy_hash()  # compute it at startup, because a slower first request would reveal an unknown address


def _authenticate(email: str, password: str) -> int | None:
    """Return the user id, or None, and remember the browser. Unknown and known e-mail addresses
    take the same steps, so that timing does not reveal accounts."""
    account = session_store.find_credentials(email.replace("\0", ""))
    user_id, password_hash = account["id"] or 0, account["password_hash"] or _dummy_hash()
    if limit := attempts.by_browser(user_id, password_hash):
        name = f"user {user_id}"
    else:
        name, limit = account["bucket"], attempts.by_account(account["bucket"])
    is_correct = attempts.matches(password, password_hash, attempts.by_client(), limit, account=name)
    if not is_correct or not user_id:
        return None
    attempts.remember_browser(user_id, password_hash)
    return int(user_id)


def _browser() -> dict[str, str]:
    parsed = ua_parser.parse(request.headers.get("User-Agent", "")[: counting.MAX_AGENT])
    return {
        "browser": parsed.user_agent.family[:_MAX_NAME] if parsed.user_agent else "",
        "system": parsed.os.family[:_MAX_NAME] if parsed.os else "",
    }


@bp.get("/login")
def form() -> ResponseReturnValue:
    current = sessions.current()
    if current and not current["suspended"]:
        return redirect(first_page(), code=303)
    return render_template("login.html")


@bp.post("/login")
def sign_in() -> ResponseReturnValue:
    email = request.form.get("email", "").strip()
    user_id = _authenticate(email, request.form.get("password", ""))
    if user_id is None:
        error = AppError("sign_in_failed")
        return render_template("login.html", email=email, error=error.message), error.status
    token = keys.new_token()
    session_store.add_session(user_id, session=keys.digest(token), **_browser())
    return _start_session(token)


@bp.get("/login/<token>")
def confirm_link(token: str) -> str:
    """Show the sign-in button. GET does not consume the link, because mail scanners and link
    previews fetch it."""
    if not session_store.is_usable(keys.digest(token)):
        raise AppError("link_spent")
    return render_template("login_link.html", signed_in=sessions.current() is not None)


@bp.post("/login/<token>")
def use_link(token: str) -> Response:
    session = keys.new_token()
    user_id = session_store.consume_link(keys.digest(token), session=keys.digest(session), **_browser())
    if user_id is None:
        raise AppError("link_spent")
    attempts.remember_browser(user_id, accounts.password_hash(user_id))
    return _start_session(session)


def _start_session(token: str) -> Response:
    sessions.begin(token)
    return redirect(first_page(), code=303)
