"""QR codes. Table `totals` counts their scans."""

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
    """Return the QR code and its `statistics`."""
    code = replica_row(
        """
        SELECT id, %(base)s::text || '/qr/' || code AS link,
               coalesce(clicks, 0) AS scans, name, created AS date,
               coalesce(t.statistics, (SELECT data FROM statistics WHERE target_id = t.target_id)) AS statistics
          FROM qrs
          LEFT JOIN totals t ON target_id = id
         WHERE user_id = %(user_id)s AND id = %(qr_id)s
        """,
        user_id=user_id,
        qr_id=qr_id,
        base=settings().base_url,
    )
    if code is None:
        raise not_found("QR code")
    return code | {"statistics": code["statistics"] or visits.NO_VISITS}


def find_type(user_id: int, qr_id: int) -> str:
    """Return the type, which never changes, so that it can be read before an update."""
    code = row("SELECT type FROM qrs WHERE user_id = %(user_id)s AND id = %(qr_id)s", user_id=user_id, qr_id=qr_id)
    if code is None:
        raise not_found("QR code")
    return str(code["type"])


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
    """Store a QR code and return its `id` and `link`."""
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
    """Change the members that are not None. An empty logo removes the logo. A constraint checks the contrast of the
    resulting colors."""
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


def image_source(host: str | None, code: str, *, with_logo: bool) -> Row:
    """Return the data that the image of a QR code is rendered from. `logo` is None unless `with_logo`: it is large and
    rarely needed."""
    source = row(
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
    if source is None:
        raise AppError("image_missing")
    return source
