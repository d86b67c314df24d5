"""Pixels."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, run
from linkmgr.web.errors import not_found


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, type, name, tag, created AS date
          FROM pixels
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'pixels'",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, pixel_id: int) -> Row:
    pixel = row(
        """
        SELECT id, type, name, tag, created AS date, xmin::text AS version
          FROM pixels
         WHERE user_id = %(user_id)s AND id = %(pixel_id)s
        """,
        user_id=user_id,
        pixel_id=pixel_id,
    )
    if pixel is None:
        raise not_found("pixel")
    return pixel


def add(user_id: int, *, type: str, name: str, tag: str) -> int:  # noqa: A002 - the API's name
    added = run(
        """
        INSERT INTO pixels (user_id, type, name, tag)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(tag)s)
        RETURNING id
        """,
        user_id=user_id,
        type=type,
        name=name,
        tag=tag,
    )
    assert added is not None
    return int(added["id"])


def update(user_id: int, pixel_id: int, *, tag: str, name: str | None = None) -> Row:
    updated = run(
        """
        UPDATE pixels
           SET name = coalesce(%(name)s, name), tag = %(tag)s
         WHERE user_id = %(user_id)s AND id = %(pixel_id)s
        RETURNING id, type, name, tag, created AS date, xmin::text AS version
        """,
        user_id=user_id,
        pixel_id=pixel_id,
        name=name,
        tag=tag,
    )
    if updated is None:
        raise not_found("pixel")
    return updated


def delete(user_id: int, pixel_id: int) -> None:
    deleted = run(
        "DELETE FROM pixels WHERE user_id = %(user_id)s AND id = %(pixel_id)s RETURNING id",
        user_id=user_id,
        pixel_id=pixel_id,
    )
    if deleted is None:
        raise not_found("pixel")
