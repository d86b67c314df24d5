from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus

from cryptography.fernet import InvalidToken
from flask import Blueprint, current_app, flash, g, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import confirmation, login, plan_use, signed_in
from linkmgr.core import errors, keys
from linkmgr.core.database.statements import Row
from linkmgr.core.database.transaction import in_transaction
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_feature, has_mail
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.zones import parse_zone, regional_zones
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import attempts, passwords, security_headers, session_store, sessions
from linkmgr.public.home import first_page
from linkmgr.repository import account as accounts
from linkmgr.repository import users
from linkmgr.schemas.account import Account, change_account

bp = Blueprint("account_page", __name__, url_prefix="/account")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)

_ABOUT_CURRENT_PASSWORD = (
    "password_wrong",
    "not_confirmed",
    "too_many_sign_ins",
    "too_many_checks",
    "account_checks",
)
_MAX_TYPED = 255  # characters of a refused text that are shown again, as many as an e-mail address may have
_KEY_FORMS = ("key", "replace")
_REFUSED_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS)


def page(
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


def require_strong(password: str, *names: str) -> None:
    """Refuse a new password that is short or common."""
    if has_feature("signin"):
        from linkmgr.features.signin import new_passwords  # noqa: PLC0415 - takes 13 MiB once it is used

        new_passwords.require_strong(password, *names)


@bp.get("")
def show() -> str:
    return page()


# --- the forms: each returns the message of its success


def _replace_key() -> str:
    confirmation.require()
    with in_transaction():
        accounts.replace_key(g.user_id, **keys.new_key(g.user_id))
        hooks().notify(g.user_id, "account_changed", change="The API key was replaced.")
    return "This is your new API key. The old one no longer works."


def _sent(member: str) -> str:
    return str(load(Account.updates(), {member: request.form.get(member, "")})[member])


def _change_email() -> str:
    email = _sent("email")
    confirmation.require()
    if has_mail():
        hooks().notify(g.user_id, "confirm_email", to=email, email=email)
        return f"Open the link that was sent to {email}. Until then, your e-mail address stays as it is."
    change_account(g.user_id, email=email)
    return f"Your e-mail address is now {email}."


def _change_password() -> str:
    """Change the password. Users who forgot it use a sign-in link: its session can set one, once
    and within an hour."""
    if not settings().passwords:
        raise AppError("passwords_off")
    password = _sent("password")
    require_strong(password, g.account["person"], g.account["person_email"])
    if not g.by_link:
        confirmation.require()
    password_hash = passwords.hashed(password)
    change_account(g.user_id, password_hash=password_hash, session=g.session, by_link=g.by_link)
    attempts.remember_browser(g.user_id, password_hash)
    done = "set" if not g.has_password else "changed. Other browsers have been signed out"
    return f"Your password has been {done}."


def _change_timezone() -> str:
    name = parse_zone(request.form.get("timezone", "")[:_MAX_TYPED]).key
    accounts.update(g.user_id, timezone=name)
    return f"Times are now shown in the time zone {name}."


def change(form: str, store: Callable[[], str | None]) -> ResponseReturnValue:
    """Forms for the API key show their message in the response, so that no URL in the browser
    history does."""
    messages: list[str | None] = []
    error = errors.refusal(lambda: messages.append(store()))
    if error and error.status in _REFUSED_STATUSES:
        name = f"{form}-password" if error.code in _ABOUT_CURRENT_PASSWORD else form
        return page(problems={name: error.message}), error.status
    if error:
        raise error
    if form in _KEY_FORMS:
        return page(success=messages[0], with_key=True)
    flash(str(messages[0]), "success")
    return redirect(first_page() if g.lacks_password else url_for("account_page.show"), code=303)


def _return_to_page(anchor: str) -> Response:
    return redirect(url_for("account_page.show", _anchor=anchor), code=303)


_FORMS: dict[str, Callable[[], str | None]] = {
    "key": confirmation.require,
    "key/replace": _replace_key,
    "email": _change_email,
    "password": _change_password,
    "timezone": _change_timezone,
}
for path, store in _FORMS.items():
    anchor, _, form = path.rpartition("/")
    bp.add_url_rule(f"/{path}", form, partial(change, form, store), methods=["POST"])
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


def _sign_out_url(ended: Row) -> str | None:
    """Return the URL that ends the session at the provider at which this one began, or None."""
    if ended["id_token"] and "sign_in_oidc" in current_app.blueprints:
        from linkmgr.features.signin import oidc  # noqa: PLC0415 - not imported without a provider

        with suppress(InvalidToken, AppError):  # another secret; a provider that is down
            return oidc.sign_out_url(keys.unseal(ended["user_id"], ended["id_token"]))
    return None


@bp.post("/sign-out")
def sign_out() -> Response:
    remote_user, ended = session.get(sessions.REMOTE_USER), sessions.end()
    flash("You have been signed out.", "success")
    if url := ended and _sign_out_url(ended):
        return login.leave(url, f"Signing you out of {settings().oidc_name}")
    # With a name, the page would sign the user in again
    return redirect(url_for("login.form", stay=1 if remote_user else None), code=303)
