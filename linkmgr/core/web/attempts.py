"""Password checks with a limit on wrong passwords, and a larger one on all, because each check
takes 30 ms of a core.

A wrong password is counted after the comparison. It adds one and a correct one adds nothing; both
fail if the limit was reached before. Therefore correct passwords succeed at the same time, no more
concurrent guesses get a response than the limit allows, and a process that dies during a comparison
leaves no trace.

Browsers that have signed in before have a limit of their own, so that strangers who guess passwords
cannot lock out the owner. Their cookie is a random name, under which their wrong passwords are
counted, signed for the account and its current password hash. It is invalid for other accounts and
after a password change.
"""

from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from flask import Response, after_this_request, current_app, request
from itsdangerous import BadSignature, Signer

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.web import passwords, rate_windows
from linkmgr.core.web import request as web_request

ATTEMPTS, WINDOW = 10, 600  # wrong passwords per IP address, known browser or session; seconds
CHECKS = 100  # passwords per IP address and per account, correct ones too, in the same window
PER_ACCOUNT = 50  # wrong passwords per e-mail address, from all IP addresses, in the same window


class Limit(NamedTuple):
    bucket: str
    most: int = ATTEMPTS
    code: str = "too_many_sign_ins"

    def count(self, by: int) -> int:
        """Add to the counter. 0 waits for the attempts that are being counted."""
        return int(rate_windows.count(self.bucket, window=WINDOW, by=by)["count"])

    @property
    def current(self) -> Row:
        return rate_windows.current(self.bucket, window=WINDOW)


def by_client(scope: str = "login") -> Limit:
    return Limit(f"{scope}:{web_request.network()}")


def _checks(account: str | None) -> list[Limit]:
    address = Limit(f"checks:{web_request.network()}", CHECKS, "too_many_checks")
    return [address, Limit(f"checks:{account}", CHECKS, "account_checks")] if account else [address]


def by_account(bucket: str) -> Limit:
    return Limit(bucket, PER_ACCOUNT, "too_many_for_account")


def by_browser(user_id: int, password_hash: str) -> Limit | None:
    with suppress(BadSignature):
        name = _signer(user_id, password_hash).unsign(request.cookies.get(_cookie(), ""))
        return Limit(f"browser:{name.decode()}")
    return None


def matches(password: str, password_hash: str, *limits: Limit, account: str | None = None) -> bool:
    """Compare a password. Raise an error if any limit was reached before or during the comparison.
    All passwords for an account are counted under the name `account`, those of strangers under
    another one than those of known browsers."""
    for limit in limits:
        if limit.current["count"] >= limit.most:
            raise _refusal(limit)
    for limit in _checks(account):
        spend(limit)
    is_correct = passwords.matches(password, password_hash)
    for limit in limits:
        if limit.count(int(not is_correct)) + is_correct > limit.most:
            raise _refusal(limit)
    return is_correct


def spend(limit: Limit) -> None:
    """Count an attempt, whatever its result will be. Raise an error if there were too many."""
    if limit.count(1) > limit.most:
        raise _refusal(limit)


def _refusal(limit: Limit) -> AppError:
    return AppError(limit.code, seconds=limit.current["seconds"])


# --- known browsers


def _cookie() -> str:
    return "__Secure-linkmgr_known" if current_app.config["SESSION_COOKIE_SECURE"] else "linkmgr_known"


def _signer(user_id: int, password_hash: str) -> Signer:
    return keys.signer(f"linkmgr known browser {user_id} {password_hash}")


def remember_browser(user_id: int, password_hash: str) -> None:
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
