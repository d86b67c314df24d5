"""The account of the signed-in user."""

from typing import Any

from linkmgr.db.statements import Row, row, run
from linkmgr.errors import existing, required
from linkmgr.settings import settings


def overview(user_id: int) -> Row:
    """Return the account, its plan and, as `used`, the number of rows of each kind and the clicks of this month."""
    account = row(
        """
        SELECT email, username, '/avatar/' || username || '.png' AS avatar, status, expires, registered,
               admin, suspended, plan, rate, limits, key_ciphertext, key_created, key_off, timezone,
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
    return existing(account, "user")


def password_hash(user_id: int) -> str:
    user = row("SELECT password_hash FROM users WHERE id = %(user_id)s", user_id=user_id)
    return str(existing(user, "user")["password_hash"])


def update(user_id: int, **changes: Any) -> Row:
    """Change `email`, `password_hash` and `timezone`, and return the account. A new password ends all browser sessions
    except `session` and deletes the sign-in links."""
    account = run(
        """
        WITH sessions_ended AS (
            DELETE FROM sessions
             WHERE user_id = %(user_id)s AND %(password_hash)s::text IS NOT NULL
               AND digest IS DISTINCT FROM %(session)s::bytea),
        confirmed AS (
            UPDATE sessions SET by_link = false WHERE digest = %(session)s AND %(password_hash)s::text IS NOT NULL),
        updated AS (
            UPDATE users
               SET email = coalesce(%(email)s, email),
                   password_hash = coalesce(%(password_hash)s, password_hash),
                   timezone = coalesce(%(timezone)s, timezone)
             WHERE id = %(user_id)s
            RETURNING id, email, version::text)
        -- The view has the row before the update.
        SELECT a.id, updated.email, username, %(base)s::text || '/avatar/' || username || '.png' AS avatar, status,
               expires, registered, updated.version
          FROM updated
          JOIN accounts a ON a.id = updated.id
        """,
        user_id=user_id,
        base=settings().base_url,
        **dict.fromkeys(("email", "password_hash", "timezone", "session")) | changes,
    )
    return required(account, "key_unknown")  # deleted during the request


def replace_key(user_id: int, **key: Any) -> None:
    """Store a key of keys.new_key, and turn it on. The previous key is invalid from then on."""
    run(
        """
        UPDATE users
           SET key_digest = %(key_digest)s, key_ciphertext = %(key_ciphertext)s, key_created = now(),
               key_off = false
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        **key,
    )
