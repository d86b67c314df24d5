"""Signing in: single-use links, and the sessions of browsers."""

from linkmgr.database import Row, row, run
from linkmgr.errors import missing


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
        raise missing("user")


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


def burn(digest: bytes, *, session: bytes) -> bool:
    """Uses a link up and begins a session; of any number of attempts one succeeds."""
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
    return begun is not None


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


def password_of(email: str) -> Row | None:
    return row("SELECT id, password_hash FROM users WHERE lower(email) = lower(%(email)s)", email=email)
