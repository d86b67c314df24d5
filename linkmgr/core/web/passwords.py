"""Password hashes: argon2id with the minimum parameters that OWASP recommends (19 MiB, 2 passes, 1 lane)."""

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from linkmgr.core.errors import AppError
from linkmgr.core.web import pool

_TOO_COSTLY = "password_hash takes longer to check than one of this service. Remove it, and set a new password"
MAX_COSTS = 19 * 1024, 2, 1  # memory in KiB, passes and lanes
hasher = PasswordHasher(memory_cost=MAX_COSTS[0], time_cost=MAX_COSTS[1], parallelism=MAX_COSTS[2])


def hashed(password: str) -> str:
    """Return a hash, which takes 30 ms of one core and 19 MiB."""
    pool.take("password_busy")
    return hasher.hash(password)


def matches(password: str, password_hash: str) -> bool:
    pool.take("password_busy")
    try:
        return hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def imported_hash(value: object) -> str:
    """Return a hash, unless checking it would take longer than checking our own."""
    try:
        parameters = extract_parameters(str(value))
    except InvalidHashError:
        raise AppError("invalid", problems="password_hash must be a hash of argon2id") from None
    costs = (parameters.memory_cost, parameters.time_cost, parameters.parallelism)
    if any(cost > limit for cost, limit in zip(costs, MAX_COSTS, strict=True)):
        raise AppError("invalid", problems=_TOO_COSTLY)
    return str(value)
