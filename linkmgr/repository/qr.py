"""QR codes.  Their scans are counted in `totals`."""

from typing import Any

import orjson

from linkmgr.db.statements import Page, Row, page, replica_row, row, run
from linkmgr.repository import visits
from linkmgr.settings import settings
from linkmgr.web.errors import AppError, not_found


def index(user_id: int, *, limit: int, number: int) -> Page:
    return page(
        """
        SELECT id, %(base)s::text || '/qr/' || code AS link,
               coalesce((SELECT clicks FROM totals WHERE target_id = qrs.id), 0) AS scans,
               name, created AS date
          FROM qrs
         WHERE user_id = %(user_id)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'qrs'",
        limit=limit,
        number=number,
        user_id=user_id,
        base=settings().base_url,
    )


def read(user_id: int, qr_id: int) -> Row:
    """The QR code, with its statistics as `statistics`."""
    found = replica_row(
        """
        SELECT id, %(base)s::text || '/qr/' || code AS link,
               coalesce((SELECT clicks FROM totals WHERE target_id = qrs.id), 0) AS scans,
               name, created AS date, s.data AS statistics
          FROM qrs
          LEFT JOIN statistics s ON target_id = id
         WHERE user_id = %(user_id)s AND id = %(qr_id)s
        """,
        user_id=user_id,
        qr_id=qr_id,
        base=settings().base_url,
    )
    if found is None:
        raise not_found("QR code")
    return found | {"statistics": found["statistics"] or visits.NONE}


def type_of(user_id: int, qr_id: int) -> str:
    """Which never changes, so that it may be asked for before an update."""
    found = row("SELECT type FROM qrs WHERE user_id = %(user_id)s AND id = %(qr_id)s", user_id=user_id, qr_id=qr_id)
    if found is None:
        raise not_found("QR code")
    return str(found["type"])


def add(
    user_id: int,
    *,
    code: str,
    type: str,  # noqa: A002 - the API's name
    data: Any,
    name: str,
    background: str,
    foreground: str,
    logo: bytes = b"",
) -> Row:
    """Its `id` and `link`."""
    added = run(
        """
        INSERT INTO qrs (user_id, code, type, data, name, background, foreground, logo)
        VALUES (%(user_id)s, %(code)s, %(type)s, %(data)s, %(name)s, %(background)s, %(foreground)s,
                nullif(%(logo)s::bytea, ''))
        RETURNING id, %(base)s::text || '/qr/' || code AS link
        """,
        user_id=user_id,
        code=code,
        type=type,
        data=orjson.dumps(data).decode(),
        name=name,
        background=background,
        foreground=foreground,
        logo=logo,
        base=settings().base_url,
    )
    assert added is not None
    return added


def update(
    user_id: int,
    qr_id: int,
    *,
    data: Any,
    name: str | None = None,
    background: str | None = None,
    foreground: str | None = None,
    logo: bytes | None = None,
) -> None:
    """An empty logo takes the logo away.  Whether the colours fit is decided on the row as it becomes."""
    updated = run(
        """
        UPDATE qrs
           SET data = %(data)s,
               name = coalesce(%(name)s, name),
               background = coalesce(%(background)s, background),
               foreground = coalesce(%(foreground)s, foreground),
               logo = nullif(coalesce(%(logo)s::bytea, logo), '')
         WHERE user_id = %(user_id)s AND id = %(qr_id)s
        RETURNING id
        """,
        user_id=user_id,
        qr_id=qr_id,
        data=orjson.dumps(data).decode(),
        name=name,
        background=background,
        foreground=foreground,
        logo=logo,
    )
    if updated is None:
        raise not_found("QR code")


def delete(user_id: int, qr_id: int) -> None:
    deleted = run(
        "DELETE FROM qrs WHERE user_id = %(user_id)s AND id = %(qr_id)s RETURNING id",
        user_id=user_id,
        qr_id=qr_id,
    )
    if deleted is None:
        raise not_found("QR code")


def drawing(host: str | None, code: str, *, with_logo: bool) -> Row:
    """What the picture of a code is drawn from.  The logo itself is left where it is unless it is needed."""
    found = row(
        """
        SELECT type, data, foreground, background, logo_hash, CASE WHEN %(with_logo)s::boolean THEN logo END AS logo
          FROM qrs
         WHERE code = %(code)s AND EXISTS (SELECT FROM users WHERE users.id = user_id)
           AND user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text), user_id)
        """,
        host=host,
        code=code,
        with_logo=with_logo,
    )
    if found is None:
        raise AppError("image_missing")
    return found
