"""Rows of an exported account that an import makes."""

import orjson
import psycopg2

from linkmgr.db.statements import Row, row, rows, run
from linkmgr.repository.overlay import MAX_ANSWERS

# By the file of the export.
_TABLES = {
    "campaigns": "campaigns",
    "channels": "channels",
    "pixels": "pixels",
    "splash": "splash_pages",
    "overlays": "overlays",
    "qr": "qrs",
    "bio": "bios",
}
_SET_CREATED = {
    file: f"""
        UPDATE {table} SET created = least(%(created)s::timestamptz, now())
         WHERE user_id = %(user_id)s AND id = %(row_id)s
    """  # noqa: S608 - static SQL
    for file, table in _TABLES.items()
}
_OWN_IDS = {
    file: f"SELECT id FROM {table} WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])"  # noqa: S608
    for file, table in _TABLES.items()
}


def try_lock(user_id: int) -> bool:
    """Lock the rows of the user against other imports of an account until the transaction ends, so that none of them
    makes the same row. Return False if another import has the lock."""
    locked = run(
        "SELECT pg_try_advisory_xact_lock(hashtextextended('import ' || %(user_id)s::bigint, 0)) AS locked",
        user_id=user_id,
    )
    assert locked
    return bool(locked["locked"])


def set_created(user_id: int, kind: str, row_id: int, created: str) -> None:
    """Store the time at which a row was created. Domains have none."""
    if kind in _SET_CREATED:
        run(_SET_CREATED[kind], user_id=user_id, row_id=row_id, created=created)


def own_ids(user_id: int, kind: str, ids: list[int]) -> dict[str, int]:
    """Return those ids, by their text, that rows of the user have. `kind` is a file of the export."""
    records = rows(_OWN_IDS[kind], user_id=user_id, ids=ids) if kind in _OWN_IDS else []
    return {str(record["id"]): record["id"] for record in records}


def find_code(user_id: int, code: str) -> Row | None:
    """Return the id of the QR code, and whether it is the user's. Return None if the code is free."""
    return row(
        """
        SELECT id, user_id = %(user_id)s AS is_own FROM qrs WHERE code = %(code)s
         UNION ALL
        SELECT NULL, false FROM retired_codes WHERE code = %(code)s AND owner_id <> %(user_id)s
         LIMIT 1
        """,
        user_id=user_id,
        code=code,
    )


def find_bio(user_id: int, alias: str) -> int | None:
    """Return the id of the user's bio page with this alias, or None."""
    record = row("SELECT id FROM bios WHERE user_id = %(user_id)s AND alias = %(alias)s", user_id=user_id, alias=alias)
    return int(record["id"]) if record else None


def set_logo(user_id: int, qr_id: int, logo: bytes) -> None:
    run(
        "UPDATE qrs SET logo = %(logo)s WHERE user_id = %(user_id)s AND id = %(qr_id)s",
        user_id=user_id,
        qr_id=qr_id,
        logo=psycopg2.Binary(logo),
    )


def add_answers(user_id: int, answers: list[Row]) -> None:
    """Store answers with `overlay`, `answer` and `date`, at most MAX_ANSWERS of an overlay."""
    run(
        """
        INSERT INTO overlay_answers (user_id, overlay_id, answer, created)
        SELECT %(user_id)s, overlay, answer, least(date, now())
          FROM (SELECT *, row_number() OVER (PARTITION BY overlay ORDER BY n) AS place
                  FROM ROWS FROM (json_to_recordset(%(answers)s) AS (overlay bigint, answer json, date timestamptz))
                       WITH ORDINALITY AS sent (overlay, answer, date, n)) numbered
         WHERE place + (SELECT count(*) FROM overlay_answers WHERE overlay_id = overlay) <= %(max_answers)s
         ORDER BY n
        """,
        user_id=user_id,
        answers=orjson.dumps(answers).decode(),
        max_answers=MAX_ANSWERS,
    )
