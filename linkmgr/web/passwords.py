"""Password hashes: argon2id with the minimum parameters that OWASP recommends (19 MiB, 2 passes, 1 lane)."""

import threading

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from linkmgr.errors import AppError

hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
MAX_COSTS = 64 * 1024, 4, 4  # memory, time and lanes of hashes of other installations

# Each hash takes 30 ms of one core and 19 MiB. The limit keeps many sign-ins from blocking other requests.
_concurrent_hashes = threading.Semaphore(2)


def hashed(password: str) -> str:
    with _concurrent_hashes:
        return hasher.hash(password)


def matches(password: str, password_hash: str) -> bool:
    with _concurrent_hashes:
        try:
            return hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False


def imported_hash(value: object) -> str:
    """Return a hash, unless checking it would take much longer than checking our own."""
    try:
        parameters = extract_parameters(str(value))
    except InvalidHashError:
        raise AppError("invalid", problems="password_hash must be a hash of argon2id") from None
    costs = (parameters.memory_cost, parameters.time_cost, parameters.parallelism)
    if any(cost > limit for cost, limit in zip(costs, MAX_COSTS, strict=True)):
        raise AppError("invalid", problems="password_hash takes too long to check")
    return str(value)
