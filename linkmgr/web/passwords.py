"""Password hashes: argon2id at the strength that OWASP names as the least (19 MiB, 2 passes, 1 lane)."""

import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

# Each hash costs a core 30 ms and 19 MiB: a flood of sign-ins must leave room for everything else.
_at_a_time = threading.Semaphore(2)


def hashed(password: str) -> str:
    with _at_a_time:
        return hasher.hash(password)


def matches(password: str, password_hash: str) -> bool:
    with _at_a_time:
        try:
            return hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False
