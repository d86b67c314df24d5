"""Cookies for browsers that have signed in before, so that strangers who guess passwords cannot lock out the owner.

The cookie contains a random name, under which the wrong passwords of this browser are counted, and a signature over
the name, the account and its current password hash. It is invalid for other accounts and after a password change.
"""

import hashlib
from datetime import timedelta

from flask import Response, after_this_request, current_app, request
from itsdangerous import Signer

from linkmgr import keys
from linkmgr.pages.attempts import Limit
from linkmgr.settings import settings

_LIFETIME = timedelta(days=365)
_PATH = "/login"  # no other page reads the cookie


def _cookie() -> str:
    return "__Secure-linkmgr_known" if _secure() else "linkmgr_known"


def _secure() -> bool:
    return settings().base_url.startswith("https://")


def _signer() -> Signer:
    secrets = [*current_app.config["SECRET_KEY_FALLBACKS"], current_app.config["SECRET_KEY"]]  # the last key signs
    return Signer(secrets, salt="linkmgr known browser", digest_method=hashlib.sha256)


def _payload(name: str, user_id: int, password_hash: str) -> str:
    return f"{name} {user_id} {password_hash}"


def remember(user_id: int, password_hash: str) -> None:
    """Send the cookie with the response to this request."""
    name = keys.new_token()
    value = f"{name}.{_signer().get_signature(_payload(name, user_id, password_hash)).decode()}"

    @after_this_request
    def send(response: Response) -> Response:
        response.set_cookie(
            _cookie(), value, max_age=_LIFETIME, path=_PATH, secure=_secure(), httponly=True, samesite="Lax"
        )
        return response


def limit(user_id: int, password_hash: str) -> Limit | None:
    """Return the limit of this browser, or None if it never signed in to the account with the current password."""
    name, _, signature = request.cookies.get(_cookie(), "").partition(".")
    is_valid = _signer().verify_signature(_payload(name, user_id, password_hash), signature)
    return Limit(f"browser:{name}") if is_valid else None
