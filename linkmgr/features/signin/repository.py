from linkmgr.core.database.statements import Row, row, run


def use(issuer: str, subject: str, name: str) -> int | None:
    """Note a sign-in and return the user id, or None if the identity is not connected."""
    used = run(
        """
        UPDATE identities SET used = now(), name = %(name)s
         WHERE issuer = %(issuer)s AND subject = %(subject)s
        RETURNING user_id
        """,
        issuer=issuer,
        subject=subject,
        name=name,
    )
    return int(used["user_id"]) if used else None


def connect(
    issuer: str, subject: str, name: str, *, user_id: int | None = None, email: str | None = None
) -> int | None:
    """Connect an identity to the user with this id or e-mail address. Return the user id, or None
    if there is no such user, or if the identity or the user is connected already."""
    connected = run(
        """
        WITH connected AS (
            INSERT INTO identities (issuer, subject, user_id, name)
            SELECT %(issuer)s, %(subject)s, id, %(name)s
              FROM users
             WHERE id = %(user_id)s OR lower(email) = lower(%(email)s::text)
            ON CONFLICT DO NOTHING
            RETURNING user_id)
        SELECT user_id, note_identity(user_id) FROM connected
        """,
        issuer=issuer,
        subject=subject,
        name=name,
        user_id=user_id,
        email=email,
    )
    return int(connected["user_id"]) if connected else None


def disconnect(user_id: int, issuer: str) -> bool:
    """Disconnect the identity of a user who has a password or a passkey. Return False if the user
    has neither."""
    disconnected = run(
        """
        WITH owner AS (
            SELECT id FROM users u
             WHERE id = %(user_id)s
               AND (password_hash <> ''
                    OR EXISTS (SELECT FROM factors WHERE user_id = u.id AND method = 'passkey'))),
        disconnected AS (
            DELETE FROM identities
             WHERE user_id IN (SELECT id FROM owner) AND issuer = %(issuer)s
            RETURNING user_id)
        SELECT id, (SELECT note_identity(user_id) FROM disconnected) FROM owner
        """,
        user_id=user_id,
        issuer=issuer,
    )
    return disconnected is not None


def identity(user_id: int, issuer: str) -> Row | None:
    return row(
        "SELECT name, used FROM identities WHERE user_id = %(user_id)s AND issuer = %(issuer)s",
        user_id=user_id,
        issuer=issuer,
    )


def grant_plan(user_id: int, plan_id: int | None, *, mapped: list[int]) -> None:
    """Give a user a plan without end, or, if it is None, the free plan in place of one of those
    that groups give."""
    run(
        """
        UPDATE users SET plan_id = %(plan_id)s, expires = NULL
         WHERE id = %(user_id)s
           AND CASE WHEN %(plan_id)s::bigint IS NULL THEN plan_id = ANY (%(mapped)s)
                    ELSE (plan_id, expires) IS DISTINCT FROM (%(plan_id)s, NULL::timestamptz) END
        """,
        user_id=user_id,
        plan_id=plan_id,
        mapped=mapped,
    )
