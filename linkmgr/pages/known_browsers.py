"""Browsers that have signed in to an account before, so that strangers who guess its password cannot lock them out.

The cookie holds a random name, by which the wrong passwords of this browser are counted, and a signature that binds it
to the account and to its present password: it helps with no other account, and a new password ends it.
"""

import hashlib
from datetime import timedelta

from flask import Response, after_this_request, current_app, request
from itsdangerous import Signer

from linkmgr.pages.attempts import Limit
from linkmgr.settings import settings
from linkmgr.web import keys

_LIFETIME = timedelta(days=365)
_PATH = "/login"  # the only pages that read it


def _cookie() -> str:
    return "__Secure-linkmgr_known" if _secure() else "linkmgr_known"


def _secure() -> bool:
    return settings().base_url.startswith("https://")


def _signer() -> Signer:
    secrets = [*current_app.config["SECRET_KEY_FALLBACKS"], current_app.config["SECRET_KEY"]]  # the last one signs
    return Signer(secrets, salt="linkmgr known browser", digest_method=hashlib.sha256)


def _signed(name: str, user_id: int, password_hash: str) -> str:
    return f"{name} {user_id} {password_hash}"


def remember(user_id: int, password_hash: str) -> None:
    """Send the cookie with the response to this request."""
    name = keys.new_token()
    value = f"{name}.{_signer().get_signature(_signed(name, user_id, password_hash)).decode()}"

    @after_this_request
    def send(response: Response) -> Response:
        response.set_cookie(
            _cookie(), value, max_age=_LIFETIME, path=_PATH, secure=_secure(), httponly=True, samesite="Lax"
        )
        return response


def limit(user_id: int, password_hash: str) -> Limit | None:
    """Return the limit of this browser, or None if it has not signed in to the account with its present password."""
    name, _, signature = request.cookies.get(_cookie(), "").partition(".")
    known = _signer().verify_signature(_signed(name, user_id, password_hash), signature)
    return Limit(f"browser:{name}") if known else None
