"""/account/factors: passkeys and one-time codes of a user. Each change needs a confirmation."""

from flask import Blueprint, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import signed_in
from linkmgr.core.errors import AppError, existing, refusal
from linkmgr.core.hooks import hooks
from linkmgr.core.web import security_headers
from linkmgr.features.signin import factors, passkeys, totp

bp = Blueprint("factors", __name__, url_prefix="/account/factors")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)

_MAX_NAME = 60  # characters


@bp.before_request
def _require_confirmation() -> Response | None:
    if request.method != "POST" or g.is_confirmed:
        return None
    return redirect(url_for("confirmation.show", next=url_for("factors.show")), code=303)


@bp.get("")
def show(error: AppError | None = None) -> str:
    rows = factors.index(g.user_id)
    can_add = g.is_confirmed and passkeys.are_possible()
    return render_template(
        "factors.html",
        error=error,
        passkeys=[row for row in rows if row["method"] == "passkey"],
        codes=next((row for row in rows if row["enrolled"] and row["method"] == "codes"), None),
        possible=passkeys.are_possible(),
        options=passkeys.creation_options(g.user_id, g.account["person_email"], rows) if can_add else "",
    )


def _tell(change: str) -> None:
    hooks().notify(g.user_id, "account_changed", change=change)


def _done(sentence: str) -> Response:
    flash(sentence, "success")
    return redirect(url_for("factors.show"), code=303)


def _name() -> str:
    """Return a name for a passkey. One without a name was made, and must not be lost."""
    return "".join(filter(str.isprintable, request.form.get("name", ""))).strip()[:_MAX_NAME] or "Passkey"


@bp.post("/passkeys")
def add_passkey() -> ResponseReturnValue:
    name, sent = _name(), request.form.get("credential", "")
    if error := refusal(lambda: passkeys.register(g.user_id, name, sent)):
        return show(error), error.status
    _tell(f"The passkey {name} was added.")
    return _done("The passkey has been added.")


@bp.post("/<id:factor_id>/rename")
def rename(factor_id: int) -> Response:
    existing(factors.rename(g.user_id, factor_id, _name()), "factor")
    return _done("The passkey has been renamed.")


@bp.post("/<id:factor_id>/remove")
def remove(factor_id: int) -> Response:
    existing(factors.delete(g.user_id, factor_id) or None, "factor")
    return _done("It has been removed.")


# --- one-time codes


@bp.post("/codes")
def begin_codes() -> str:
    totp.begin(g.user_id)
    return _enrollment()


def _enrollment(error: AppError | None = None) -> str:
    secret, image = totp.waiting_secret(g.user_id, g.account["person_email"])
    return render_template("factor_codes.html", secret=secret, image=image, error=error)


@bp.post("/codes/first")
def enroll() -> ResponseReturnValue:
    try:
        recovery = totp.enroll(g.user_id, request.form.get("code", ""))
    except AppError as error:
        if error.code == "codes_enrolled":
            raise
        return _enrollment(error), error.status
    _tell("One-time codes were set up.")
    return render_template("recovery_codes.html", codes=recovery, is_new=True)


@bp.post("/recovery-codes")
def replace_recovery_codes() -> str:
    """Show new recovery codes once: only their digests are stored."""
    codes = totp.replace_recovery_codes(g.user_id)
    _tell("The recovery codes were replaced.")
    return render_template("recovery_codes.html", codes=codes)
