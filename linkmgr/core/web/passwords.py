"""Password hashes: argon2id with the minimum parameters that OWASP recommends (19 MiB, 2 passes, 1
lane).

A hash takes 30 ms of a core, so a request waits for its turn instead of being refused. Sign-ins and
passwords of links wait without a thread (deploy/queues.py). Background threads take no turns from
requests.
"""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError
from flask import has_request_context

from linkmgr.core.errors import RETRY_SECONDS, AppError
from linkmgr.core.web import pool

_TOO_COSTLY = (
    "password_hash takes longer to check than one of this service. Remove it, and set a new password"
)
# Hashes of requests at the same time in a process, and the seconds that a request waits for one
TURNS, WAIT = (2, 3.0)
MAX_COSTS = 19 * 1024, 2, 1  # memory in KiB, passes and lanes
hasher = PasswordHasher(memory_cost=MAX_COSTS[0], time_cost=MAX_COSTS[1], parallelism=MAX_COSTS[2])
turns = threading.BoundedSemaphore(TURNS)


@contextmanager
def _turn() -> Iterator[None]:
    if not has_request_context():
        yield
        return
    if not turns.acquire(timeout=WAIT):
        raise AppError("password_busy", seconds=RETRY_SECONDS)
    try:
        yield
    finally:
        turns.release()


def hashed(password: str) -> str:
    with _turn():
        return hasher.hash(password)


def hashed_all(sent: Collection[str]) -> dict[str, str]:
    """Return the hashes of the passwords of a request. Several take long."""
    if len(sent) > 1:
        pool.take("password_busy")
    return {password: hashed(password) for password in sent}


def matches(password: str, password_hash: str) -> bool:
    with _turn():
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
