"""Sign-in at an OpenID Connect provider, and the connection of an account to one there.

What a sign-in needs when its browser comes back is in the signed cookie of the session, which no
other host can set. So nobody can end a sign-in that another browser has begun.
"""

import time

from flask import Blueprint, current_app, flash, g, redirect, request, session, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import account, confirm_page, confirmation, login, signed_in
from linkmgr.core import errors, keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import security_headers, session_store, sessions
from linkmgr.core.web.attempts import Limit, spend
from linkmgr.features.signin import accounts, oidc, repository
from linkmgr.public.home import first_page

_BEGUN = "oidc"  # in the cookie: nonce, verifier, purpose and time of the sign-ins by their state
_MAX_BEGUN, _SECONDS = 5, 600
_MAX_SIGN_INS = 100  # of an IP address in the window of attempts, as many as passwords

bp = Blueprint("sign_in_oidc", __name__, url_prefix="/login/oidc")
bp.after_request(security_headers.keep_private)
identity_bp = Blueprint("identity", __name__, url_prefix="/account/identity")
identity_bp.before_request(signed_in.require_session)
identity_bp.before_request(signed_in.require_password)
identity_bp.after_request(security_headers.keep_private)


@identity_bp.app_template_global()
def identity() -> Row:
    """Return the `provider`, and the `name` there and the last sign-in of the user who is
    connected."""
    connected = repository.identity(g.person_id, settings().oidc_issuer) or {"name": None}
    return {"provider": settings().oidc_name} | connected


def _begin(purpose: str = "", page: str = "") -> str:
    """Begin a sign-in, or what a signed-in user does with one: `connect` the identity, or `confirm`
    with it and return to a page. Return its URL at the provider."""
    url, state, nonce, verifier = oidc.begin(again=purpose == "confirm")
    begun = [*session.get(_BEGUN, {}).items()][1 - _MAX_BEGUN :]
    user_id = g.person_id if purpose else 0
    session[_BEGUN] = dict(begun) | {state: (nonce, verifier, (purpose, user_id, page), int(time.time()))}
    return url


def _take(state: str) -> tuple[str, str, tuple[str, int, str]]:
    """Take a sign-in out of the cookie. It cannot be used twice, not even with a copy of the
    cookie."""
    begun = session.get(_BEGUN, {})
    nonce, verifier, purpose, at = begun.pop(state, ("", "", ("", 0, ""), 0))
    session[_BEGUN] = begun
    if time.time() - at > _SECONDS or Limit(f"oidc:{keys.digest(state).hex()}").count(1) > 1:
        raise AppError("sign_in_expired")
    return nonce, verifier, purpose


@bp.get("")
def begin() -> ResponseReturnValue:
    try:
        return redirect(_begin(), code=303)
    except AppError as error:
        return login.page(error)


@bp.get("/callback")
def callback() -> ResponseReturnValue:
    try:
        nonce, verifier, (purpose, begun_by, page) = _take(request.args.get("state", ""))
    except AppError as error:  # the user may have signed in since, in another tab
        return redirect(first_page(), code=303) if sessions.current() else login.page(error)
    try:
        person, id_token = _finish(nonce, verifier, again=purpose == "confirm")
        if purpose:
            _require_same_user(begun_by)
            return _connect(begun_by, person) if purpose == "connect" else _confirm(begun_by, person, page)
        user_id = accounts.of_person(person)
        accounts.grant(user_id, person.groups)
    except AppError as error:
        return login.page(error)
    return login.begin_session(user_id, asks_code=False, id_token=id_token)


def _finish(nonce: str, verifier: str, *, again: bool) -> tuple[accounts.Person, str]:
    if refused := request.args.get("error"):
        current_app.logger.warning("OpenID Connect: the provider refused a sign-in: %.100r", refused)
        raise AppError("provider_refused", name=settings().oidc_name)
    spend(Limit(f"oidc:{web_request.network()}", _MAX_SIGN_INS, "sign_ins_limited"))
    return oidc.finish(request.args.get("code", ""), nonce, verifier, again=again)


# --- the account page


def _require_same_user(user_id: int) -> None:
    current = sessions.current()
    if not current or current["person_id"] != user_id or current["suspended"]:
        raise AppError("sign_in_expired")


def _confirm(user_id: int, person: accounts.Person, page: str) -> ResponseReturnValue:
    if accounts.known(person) != user_id:
        raise AppError("identity_other", name=settings().oidc_name)
    session_store.confirm(sessions.digest() or b"")
    return redirect(page, code=303)


@identity_bp.post("/confirm")
def confirm() -> ResponseReturnValue:
    try:
        page = confirm_page.next_page()
        return login.leave(_begin("confirm", page), f"Continue at {settings().oidc_name}")
    except AppError as error:
        return confirm_page.show(error), error.status


def _connect(user_id: int, person: accounts.Person) -> ResponseReturnValue:
    refused = errors.refusal(lambda: accounts.connect(user_id, person), "identity_taken")
    done = f"You can now sign in with {settings().oidc_name}."
    if not refused:
        hooks().notify(user_id, "account_changed", change=done)
    flash(refused.message if refused else done, "error" if refused else "success")
    return redirect(url_for("account_page.show"), code=303)


@identity_bp.post("/connect")
def connect() -> ResponseReturnValue:
    try:
        confirmation.require()
        return login.leave(_begin("connect"), f"Continue at {settings().oidc_name}")
    except AppError as error:
        return account.page(problems={"connect-password": error.message}), error.status


def _disconnect() -> str:
    confirmation.require()
    if not (g.has_password or "passkey" in g.factors) or not repository.disconnect(
        g.user_id, settings().oidc_issuer
    ):
        remedy = "Set a password or add a passkey" if settings().passwords else "Add a passkey"
        raise AppError("identity_last", remedy=remedy)
    done = f"You no longer sign in with {settings().oidc_name}."
    hooks().notify(g.user_id, "account_changed", change=done)
    return done


@identity_bp.post("/disconnect")
def disconnect() -> ResponseReturnValue:
    return account.change("disconnect", _disconnect)
