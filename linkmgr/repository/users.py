"""Users, as administrators see and manage them."""

from collections.abc import Iterator

from linkmgr.db.statements import Row, row, rows, run
from linkmgr.settings import settings
from linkmgr.web import keys
from linkmgr.web.errors import AppError, not_found

AT_ONCE = 500  # users that are in memory while all of them are listed


def _with_key(user: Row) -> Row:
    user["apikey"] = keys.reveal(user["id"], user["apikey"])
    return user


def search(*, status: str | None = None, email: str | None = None) -> Iterator[list[Row]]:
    """Newest first, some at a time; `email` is any part of the address, without regard to case."""
    before = 2**63 - 1  # more than any id but one that no row has
    while found := _next(before, status, email):
        yield [_with_key(user) for user in found]
        before = found[-1]["id"]


def _next(before: int, status: str | None, email: str | None) -> list[Row]:
    return rows(
        """
        SELECT id, email, username, %(base_url)s || '/avatar/' || username || '.png' AS avatar,
               status, expires, registered, planid, key_ciphertext AS apikey
          FROM accounts
         WHERE id < %(before)s
           AND (%(status)s::text IS NULL OR status = %(status)s)
           AND (%(email)s::text IS NULL OR position(lower(%(email)s) IN lower(email)) > 0)
         ORDER BY id DESC
         LIMIT %(limit)s
        """,
        before=before,
        limit=AT_ONCE,
        status=status,
        email=email,
        base_url=settings().base_url,
    )


def read(user_id: int) -> Row:
    found = row(
        """
        SELECT id, email, username, %(base_url)s || '/avatar/' || username || '.png' AS avatar,
               status, expires, registered, planid, key_ciphertext AS apikey
          FROM accounts
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        base_url=settings().base_url,
    )
    if found is None:
        raise not_found("user")
    return _with_key(found)


def next_id() -> int:
    """Taken before the user is stored, since the API key is bound to it."""
    taken = row("SELECT nextval(pg_get_serial_sequence('users', 'id')) AS id")
    assert taken is not None
    return int(taken["id"])


def add(
    user_id: int,
    *,
    username: str,
    email: str,
    password_hash: str,
    key_digest: bytes,
    key_ciphertext: str,
    admin: bool = False,
    planid: int | None = None,
    expiration: str | None = None,
) -> Row:
    """Refuses a plan that is not a premium one."""
    added = run(
        """
        INSERT INTO users (id, username, email, password_hash, admin, plan_id, expires, key_digest, key_ciphertext)
        SELECT %(user_id)s, %(username)s, %(email)s, %(password_hash)s, %(admin)s, %(planid)s,
               %(expiration)s::timestamptz, %(key_digest)s, %(key_ciphertext)s
         WHERE %(planid)s::bigint IS NULL OR EXISTS (SELECT FROM plans WHERE id = %(planid)s AND NOT free)
        RETURNING id, email, username
        """,
        user_id=user_id,
        username=username,
        email=email,
        password_hash=password_hash,
        admin=admin,
        planid=planid,
        expiration=expiration,
        key_digest=key_digest,
        key_ciphertext=key_ciphertext,
    )
    if added is None:
        raise AppError("plan_not_premium")
    return added


def delete(user_id: int, *, by: int) -> None:
    """Everything that the user owns goes too.  The administrators are locked, in one order, so that two who
    delete each other at once do not both succeed."""
    if user_id == by:
        raise AppError("delete_self")
    deleted = run(
        """
        WITH administrators AS MATERIALIZED (
            SELECT id FROM users WHERE admin ORDER BY id FOR UPDATE)
        DELETE FROM users
         WHERE id = %(user_id)s
           AND (NOT admin OR EXISTS (SELECT FROM administrators WHERE id <> %(user_id)s))
        RETURNING id
        """,
        user_id=user_id,
    )
    if deleted is None:
        read(user_id)
        raise AppError("delete_last_administrator")


def id_of(username: str) -> int:
    found = row("SELECT id FROM users WHERE lower(username) = lower(%(username)s)", username=username)
    if found is None:
        raise not_found("user")
    return int(found["id"])
