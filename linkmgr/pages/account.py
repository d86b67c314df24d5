"""/account: what a user sees and changes in a browser."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import NamedTuple

import psycopg2
from flask import Blueprint, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.db.statements import Row
from linkmgr.fields.base import Email, New, Password, load
from linkmgr.pages import attempts, known_browsers
from linkmgr.pages.attempts import Limit
from linkmgr.repository import account as accounts
from linkmgr.settings import settings
from linkmgr.web import errors, keys, passwords, security_headers, sessions
from linkmgr.web.errors import AppError

bp = Blueprint("account_page", __name__, url_prefix="/account")
bp.after_request(security_headers.keep_private)

# What is counted: its heading, its name in the table `usage`, and the member of the plan's limits that bounds it.
COUNTED = (
    ("Links", "links", "links"),
    ("Clicks this month", "clicks", "clicks"),
    ("QR codes", "qrs", None),
    ("Bio pages", "bios", None),
    ("Branded domains", "domains", "domain"),
    ("Pixels", "pixels", "pixels"),
    ("Splash pages", "splash_pages", "splash"),
    ("CTA overlays", "overlays", "overlay"),
    ("Campaigns", "campaigns", "bundle"),
    ("Channels", "channels", None),
)
FEATURES = {
    "api": "API",
    "alias": "Custom short names",
    "geo": "Targets by country",
    "device": "Targets by device",
    "parameters": "Link parameters",
}
_TOLD_ON_THE_PAGE = (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS)


class Use(NamedTuple):
    """A line of the plan: what there is of what is allowed.  No limit: None; not in the plan: 0."""

    label: str
    used: int
    limit: int | None


class NewEmail(New):
    email = Email(required=True)


class NewPassword(New):
    password = Password(required=True)


def _limit(limits: Row, member: str | None) -> int | None:
    allowed = 0 if member is None else limits[member]
    if isinstance(allowed, dict):
        if allowed["enabled"] != "1":
            return 0
        allowed = int(allowed.get("count", 0))
    return allowed or None


def _uses(account: Row) -> list[Use]:
    """Limits do not bind administrators."""
    return [
        Use(label, account["used"].get(kind, 0), None if account["admin"] else _limit(account["limits"], member))
        for label, kind, member in COUNTED
    ]


def _features(account: Row) -> dict[str, bool]:
    return {
        label: account["admin"] or account["limits"][member]["enabled"] == "1" for member, label in FEATURES.items()
    }


def _page(*, with_key: bool = False, notice: str | None = None, problem: str | None = None) -> str:
    """`notice` and `problem` are what came of a form of the key's."""
    account = accounts.overview(g.user_id)
    return render_template(
        "account.html",
        account=account,
        key=keys.reveal(g.user_id, account["key_ciphertext"]) if with_key else None,
        notice=notice,
        problem=problem,
        uses=_uses(account),
        features=_features(account),
        rate=f"{account['rate']} per minute" if account["rate"] else settings().rate_limit,
        knows_no_password=g.by_link,
    )


@bp.before_request
def _require_session() -> Response | None:
    found = sessions.current()
    if found is None:
        return redirect(url_for("login.form"), code=303)
    g.user_id, g.by_link, g.session = found["user_id"], found["by_link"], sessions.digest()
    return None


def _change(function: Callable[[], str]) -> Callable[[], Response]:
    """Leads back to the account page, with what came of the change."""

    @wraps(function)
    def changed() -> Response:
        try:
            flash(function(), "success")
        except (AppError, psycopg2.IntegrityError) as error:
            refusal = error if isinstance(error, AppError) else errors.from_constraint(error)
            if refusal is None or refusal.status not in _TOLD_ON_THE_PAGE:
                raise
            flash(refusal.message, "error")
        return redirect(url_for("account_page.show"), code=303)

    return changed


def _confirm() -> None:
    """Ask for the current password, so that an unattended browser is not enough to take over the account.  A session
    that a login link began within the hour needs none, for users who forgot their password.  Wrong passwords are
    limited per session and not per account, so that strangers cannot keep the owner from a change."""
    if g.by_link:
        return
    current, limit = accounts.password_hash(g.user_id), Limit(f"session:{g.session.hex()}")
    if not attempts.matches(request.form.get("current_password", ""), current, attempts.by_sender(), limit):
        raise AppError("password_wrong")


def _with_key(function: Callable[[], str | None]) -> Callable[[], ResponseReturnValue]:
    """Shows the key, and what the function says of it, once the password is confirmed.  The answer to a form is
    the only page that has the key: nothing that can be opened again leads there."""

    @wraps(function)
    def confirmed() -> ResponseReturnValue:
        try:
            _confirm()
        except AppError as refusal:
            return _page(problem=refusal.message), refusal.status
        return _page(notice=function(), with_key=True)

    return confirmed


@bp.get("")
def show() -> str:
    return _page()


@bp.get("/key")
@bp.get("/key/replace")
def return_to_key() -> Response:
    """For who opens the address of a form's answer again."""
    return redirect(url_for("account_page.show", _anchor="key"), code=303)


@bp.post("/key")
@_with_key
def show_key() -> None:
    return None


@bp.post("/key/replace")
@_with_key
def replace_key() -> str:
    accounts.replace_key(g.user_id, **keys.new_key(g.user_id))
    return "This is your new API key. The old one no longer works."


@bp.post("/email")
@_change
def change_email() -> str:
    new = load(NewEmail, request.form.to_dict())
    _confirm()
    accounts.update(g.user_id, **new)
    return f"Your e-mail address is now {new['email']}."


@bp.post("/password")
@_change
def change_password() -> str:
    new = load(NewPassword, request.form.to_dict())
    _confirm()
    password_hash = passwords.hashed(new["password"])
    accounts.update(g.user_id, password_hash=password_hash, session=g.session)
    known_browsers.remember(g.user_id, password_hash)
    return "Your password has been changed. Other browsers have been signed out."


@bp.post("/sign-out")
def sign_out() -> Response:
    sessions.end()
    flash("You have signed out.", "success")
    return redirect(url_for("login.form"), code=303)
