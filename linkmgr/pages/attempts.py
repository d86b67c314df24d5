"""Password checks with a limit on wrong passwords.

An attempt is counted after the comparison. A wrong password adds one and a correct one adds nothing; both fail if the
limit was reached before. Therefore any number of correct passwords succeed at the same time, no more concurrent guesses
get an answer than the limit allows, and a process that dies during a comparison leaves no trace.

Browsers that have signed in before have a limit of their own, so that strangers who guess passwords cannot lock out the
owner. Their cookie is a random name, under which their wrong passwords are counted, signed for the account and its
current password hash. It is invalid for other accounts and after a password change.
"""

import hashlib
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from flask import Response, after_this_request, current_app, request
from itsdangerous import BadSignature, Signer

from linkmgr import keys
from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.repository import rate_windows
from linkmgr.request import request as web_request
from linkmgr.web import passwords

ATTEMPTS, WINDOW = 10, 600  # wrong passwords per IP address, known browser or session; seconds
CHECKS = 100  # passwords of links per IP address, correct ones too, in the same window
PER_ACCOUNT = 50  # wrong passwords per e-mail address, from all IP addresses, in the same window


class Limit(NamedTuple):
    """The limit on wrong passwords for a bucket in one window."""

    bucket: str
    max_failures: int = ATTEMPTS
    code: str = "too_many_sign_ins"


def by_client(scope: str = "login") -> Limit:
    return Limit(f"{scope}:{web_request.network()}")


def limit_checks() -> None:
    """Limit the checks of passwords of links, correct ones too: their owner can send these without end."""
    limit = by_client("checks")._replace(max_failures=CHECKS, code="too_many_checks")
    _enforce(limit, rate_windows.count(limit.bucket, window=WINDOW), added=1)


def by_account(bucket: str) -> Limit:
    return Limit(bucket, PER_ACCOUNT, "too_many_for_account")


def by_browser(user_id: int, password_hash: str) -> Limit | None:
    """Return the limit of this browser, or None if it never signed in to the account with the current password."""
    with suppress(BadSignature):
        name = _signer(user_id, password_hash).unsign(request.cookies.get(_cookie(), ""))
        return Limit(f"browser:{name.decode()}")
    return None


def matches(password: str, password_hash: str, *limits: Limit) -> bool:
    """Compare a password. Raise an error if any limit was reached before or during the comparison."""
    failures = {row["bucket"]: row for row in rate_windows.counts([limit.bucket for limit in limits], window=WINDOW)}
    for limit in limits:
        if limit.bucket in failures:
            _enforce(limit, failures[limit.bucket])
    is_correct = passwords.matches(password, password_hash)
    for limit in limits:
        counter = rate_windows.count(limit.bucket, by=int(not is_correct), window=WINDOW)
        _enforce(limit, counter, added=int(not is_correct))
    return is_correct


def _enforce(limit: Limit, counter: Row, *, added: int = 0) -> None:
    if counter["count"] - added >= limit.max_failures:
        raise AppError(limit.code, seconds=min(max(counter["seconds"], 1), WINDOW))


# --- known browsers


def _cookie() -> str:
    return "__Secure-linkmgr_known" if current_app.config["SESSION_COOKIE_SECURE"] else "linkmgr_known"


def _signer(user_id: int, password_hash: str) -> Signer:
    secrets = [*current_app.config["SECRET_KEY_FALLBACKS"], current_app.config["SECRET_KEY"]]  # the last key signs
    return Signer(secrets, salt=f"linkmgr known browser {user_id} {password_hash}", digest_method=hashlib.sha256)


def remember_browser(user_id: int, password_hash: str) -> None:
    """Send the cookie with the response to this request."""
    value = _signer(user_id, password_hash).sign(keys.new_token()).decode()

    @after_this_request
    def send(response: Response) -> Response:
        response.set_cookie(
            _cookie(),
            value,
            max_age=timedelta(days=365),
            path="/login",  # no other page reads it
            secure=current_app.config["SESSION_COOKIE_SECURE"],
            httponly=True,
            samesite="Lax",
        )
        return response
