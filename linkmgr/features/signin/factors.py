"""The factors of users: passkeys, and the secret of one-time codes with its recovery codes."""

from typing import Any

from linkmgr.core.database.statements import Row, row, rows, run, run_one
from linkmgr.core.hooks import hooks


def index(user_id: int) -> list[Row]:
    """Return the factors, the oldest first. `enrolled` is False until the first one-time code."""
    return rows(
        """
        SELECT id, method, name, credential, created, used, counter IS NOT NULL AS enrolled,
               cardinality(recovery) AS recovery
          FROM factors
         WHERE user_id = %(user_id)s
         ORDER BY id
        """,
        user_id=user_id,
    )


def rename(user_id: int, factor_id: int, name: str) -> Row | None:
    return run(
        """
        UPDATE factors SET name = %(name)s
         WHERE user_id = %(user_id)s AND id = %(factor_id)s AND method = 'passkey'
        RETURNING id
        """,
        user_id=user_id,
        factor_id=factor_id,
        name=name,
    )


def delete(user_id: int, factor_id: int | None = None) -> int:
    """Delete a factor, or all of a user, and return their number."""
    deleted = run_one(
        """
        WITH deleted AS (
            DELETE FROM factors
             WHERE user_id = %(user_id)s AND id = coalesce(%(factor_id)s, id)
            RETURNING id)
        SELECT count(*) AS number FROM deleted
        """,
        user_id=user_id,
        factor_id=factor_id,
    )
    if deleted["number"]:
        change = "A passkey or the one-time codes were removed."
        hooks().notify(user_id, "account_changed", change=change)
    return int(deleted["number"])


# --- passkeys


def add_passkey(user_id: int, name: str, **key: Any) -> None:
    """Store a passkey with its `credential`, `public_key` and `counter`."""
    run(
        """
        INSERT INTO factors (user_id, method, name, credential, public_key, counter)
        VALUES (require_room(%(user_id)s, 'factors', 20, 'factors_full'), 'passkey', %(name)s,
                %(credential)s, %(public_key)s, %(counter)s)
        """,
        user_id=user_id,
        name=name,
        **key,
    )


def find_passkey(credential: bytes) -> Row | None:
    return row(
        "SELECT user_id, public_key, counter FROM factors WHERE credential = %(credential)s",
        credential=credential,
    )


def use_passkey(credential: bytes, counter: int) -> Row | None:
    """Store the counter of a signature. Return None if an equal or later one was stored before,
    unless the passkey does not count, which sends 0."""
    return run(
        """
        UPDATE factors SET counter = %(counter)s, used = now()
         WHERE credential = %(credential)s
           AND (counter < %(counter)s OR (counter = 0 AND %(counter)s = 0))
        RETURNING user_id
        """,
        credential=credential,
        counter=counter,
    )


# --- one-time codes


def new_secret(user_id: int, secret: str) -> Row | None:
    """Store an encrypted secret, which counts from the first code on. Return None if the user has
    one-time codes."""
    return run(
        """
        INSERT INTO factors AS f (user_id, method, secret)
        VALUES (%(user_id)s, 'codes', %(secret)s)
        ON CONFLICT (user_id, credential) DO UPDATE
           SET secret = excluded.secret, created = now()
         WHERE f.counter IS NULL
        RETURNING id
        """,
        user_id=user_id,
        secret=secret,
    )


def secret(user_id: int, *, enrolled: bool) -> str | None:
    """Return the encrypted secret that is in use, or the one that waits for its first code."""
    stored = row(
        """
        SELECT secret FROM factors
         WHERE user_id = %(user_id)s AND method = 'codes'
           AND (counter IS NOT NULL) = %(enrolled)s::boolean
        """,
        user_id=user_id,
        enrolled=enrolled,
    )
    return str(stored["secret"]) if stored else None


def enroll(user_id: int, secret: str, *, step: int, recovery: list[bytes]) -> Row | None:
    """Begin to use a secret, whose first code was that of the time step. Return None if another
    request has done so."""
    return run(
        """
        UPDATE factors SET counter = %(step)s, recovery = %(recovery)s, used = now()
         WHERE user_id = %(user_id)s AND method = 'codes' AND secret = %(secret)s AND counter IS NULL
        RETURNING id
        """,
        user_id=user_id,
        secret=secret,
        step=step,
        recovery=recovery,
    )


def use_step(user_id: int, step: int) -> Row | None:
    """Use up the code of a time step, and those before it. Return None if that was done before."""
    return run(
        """
        UPDATE factors SET counter = %(step)s, used = now()
         WHERE user_id = %(user_id)s AND method = 'codes' AND counter < %(step)s
        RETURNING id
        """,
        user_id=user_id,
        step=step,
    )


def use_recovery_code(user_id: int, digest: bytes) -> Row | None:
    """Return None if it is wrong, or if another request has used it up."""
    return run(
        """
        UPDATE factors SET recovery = array_remove(recovery, %(digest)s), used = now()
         WHERE user_id = %(user_id)s AND counter IS NOT NULL AND %(digest)s = ANY (recovery)
        RETURNING id
        """,
        user_id=user_id,
        digest=digest,
    )


def replace_recovery_codes(user_id: int, recovery: list[bytes]) -> Row | None:
    return run(
        """
        UPDATE factors SET recovery = %(recovery)s
         WHERE user_id = %(user_id)s AND method = 'codes' AND counter IS NOT NULL
        RETURNING id
        """,
        user_id=user_id,
        recovery=recovery,
    )
