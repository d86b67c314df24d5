"""/account/confirm, where users prove with any of their factors that they are the ones who signed
in."""

import re

from flask import Blueprint, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import confirmation, signed_in
from linkmgr.core import errors
from linkmgr.core.errors import AppError
from linkmgr.core.settings import settings
from linkmgr.core.web import security_headers, session_store
from linkmgr.features.signin import factors, passkeys, totp

bp = Blueprint("confirmation", __name__, url_prefix="/account/confirm")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)

_OWN_PAGE = re.compile(r"/(account|console)([/?][!-\[\]-~]*)?")


def next_page() -> str:
    page = request.values.get("next", "")
    return page if _OWN_PAGE.fullmatch(page) else url_for("account_page.show")


@bp.get("")
def show(error: AppError | None = None) -> str:
    options = passkeys.request_options(factors.index(g.user_id)) if "passkey" in g.factors else ""
    return render_template(
        "confirm.html", error=error, next=next_page(), passkey_options=options, provider=settings().oidc_name
    )


def _check() -> None:
    if "credential" in request.form:
        if passkeys.use(request.form["credential"]) != g.user_id:
            raise AppError("passkey_refused")
    elif "code" in request.form:
        totp.use(g.user_id, request.form["code"])
    elif g.has_password:
        confirmation.require_password()
    else:  # a password of before counts no more if the service has none
        raise AppError("not_confirmed")


@bp.post("")
def confirm() -> ResponseReturnValue:
    if error := errors.refusal(_check):
        return show(error), error.status
    session_store.confirm(g.session)
    return redirect(next_page(), code=303)
