"""Users, as administrators see and manage them."""

from linkmgr import keys
from linkmgr.database import Row, row, rows, run
from linkmgr.errors import Refusal, missing
from linkmgr.settings import settings


def _with_key(user: Row) -> Row:
    user["apikey"] = keys.reveal(user["id"], user["apikey"])
    return user


def search(*, status: str | None = None, email: str | None = None) -> list[Row]:
    """Newest first; `email` is any part of the address, without regard to case."""
    found = rows(
        """
        SELECT id, email, username, %(base_url)s || '/avatar/' || username || '.png' AS avatar,
               status, expires, registered, planid, key_ciphertext AS apikey
          FROM accounts
         WHERE (%(status)s::text IS NULL OR status = %(status)s)
           AND (%(email)s::text IS NULL OR position(lower(%(email)s) IN lower(email)) > 0)
         ORDER BY id DESC
        """,
        status=status,
        email=email,
        base_url=settings().base_url,
    )
    return [_with_key(user) for user in found]


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
        raise missing("user")
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
        raise Refusal("plan_not_premium")
    return added


def delete(user_id: int, *, by: int) -> None:
    """Everything that the user owns goes too.  The administrators are locked, in one order, so that two who
    delete each other at once do not both succeed."""
    if user_id == by:
        raise Refusal("delete_self")
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
        raise Refusal("delete_last_administrator")


def id_of(username: str) -> int:
    found = row("SELECT id FROM users WHERE lower(username) = lower(%(username)s)", username=username)
    if found is None:
        raise missing("user")
    return int(found["id"])
