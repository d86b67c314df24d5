"""Password checks with a limit on wrong passwords.

An attempt is counted after the comparison. A wrong password adds one and a correct one adds nothing; both fail if the
limit was reached before. Therefore any number of correct passwords succeed at the same time, no more concurrent guesses
get an answer than the limit allows, and a process that dies during a comparison leaves no trace.
"""

from typing import NamedTuple

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.repository import rate_windows
from linkmgr.web import passwords
from linkmgr.web import request as web_request

ATTEMPTS, WINDOW = 10, 600  # wrong passwords per IP address, known browser or session; seconds
PER_ACCOUNT = 50  # wrong passwords per e-mail address, from all IP addresses, in the same window


class Limit(NamedTuple):
    """The limit on wrong passwords for a bucket in one window."""

    bucket: str
    max_failures: int = ATTEMPTS
    code: str = "too_many_sign_ins"


def by_client(scope: str = "login") -> Limit:
    return Limit(f"{scope}:{web_request.network()}")


def by_account(bucket: str) -> Limit:
    return Limit(bucket, PER_ACCOUNT, "too_many_for_account")


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
