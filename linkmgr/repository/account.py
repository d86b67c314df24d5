from typing import Any

from linkmgr.core.database.statements import Row, row, run
from linkmgr.core.errors import existing, required
from linkmgr.core.settings import settings
from linkmgr.core.web.caller import avatar_of

MAX_DOMAINS = 200  # in the box of Home


def with_avatar(user: Row) -> Row:
    first = {name: user.pop(name) for name in ("id", "email", "username")}
    return first | {"avatar": avatar_of(first["username"])} | user


def overview(user_id: int) -> Row:
    account = row(
        """
        SELECT email, username, '/avatar/' || username || '.png' AS avatar, status, expires,
               registered,
               admin, suspended, plan, rate, limits, key_ciphertext, key_created, key_off, timezone,
               ARRAY(SELECT domain FROM domains WHERE user_id = accounts.id
                      ORDER BY domain = accounts.domain DESC NULLS LAST, id
                      LIMIT %(most)s) AS domains,
               ARRAY(SELECT DISTINCT method FROM factors
                      WHERE factors.user_id = accounts.id AND counter IS NOT NULL) AS factors,
               key_created + make_interval(days => %(lifetime)s) AS key_expires,
               (SELECT coalesce(json_object_agg(name, total), '{}')
                  FROM (SELECT counted AS name, total FROM usage WHERE user_id = accounts.id
                         UNION ALL
                        SELECT 'clicks', total FROM visit_months
                         WHERE user_id = accounts.id AND month = this_month()
                           AND NOT (bot OR imported)) used) AS used
          FROM accounts
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        lifetime=settings().key_lifetime_days,
        most=MAX_DOMAINS,
    )
    return existing(account, "user")


def password_hash(user_id: int) -> str:
    user = row("SELECT password_hash FROM users WHERE id = %(user_id)s", user_id=user_id)
    return str(existing(user, "user")["password_hash"])


def update(user_id: int, **changes: Any) -> Row:
    """Change `email`, `password_hash`, `timezone` and `domain`, a host or "" for our own, and
    return the account, with its `email_before`. A new password ends all browser sessions except
    `session` and deletes the sign-in links, and a new address those that were mailed before.

    `by_link` sets a password without the current one: a session can do so if it is by a link of the
    last hour or if the account has no password, and only the first of several concurrent requests
    does.
    """
    account = run(
        """
        WITH owner AS MATERIALIZED (
            SELECT id, email, password_hash = '' AS lacks_password FROM users
             WHERE id = %(user_id)s
               FOR NO KEY UPDATE),
        confirmed AS (
            UPDATE sessions s
               SET by_link = false
              FROM owner
             WHERE digest = %(session)s AND user_id = owner.id
               AND %(password_hash)s::text IS NOT NULL
               AND (NOT %(by_link)s OR lacks_password
                    OR (s.by_link AND s.created > now() - interval '1 hour'))
            RETURNING user_id),
        allowed AS (
            SELECT id FROM owner WHERE NOT %(by_link)s OR id IN (SELECT user_id FROM confirmed)),
        sessions_ended AS (
            DELETE FROM sessions
             WHERE user_id IN (SELECT id FROM allowed)
               AND (%(password_hash)s::text IS NOT NULL AND digest IS DISTINCT FROM %(session)s::bytea
                    OR %(email)s::text IS NOT NULL AND is_link AND NOT by_admin)),
        updated AS (
            UPDATE users
               SET email = coalesce(%(email)s, email),
                   password_hash = coalesce(%(password_hash)s, password_hash),
                   timezone = coalesce(%(timezone)s, timezone),
                   domain = CASE WHEN %(domain)s::text IS NULL THEN domain
                                 ELSE (SELECT d.domain
                                         FROM require_domain(%(user_id)s, %(domain)s) AS sent (id)
                                         JOIN domains d ON d.id = sent.id) END
             WHERE id IN (SELECT id FROM allowed)
            RETURNING id, email, domain, updated, version::text)
        -- The view has the row before the update.
        SELECT a.id, updated.email, username, status, expires, registered, updated.updated,
               updated.domain, updated.version, owner.email AS email_before
          FROM updated
          JOIN owner ON owner.id = updated.id
          JOIN accounts a ON a.id = updated.id
        """,
        user_id=user_id,
        **dict.fromkeys(("email", "password_hash", "timezone", "domain", "session"))
        | {"by_link": False}
        | changes,
    )
    # Otherwise the user was deleted during the request.
    changed = required(account, "password_set_meanwhile" if changes.get("by_link") else "key_unknown")
    return with_avatar(changed)


def is_shared(user_id: int) -> bool:
    """Return True if others may have keys of the account, since its first invitation."""
    user = row("SELECT has_activity FROM users WHERE id = %(user_id)s", user_id=user_id)
    return bool(existing(user, "user")["has_activity"])


def replace_key(user_id: int, **key: Any) -> None:
    run(
        """
        UPDATE users
           SET key_digest = %(key_digest)s, key_ciphertext = %(key_ciphertext)s,
               key_created = now(), key_off = false
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        **key,
    )
