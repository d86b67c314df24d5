from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, rows, run, run_one
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import existing


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        """
        SELECT *, version::text FROM member_records
         WHERE user_id = %(user_id)s AND has_text(name || ' ' || email, %(q)s)
        """,
        counted="members",
        user_id=user_id,
        **paging,
    )


def batch(user_id: int, after: int) -> list[Row]:
    return rows(
        """
        SELECT *, version::text FROM member_records
         WHERE user_id = %(user_id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )


def read(user_id: int, row_id: int) -> Row:
    stored = row(
        """
        SELECT *, version::text FROM member_records WHERE user_id = %(user_id)s AND id = %(row_id)s
        """,
        user_id=user_id,
        row_id=row_id,
    )
    return existing(stored, "member")


def add(user_id: int, members: Row) -> Row:
    """Store an invitation with the digest of its token. Return its id, and the names of the
    `inviter` and the `account`."""
    return run_one(
        """
        WITH noted AS (
            UPDATE users SET has_events = true, has_activity = true WHERE id = %(user_id)s)
        INSERT INTO members (user_id, email, role, digest)
        VALUES (require_room(%(user_id)s, 'members', 500, 'members_full'), %(email)s, %(role)s,
                %(digest)s)
        RETURNING id, check_plan(%(user_id)s, 'members', 'team', 1),
                  (SELECT username FROM users
                    WHERE id = person_of(nullif(current_setting('linkmgr.actor', true), '')::jsonb,
                                         %(user_id)s)) AS inviter,
                  (SELECT username FROM users WHERE id = %(user_id)s) AS account
        """,
        **members,
        user_id=user_id,
    )


def update(user_id: int, row_id: int, members: Row) -> Row:
    run(
        """
        UPDATE members SET role = %(role)s, version = random_version(), updated = now()
         WHERE user_id = %(user_id)s AND id = %(row_id)s AND role <> %(role)s
        """,
        user_id=user_id,
        row_id=row_id,
        role=members["role"],
    )
    return read(user_id, row_id)


def delete(user_id: int, row_id: int) -> None:
    deleted = run(
        "DELETE FROM members WHERE user_id = %(user_id)s AND id = %(row_id)s RETURNING id",
        user_id=user_id,
        row_id=row_id,
    )
    existing(deleted, "member")


# --- the person who is invited


def invitation(digest: bytes) -> Row | None:
    """Return the account, with its id, and the role of an invitation that can be accepted."""
    return row(
        """
        SELECT m.user_id, username AS account, m.email, role
          FROM members m
          JOIN users u ON u.id = m.user_id AND suspended = 'no'
         WHERE digest = %(digest)s AND m.created > now() - interval '7 days'
        """,
        digest=digest,
    )


def accept(person_id: int, digest: bytes) -> int | None:
    """Make a person a member. Return the id of the account, or None if the invitation cannot be
    accepted. Exactly one of several concurrent attempts succeeds."""
    accepted = run(
        """
        UPDATE members m
           SET member_id = p.id, digest = NULL, joined = now(), version = random_version(), updated = now()
          FROM (SELECT id FROM users WHERE id = %(person_id)s FOR KEY SHARE) p
         WHERE digest = %(digest)s AND m.created > now() - interval '7 days'
           AND (SELECT suspended FROM users WHERE id = m.user_id) = 'no'
        RETURNING user_id
        """,
        person_id=person_id,
        digest=digest,
    )
    return None if accepted is None else int(accepted["user_id"])


def leave(person_id: int, account_id: int) -> bool:
    left = run(
        "DELETE FROM members WHERE user_id = %(account_id)s AND member_id = %(person_id)s RETURNING id",
        account_id=account_id,
        person_id=person_id,
    )
    return left is not None
