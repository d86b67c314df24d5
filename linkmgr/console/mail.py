"""The pages about e-mail messages, if a mail server is set: a forgotten password, a new address,
and which messages a user gets."""

from http import HTTPStatus

from flask import Blueprint, Flask, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from itsdangerous import BadData
from werkzeug.wrappers import Response

from linkmgr.console import signed_in
from linkmgr.core.database.transaction import in_transaction
from linkmgr.core.errors import AppError, existing, refusal
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import security_headers
from linkmgr.features.mail import messages, outgoing, repository

bp = Blueprint("mail_pages", __name__)
own = Blueprint("own_mail", __name__, url_prefix="/account")  # requires a session
own.before_request(signed_in.require_session)
for blueprint in (bp, own):
    blueprint.after_request(security_headers.keep_private)

_HOUR = 3600
_MAX_TYPED = 255  # characters of a name or an e-mail address
_CHOICES = {name: message.label for name, message in messages.MESSAGES.items() if message.label}


# --- a forgotten password


def _require_passwords() -> None:
    if not settings().passwords:  # nor does a mailbox open an account that a provider guards
        raise AppError("passwords_off")


@bp.get("/login/forgot")
def forgot() -> str:
    _require_passwords()
    return render_template("login_forgot.html", sent="")


@bp.post("/login/forgot")
def send_link() -> str:
    _require_passwords()
    typed = request.form.get("email", "").replace("\0", "").strip()[:_MAX_TYPED]
    if typed:
        outgoing.request_reset(typed)
    return render_template("login_forgot.html", sent=typed)


# --- messages that a user does not want


def choices() -> list[tuple[str, str, bool]]:
    """Return the name and the label of each message that users can turn off, and whether this one
    gets it."""
    user = existing(repository.recipient(g.user_id), "user")
    return [(name, label, name not in user["no_mail"]) for name, label in _CHOICES.items()]


@own.post("/mail")
def choose() -> Response:
    chosen = request.form.getlist("message")
    repository.choose(g.user_id, unwanted=[name for name in _CHOICES if name not in chosen])
    flash("Your choice of messages has been saved.", "success")
    return redirect(url_for("account_page.show"), code=303)


@bp.route("/account/unsubscribe/<token>", methods=["GET", "POST"])
def unsubscribe(token: str) -> str:
    """Turn off a kind of message. Mail programs send the POST by themselves (RFC 8058), without a
    session."""
    try:
        user_id, name = messages.off_signer().loads(token)
    except BadData:
        raise AppError("no_such_page") from None
    is_off = request.method == "POST"
    if is_off:
        repository.turn_off(user_id, name)
    return render_template("unsubscribe.html", label=_CHOICES.get(name, name), is_off=is_off)


# --- a new address


def _read(token: str) -> tuple[str, str]:
    """Return the address that a link replaces and the new one, or "" twice if the link is older
    than an hour, another user's or invalid."""
    try:
        user_id, before, email = messages.email_signer().loads(token, max_age=_HOUR)
    except BadData:
        return "", ""
    return (before, email) if user_id == g.user_id else ("", "")


def _page(email: str, problem: str = "") -> ResponseReturnValue:
    status = HTTPStatus.GONE if not email else HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK
    return render_template("new_email.html", email=email, problem=problem), status


@own.get("/email/<token>")
def confirm(token: str) -> ResponseReturnValue:
    before, email = _read(token)
    return _page(email if before == g.account["person_email"] else "")


@own.post("/email/<token>")
def change_email(token: str) -> ResponseReturnValue:
    before, email = _read(token)
    is_changed = []

    def change() -> None:
        with in_transaction():
            is_changed.append(repository.confirm_email(g.user_id, before=before, email=email))
            if is_changed[0]:
                hooks().notify(g.user_id, "email_changed", to=before, email=email)

    if email and (error := refusal(change)):
        return _page(email, error.message)
    if not any(is_changed):
        return _page("")
    flash(f"Your e-mail address is now {email}.", "success")
    return redirect(url_for("account_page.show"), code=303)


def init_app(app: Flask) -> None:
    app.jinja_env.globals["mail_choices"] = choices
    app.register_blueprint(bp)
    app.register_blueprint(own)
