"""Answers that are kept for 24 hours under the Idempotency-Key of their request."""

from linkmgr.core.database.statements import Row, row, run, run_one, run_unsynced

# Limits of each user. Beyond them, the oldest responses are dropped.
MAX_NUMBER, MAX_BYTES = 20_000, 32 << 20


def find(user_id: int, key: str) -> str | None:
    stored = row("SELECT stored_response(%(user_id)s, %(key)s) AS response", user_id=user_id, key=key)
    assert stored
    response: str | None = stored["response"]
    return response


def claim(user_id: int, key: str) -> Row:
    """Return `claimed`, false if another transaction has the key, and as `find` the `response`.
    Until the transaction ends, no other one gets the key."""
    return run_one(
        "SELECT claimed, response FROM claim_idempotency_key(%(user_id)s, %(key)s)",
        user_id=user_id,
        key=key,
    )


def store(user_id: int, key: str, response: str) -> None:
    run(
        """
        INSERT INTO idempotency_keys (user_id, key, response)
        VALUES (%(user_id)s, %(key)s, %(response)s)
        ON CONFLICT (user_id, key)
        DO UPDATE SET response = excluded.response, created = excluded.created
        """,
        user_id=user_id,
        key=key,
        response=response,
    )


def trim(user_id: int) -> None:
    """Delete the newest response beyond a limit, and all older ones. A join with those to delete
    would, with a plan of when the table was small, read all of them for each."""
    run_unsynced(
        """
        DELETE FROM idempotency_keys
         WHERE user_id = %(user_id)s
           AND (created, key) <= (
               SELECT created, key
                 FROM (SELECT created, key, row_number() OVER newest AS position,
                              sum(pg_column_size(response)) OVER newest AS bytes
                         FROM idempotency_keys
                        WHERE user_id = %(user_id)s
                       WINDOW newest AS (ORDER BY created DESC, key DESC)) responses
                WHERE position > %(max_number)s OR bytes > %(max_bytes)s
                ORDER BY created DESC, key DESC
                LIMIT 1)
        """,
        user_id=user_id,
        max_number=MAX_NUMBER,
        max_bytes=MAX_BYTES,
    )
