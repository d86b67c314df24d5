"""The bin of QR codes: deleted ones, which can be restored for DAYS. They remain in the table
`kept_qrs`, and have a time in `binned`."""

from typing import Unpack

from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import rows, run, run_one
from linkmgr.core.errors import existing, not_found
from linkmgr.repository import link_bin
from linkmgr.repository.qr import link

DAYS = link_bin.DAYS
MAX_KEPT = 1000  # of a user


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    """List the QR codes in the bin, the last deleted first."""
    codes = page(
        """
        SELECT id, code, coalesce((SELECT clicks FROM totals WHERE tracked_id = q.id), 0) AS scans,
               name, created AS date, updated, type, data, binned
          FROM kept_qrs q
         WHERE user_id = %(user_id)s AND binned IS NOT NULL
         ORDER BY binned DESC, id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        counted="binned_qrs",
        cursor=None,
        user_id=user_id,
        **paging,
    )
    codes.rows[:] = [code | {"link": link(code["code"])} for code in codes.rows]
    return codes


def newest(user_id: int, limit: int) -> list[int]:
    codes = rows(
        """
        SELECT id FROM kept_qrs
         WHERE user_id = %(user_id)s AND binned IS NOT NULL
         ORDER BY binned DESC, id DESC
         LIMIT %(limit)s
        """,
        user_id=user_id,
        limit=limit,
    )
    return [code["id"] for code in codes]


def put(user_id: int, qr_id: int) -> None:
    binned = run(
        "UPDATE qrs SET binned = now() WHERE user_id = %(user_id)s AND id = %(qr_id)s RETURNING id",
        user_id=user_id,
        qr_id=qr_id,
    )
    existing(binned, "QR code")
    _delete_oldest(user_id)


def _delete_oldest(user_id: int) -> None:
    """Keep MAX_KEPT, also of those that a restricted key does not see."""
    run(
        """
        DELETE FROM public.kept_qrs
         WHERE user_id = %(user_id)s AND binned IS NOT NULL
           AND id = ANY (ARRAY(SELECT id FROM public.kept_qrs
                                WHERE user_id = %(user_id)s AND binned IS NOT NULL
                                ORDER BY binned DESC, id DESC
                               OFFSET %(kept)s))
        RETURNING id
        """,
        user_id=user_id,
        kept=MAX_KEPT,
    )


def restore(user_id: int, qr_id: int) -> None:
    if not restore_all(user_id, [qr_id]):
        raise not_found("QR code")


def restore_all(user_id: int, ids: list[int]) -> int:
    """Bring QR codes back as they were, all or none, and return their number."""
    return _number(
        """
        WITH restored AS (
            UPDATE kept_qrs SET binned = NULL
             WHERE user_id = %(user_id)s
               AND id = ANY (ARRAY(SELECT id FROM kept_qrs
                                    WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
                                      AND binned IS NOT NULL
                                    ORDER BY id FOR UPDATE))
            RETURNING *)
        SELECT count(*) AS number FROM restored WHERE require_unblocked(user_id, to_jsonb(restored))
        """,
        user_id,
        ids,
    )


def delete(user_id: int, ids: list[int]) -> int:
    return _number(
        """
        WITH deleted AS (
            DELETE FROM kept_qrs
             WHERE user_id = %(user_id)s
               AND id = ANY (ARRAY(SELECT id FROM kept_qrs
                                    WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
                                      AND binned IS NOT NULL
                                    ORDER BY id FOR UPDATE))
            RETURNING id)
        SELECT count(*) AS number FROM deleted
        """,
        user_id,
        ids,
    )


def _number(statement: str, user_id: int, ids: list[int]) -> int:
    return int(run_one(statement, user_id=user_id, ids=ids)["number"])
