"""Signing in: single-use links, and the sessions of browsers."""

from linkmgr.db.statements import Row, row, run
from linkmgr.web.errors import not_found


def add_link(user_id: int, *, digest: bytes) -> None:
    """Links that can no longer be used go by the way."""
    added = run(
        """
        WITH spent AS (DELETE FROM login_links WHERE created < now() - interval '1 hour')
        INSERT INTO login_links (digest, user_id)
        SELECT %(digest)s, id FROM users WHERE id = %(user_id)s
        RETURNING user_id
        """,
        user_id=user_id,
        digest=digest,
    )
    if added is None:
        raise not_found("user")


def usable(digest: bytes) -> bool:
    """Whether a link would still sign in; burns nothing."""
    return (
        row(
            """
            SELECT 1 AS usable
              FROM login_links
             WHERE digest = %(digest)s AND used IS NULL AND created > now() - interval '1 hour'
            """,
            digest=digest,
        )
        is not None
    )


def consume_link(digest: bytes, *, session: bytes) -> int | None:
    """Consume a login link and create a session.  Return the user id, or None if the link cannot be used.  Exactly
    one of several concurrent attempts succeeds."""
    begun = run(
        """
        WITH burnt AS (
            UPDATE login_links
               SET used = now()
             WHERE digest = %(digest)s AND used IS NULL AND created > now() - interval '1 hour'
            RETURNING user_id)
        INSERT INTO sessions (digest, user_id, by_link)
        SELECT %(session)s, user_id, true FROM burnt
        RETURNING user_id
        """,
        digest=digest,
        session=session,
    )
    return None if begun is None else int(begun["user_id"])


def begin(user_id: int, *, session: bytes) -> None:
    run(
        """
        WITH old AS (DELETE FROM sessions WHERE created < now() - interval '30 days')
        INSERT INTO sessions (digest, user_id, by_link) VALUES (%(session)s, %(user_id)s, false)
        """,
        user_id=user_id,
        session=session,
    )


def signed_in(session: bytes) -> Row | None:
    """The user of a session of the last 30 days, and whether a login link began it within the hour."""
    return row(
        """
        SELECT user_id, by_link AND created > now() - interval '1 hour' AS by_link
          FROM sessions
         WHERE digest = %(session)s AND created > now() - interval '30 days'
        """,
        session=session,
    )


def end(session: bytes) -> None:
    run("DELETE FROM sessions WHERE digest = %(session)s", session=session)


def password_of(email: str) -> Row:
    """Return the id and the password hash of the account, both None if there is none, and the bucket of its wrong
    passwords, which does not show the e-mail address."""
    found = row(
        """
        SELECT id, password_hash, 'account:' || encode(sha256(convert_to(lower(%(email)s), 'UTF8')), 'hex') AS bucket
          FROM (SELECT 1) always
          LEFT JOIN users ON lower(email) = lower(%(email)s)
        """,
        email=email,
    )
    assert found is not None
    return found
