"""A user's own account, as the user sees and changes it."""

from linkmgr.db.statements import Row, row, run
from linkmgr.settings import settings
from linkmgr.web.errors import not_found


def overview(user_id: int) -> Row:
    """What the account page shows: the account, its plan, how many rows of each kind are there, and the
    clicks of this month."""
    found = row(
        """
        SELECT email, username, '/avatar/' || username || '.png' AS avatar, status, expires, registered,
               admin, plan, rate, limits, key_ciphertext, key_created,
               key_created + make_interval(days => %(lifetime)s) AS key_expires,
               (SELECT coalesce(json_object_agg(kind, total), '{}')
                  FROM (SELECT CASE kind WHEN 'visits ' || to_char(now(), 'YYYY-MM') THEN 'clicks' ELSE kind END, total
                          FROM usage
                         WHERE user_id = accounts.id) used (kind, total)) AS used
          FROM accounts
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        lifetime=settings().key_lifetime_days,
    )
    if found is None:
        raise not_found("user")
    return found


def password_hash(user_id: int) -> str:
    found = row("SELECT password_hash FROM users WHERE id = %(user_id)s", user_id=user_id)
    if found is None:
        raise not_found("user")
    return str(found["password_hash"])


def update(
    user_id: int, *, email: str | None = None, password_hash: str | None = None, session: bytes | None = None
) -> None:
    """A new password ends the user's browser sessions, but for the one that sent it, and unused login links."""
    run(
        """
        WITH ended AS (
            DELETE FROM sessions
             WHERE user_id = %(user_id)s AND %(password_hash)s::text IS NOT NULL
               AND digest IS DISTINCT FROM %(session)s::bytea),
        spent AS (
            DELETE FROM login_links
             WHERE user_id = %(user_id)s AND %(password_hash)s::text IS NOT NULL)
        UPDATE users
           SET email = coalesce(%(email)s, email),
               password_hash = coalesce(%(password_hash)s, password_hash)
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        email=email,
        password_hash=password_hash,
        session=session,
    )


def replace_key(user_id: int, *, key_digest: bytes, key_ciphertext: str) -> None:
    """The key that the user had no longer holds from here on."""
    run(
        """
        UPDATE users
           SET key_digest = %(key_digest)s, key_ciphertext = %(key_ciphertext)s, key_created = now()
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        key_digest=key_digest,
        key_ciphertext=key_ciphertext,
    )
