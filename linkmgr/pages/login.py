"""/login, and /login/<token>: single-use links.  Both lead to the account page."""

from functools import cache

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr import keys, passwords, security, sender, sessions
from linkmgr.errors import Refusal
from linkmgr.repository import callers, login

bp = Blueprint("login", __name__)
bp.after_request(security.keep_private)

ATTEMPTS, WINDOW = 10, 600  # wrong passwords that may be tried from one address, and in how many seconds


@cache
def _nobodys_hash() -> str:
    """What the password is compared with when nobody has the e-mail address, so that it takes as long."""
    return passwords.hashed(keys.new_token())


@bp.record_once
def _prepare(_state: object) -> None:
    _nobodys_hash()  # the first to ask must not wait for it longer than others


def count_attempt(where: str = "login") -> None:
    """Refuses to compare another password for an address that has tried too many there."""
    tried = callers.count(_tries(where), window=WINDOW)
    if tried["count"] > ATTEMPTS:
        raise Refusal("too_many_sign_ins", seconds=max(1, tried["seconds"]))


def take_back_attempt(where: str = "login") -> None:
    """For a password that was right.  Only this try: earlier wrong ones may have been for somebody else's account."""
    callers.take_back(_tries(where))


def _tries(where: str) -> str:
    return f"{where}:{sender.network()}"


def _owner(email: str, password: str) -> int | None:
    """The user whose e-mail address and password these are."""
    found = login.password_of(email.replace("\0", ""))
    matches = passwords.matches(password, found["password_hash"] if found else _nobodys_hash())
    return int(found["id"]) if found and matches else None


@bp.get("/login")
def form() -> ResponseReturnValue:
    if sessions.current():
        return redirect(url_for("account_page.show"), code=303)
    return render_template("login.html")


@bp.post("/login")
def sign_in() -> ResponseReturnValue:
    count_attempt()
    email = request.form.get("email", "").strip()
    user_id = _owner(email, request.form.get("password", ""))
    if user_id is None:
        failed = Refusal("sign_in_failed")
        return render_template("login.html", email=email, problem=failed.message), failed.status
    take_back_attempt()
    token = keys.new_token()
    login.begin(user_id, session=keys.digest(token))
    return _enter(token)


@bp.get("/login/<token>")
def offer(token: str) -> str:
    """Burns nothing, so that mail scanners and previews cannot use a link up."""
    if not login.usable(keys.digest(token)):
        raise Refusal("link_spent")
    return render_template("login_link.html", signed_in=sessions.current() is not None)


@bp.post("/login/<token>")
def use(token: str) -> Response:
    session = keys.new_token()
    if not login.burn(keys.digest(token), session=keys.digest(session)):
        raise Refusal("link_spent")
    return _enter(session)


def _enter(token: str) -> Response:
    sessions.begin(token)
    return redirect(url_for("account_page.show"), code=303)
