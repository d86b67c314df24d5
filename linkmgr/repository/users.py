from collections.abc import Iterator
from typing import Any, Unpack

from linkmgr.core import keys
from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import MAX_BIGINT, Row, row, rows, run
from linkmgr.core.errors import AppError, existing, required
from linkmgr.repository import public
from linkmgr.repository.account import with_avatar

BATCH_SIZE = 500  # users in memory at a time while all are listed


def _to_record(user: Row) -> Row:
    user["apikey"] = keys.reveal(user["id"], user.pop("key_ciphertext"))
    return with_avatar(user)


def search(*, status: str | None = None, email: str | None = None) -> Iterator[list[Row]]:
    before = MAX_BIGINT
    while batch := rows(
        """
        SELECT id, email, username, status, expires, registered, updated, planid, key_ciphertext,
               admin, suspended
          FROM accounts
         WHERE id < %(before)s
           AND (%(status)s::text IS NULL OR status = %(status)s)
           AND (%(email)s::text IS NULL OR position(lower(%(email)s) IN lower(email)) > 0)
         ORDER BY id DESC
         LIMIT %(limit)s
        """,
        limit=BATCH_SIZE,
        before=before,
        status=status,
        email=email,
    ):
        before = batch[-1]["id"]
        yield [_to_record(user) for user in batch]


def index(*, q: str | None, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, username, email, status, plan, registered, suspended,
               coalesce((SELECT total FROM usage WHERE user_id = accounts.id AND counted = 'links'),
                        0) AS links
          FROM accounts
         WHERE id < %(after)s
           AND (%(q)s::text IS NULL
                OR position(lower(%(q)s) IN lower(username || chr(10) || email)) > 0)
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM users
         WHERE %(q)s::text IS NULL
            OR position(lower(%(q)s) IN lower(username || chr(10) || email)) > 0
        """,
        q=q,
        **paging,
    )


def read(user_id: int) -> Row:
    user = row(
        """
        SELECT id, email, username, status, expires, registered, updated, planid, key_ciphertext,
               admin, suspended, version
          FROM accounts
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
    )
    return _to_record(existing(user, "user"))


def next_id() -> int:
    """Reserve the id of a new user. The API key is encrypted with it before the user is stored."""
    sequence = row("SELECT nextval(pg_get_serial_sequence('users', 'id')) AS id")
    assert sequence is not None
    return int(sequence["id"])


def add(user_id: int, **members: Any) -> Row:
    """Store a user and return its `id`, `email` and `username`. Raise plan_not_premium for an
    unknown or free plan. `admin`, `planid` and `expiration` may be missing."""
    added = run(
        """
        WITH added AS (
            INSERT INTO users (id, username, email, password_hash, admin, plan_id, expires,
                               key_digest, key_ciphertext)
            SELECT %(user_id)s, %(username)s, %(email)s, %(password_hash)s, %(admin)s, %(planid)s,
                   %(expiration)s::timestamptz, %(key_digest)s, %(key_ciphertext)s
             WHERE %(planid)s::bigint IS NULL
                OR EXISTS (SELECT FROM plans WHERE id = %(planid)s AND NOT free)
            RETURNING id, email, username),
        events_added AS (
            INSERT INTO outbox (user_id, type, data)
            SELECT user_id, 'user.created', to_jsonb(added) FROM added, auditors WHERE user_id <> 0)
        SELECT * FROM added
        """,
        **{"admin": False, "planid": None, "expiration": None} | members,
        user_id=user_id,
    )
    return required(added, "plan_not_premium")


def update(user_id: int, *, by: int | None, **changes: Any) -> None:
    """Change `email`, `admin` and `suspended`, unless they are None. `by` is the calling
    administrator, or None for a command. `suspended` is 'no', 'access' for keys and sessions, or
    'all' for the pages for visitors too.

    Lock all administrators, as delete() does.
    """
    if changes.get("admin") is False and user_id == by:
        raise AppError("demote_self")
    updated = run(
        """
        WITH administrators AS MATERIALIZED (
            SELECT id FROM users WHERE admin ORDER BY id FOR UPDATE),
        mailed AS (  -- to the address of before
            DELETE FROM sessions
             WHERE user_id = %(user_id)s AND %(email)s::text IS NOT NULL AND is_link AND NOT by_admin)
        UPDATE users
           SET email = coalesce(%(email)s, email), admin = coalesce(%(admin)s, admin),
               suspended = coalesce(%(suspended)s, suspended)
         WHERE id = %(user_id)s
           AND (%(admin)s IS NOT FALSE OR NOT admin
                OR EXISTS (SELECT FROM administrators WHERE id <> %(user_id)s))
        RETURNING id
        """,
        user_id=user_id,
        **dict.fromkeys(("email", "admin", "suspended")) | changes,
    )
    if updated is None:
        read(user_id)  # raises not_found
        raise AppError("last_administrator")
    if suspended := changes.get("suspended"):
        (public.disabled_users.add if suspended == "all" else public.disabled_users.discard)(user_id)


def delete(user_id: int, *, by: int | None) -> None:
    """`by` is the calling administrator, or None for a command. Lock all administrators, ordered by
    id, so that two administrators who delete each other do not both succeed."""
    if user_id == by:
        raise AppError("delete_self")
    deleted = run(
        """
        WITH administrators AS MATERIALIZED (
            SELECT id FROM users WHERE admin ORDER BY id FOR UPDATE),
        deleted AS (
            DELETE FROM users
             WHERE id = %(user_id)s
               AND (NOT admin OR EXISTS (SELECT FROM administrators WHERE id <> %(user_id)s))
            RETURNING id, email, username),
        events_added AS (
            INSERT INTO outbox (user_id, type, data)
            SELECT user_id, 'user.deleted', to_jsonb(deleted)
              FROM deleted, auditors
             WHERE user_id NOT IN (0, id))
        SELECT id FROM deleted
        """,
        user_id=user_id,
    )
    if deleted is None:
        read(user_id)  # raises not_found
        raise AppError("delete_last_administrator")


def find_id(username: str) -> int:
    user = row("SELECT id FROM users WHERE lower(username) = lower(%(username)s)", username=username)
    return int(existing(user, "user")["id"])


def any_id() -> int | None:
    user = row("SELECT id FROM users LIMIT 1")
    return int(user["id"]) if user else None


def has_administrator() -> bool:
    return row("SELECT FROM users WHERE admin LIMIT 1") is not None


def summaries() -> Iterator[Row]:
    after: int | None = MAX_BIGINT
    while after:
        page = index(q=None, limit=BATCH_SIZE, number=1, after=after)
        yield from page.rows
        after = page.next


def owner(user_id: int) -> Row:
    return existing(row("SELECT admin, email FROM users WHERE id = %(user_id)s", user_id=user_id), "user")


def note_shown_key(user_id: int | None) -> None:
    """Note for administrators that the default API key of a user was shown. None means all
    users."""
    run(
        """
        INSERT INTO outbox (user_id, type, data)
        SELECT auditors.user_id, 'audit.secret',
               jsonb_build_object('action', 'shown', 'user_id', %(user_id)s::bigint)
          FROM auditors
         WHERE %(user_id)s::bigint IS NULL OR EXISTS (SELECT FROM users WHERE id = %(user_id)s)
        """,
        user_id=user_id,
    )
