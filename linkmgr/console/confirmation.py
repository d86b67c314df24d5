"""The confirmation before a change of what gives lasting access. Somebody with a stolen session
must not get more, so a sign-in does not confirm, and each form asks for the current password.

Users who have other factors, or no password, confirm on a page of its own (confirm_page.py), for
the next five minutes (`session_store.confirm`). A proxy identifies its users with each request, and
who has nothing but a sign-in link is confirmed by it for an hour.
"""

from flask import g, request

from linkmgr.core import errors
from linkmgr.core.errors import AppError
from linkmgr.core.web import attempts
from linkmgr.core.web.attempts import Limit
from linkmgr.repository import account as accounts


def require() -> None:
    """Check what the form of a change has sent."""
    if g.is_confirmed:
        return
    if g.confirms_apart:
        raise AppError("not_confirmed")
    require_password()


def require_password() -> None:
    """Check the current password. Wrong passwords are limited per session, not per account, so that
    strangers cannot lock out the owner."""
    password = request.form.get("current_password", "")
    limits = attempts.by_client(), Limit(f"session:{g.session.hex()}")
    if not attempts.matches(
        password, accounts.password_hash(g.person_id), *limits, account=f"user {g.person_id}"
    ):
        raise AppError("password_wrong")


def problem() -> dict[str, str]:
    error = errors.refusal(require)
    return {"current_password": error.message} if error else {}
