"""Password checks that limit wrong passwords.

An attempt is counted after its comparison, and the order of counting decides: a wrong password adds one, a right one
adds nothing, and either is refused if the limit was reached before it.  So any number of right passwords succeed at
once, exactly as many wrong ones as the limit could have been right, and a process that dies during a comparison
leaves nothing behind.
"""

from typing import NamedTuple

from linkmgr.db.statements import Row
from linkmgr.repository import callers
from linkmgr.web import client_address, passwords
from linkmgr.web.errors import AppError

ATTEMPTS, WINDOW = 10, 600  # wrong passwords from one IP address, known browser or session, and in how many seconds
PER_ACCOUNT = 50  # wrong passwords for one e-mail address, from everywhere, in the same time


class Limit(NamedTuple):
    """The wrong passwords that a bucket takes in the window."""

    bucket: str
    most: int = ATTEMPTS
    code: str = "too_many_sign_ins"


def by_sender(where: str = "login") -> Limit:
    return Limit(f"{where}:{client_address.network()}")


def by_account(bucket: str) -> Limit:
    return Limit(bucket, PER_ACCOUNT, "too_many_for_account")


def matches(password: str, password_hash: str, *limits: Limit) -> bool:
    """Compare a password.  Refuse if any limit was reached before or during the comparison."""
    failures = {row["bucket"]: row for row in callers.counts([limit.bucket for limit in limits], window=WINDOW)}
    for limit in limits:
        if limit.bucket in failures:
            _refuse(limit, failures[limit.bucket], before=failures[limit.bucket]["count"])
    right = passwords.matches(password, password_hash)
    wrong = int(not right)
    for limit in limits:
        counted = callers.count(limit.bucket, by=wrong, window=WINDOW)
        _refuse(limit, counted, before=counted["count"] - wrong)
    return right


def _refuse(limit: Limit, counted: Row, *, before: int) -> None:
    if before >= limit.most:
        raise AppError(limit.code, seconds=min(max(counted["seconds"], 1), WINDOW))
