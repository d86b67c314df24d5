from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from flask import Blueprint, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import plan_use, signed_in
from linkmgr.core import errors, keys
from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.zones import parse_zone, regional_zones
from linkmgr.core.web import attempts, passwords, security_headers, session_store, sessions
from linkmgr.core.web.attempts import Limit
from linkmgr.public.home import first_page
from linkmgr.repository import account as accounts
from linkmgr.repository import users
from linkmgr.schemas.account import Account

bp = Blueprint("account_page", __name__, url_prefix="/account")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)

_ABOUT_CURRENT_PASSWORD = ("password_wrong", "too_many_sign_ins", "too_many_checks", "account_checks")
_MAX_TYPED = 255  # characters of a refused text that are shown again, as many as an e-mail address may have
_KEY_FORMS = ("key", "replace")
_REFUSED_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS)


def _page(
    *, with_key: bool = False, success: str | None = None, problems: dict[str, str] | None = None
) -> str:
    """`success` is a message above the forms for the API key, `problems` are messages by the id of
    their control."""
    account = accounts.overview(g.user_id)
    if with_key:
        users.note_shown_key(g.user_id)
    return render_template(
        "account.html",
        account=account,
        key=keys.reveal(g.user_id, account["key_ciphertext"]) if with_key else None,
        success=success,
        problems=problems or {},
        typed=request.form.get("email", "")[:_MAX_TYPED],
        usage=plan_use.usage(account),
        features=plan_use.features(account),
        rate=plan_use.rate(account),
        sessions=session_store.sessions(g.user_id, session=g.session),
        zones=regional_zones(),
    )


def confirm_password() -> None:
    """Check the current password, so that nobody can take over the account with an unattended
    browser. Wrong passwords are limited per session, not per account, so that strangers cannot lock
    out the owner."""
    password = request.form.get("current_password", "")
    limits = attempts.by_client(), Limit(f"session:{g.session.hex()}")
    if not attempts.matches(
        password, accounts.password_hash(g.user_id), *limits, account=f"user {g.user_id}"
    ):
        raise AppError("password_wrong")


def password_problem() -> dict[str, str]:
    error = errors.refusal(confirm_password)
    return {"current_password": error.message} if error else {}


@bp.get("")
def show() -> str:
    return _page()


# --- the forms: each returns the message of its success


def _replace_key() -> str:
    confirm_password()
    accounts.replace_key(g.user_id, **keys.new_key(g.user_id))
    return "This is your new API key. The old one no longer works."


def _sent(member: str) -> str:
    return str(load(Account.updates(), {member: request.form.get(member, "")})[member])


def _change_email() -> str:
    email = _sent("email")
    confirm_password()
    accounts.update(g.user_id, email=email)
    return f"Your e-mail address is now {email}."


def _change_password() -> str:
    """Change the password. Users who forgot it use a sign-in link: its session can set one, once
    and within an hour."""
    password = _sent("password")
    if not g.by_link:
        confirm_password()
    password_hash = passwords.hashed(password)
    accounts.update(g.user_id, password_hash=password_hash, session=g.session, by_link=g.by_link)
    attempts.remember_browser(g.user_id, password_hash)
    done = "set" if g.lacks_password else "changed. Other browsers have been signed out"
    return f"Your password has been {done}."


def _change_timezone() -> str:
    name = parse_zone(request.form.get("timezone", "")[:_MAX_TYPED]).key
    accounts.update(g.user_id, timezone=name)
    return f"Times are now shown in the time zone {name}."


def _change(form: str, store: Callable[[], str | None]) -> ResponseReturnValue:
    """Forms for the API key show their message in the response, so that no URL in the browser
    history does."""
    messages: list[str | None] = []
    error = errors.refusal(lambda: messages.append(store()))
    if error and error.status in _REFUSED_STATUSES:
        name = f"{form}-password" if error.code in _ABOUT_CURRENT_PASSWORD else form
        return _page(problems={name: error.message}), error.status
    if error:
        raise error
    if form in _KEY_FORMS:
        return _page(success=messages[0], with_key=True)
    flash(str(messages[0]), "success")
    return redirect(first_page() if g.lacks_password else url_for("account_page.show"), code=303)


def _return_to_page(anchor: str) -> Response:
    return redirect(url_for("account_page.show", _anchor=anchor), code=303)


_FORMS: dict[str, Callable[[], str | None]] = {
    "key": confirm_password,
    "key/replace": _replace_key,
    "email": _change_email,
    "password": _change_password,
    "timezone": _change_timezone,
}
for path, store in _FORMS.items():
    anchor, _, form = path.rpartition("/")
    bp.add_url_rule(f"/{path}", form, partial(_change, form, store), methods=["POST"])
    bp.add_url_rule(f"/{path}", f"{form}_again", partial(_return_to_page, anchor or form))


@bp.post("/sessions/<session_id>/end")
def end_session(session_id: str) -> Response:
    try:
        has_ended = session_store.end_sessions(g.user_id, session=bytes.fromhex(session_id), others=False)
    except ValueError:
        raise AppError("no_such_page") from None
    flash(
        "The browser has been signed out." if has_ended else "This browser was signed out before.", "success"
    )
    return redirect(url_for("account_page.show"), code=303)


@bp.post("/sessions/end-others")
def end_other_sessions() -> Response:
    session_store.end_sessions(g.user_id, session=g.session, others=True)
    flash("All other browsers have been signed out.", "success")
    return redirect(url_for("account_page.show"), code=303)


@bp.post("/sign-out")
def sign_out() -> Response:
    sessions.end()
    flash("You have been signed out.", "success")
    return redirect(url_for("login.form"), code=303)
