"""Pixels. linkmgr/resources/pixels.py says which columns are shown."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import not_found


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT *, created AS date
          FROM pixels
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'pixels'",
        user_id=user_id,
        **paging,
    )


def batch(user_id: int, after: int, limit: int) -> list[Row]:
    return rows(
        """
        SELECT *, created AS date
          FROM pixels
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=limit,
    )


def read(user_id: int, pixel_id: int) -> Row:
    pixel = row(
        """
        SELECT *, created AS date, version::text
          FROM pixels
         WHERE user_id = %(user_id)s AND id = %(pixel_id)s
        """,
        user_id=user_id,
        pixel_id=pixel_id,
    )
    if pixel is None:
        raise not_found("pixel")
    return pixel


def add(user_id: int, members: Row) -> Row:
    added = run(
        """
        INSERT INTO pixels (user_id, type, name, tag)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(tag)s)
        RETURNING *, created AS date, version::text
        """,
        user_id=user_id,
        **members,
    )
    assert added is not None
    return added


def update(user_id: int, pixel_id: int, members: Row) -> Row:
    updated = run(
        """
        UPDATE pixels
           SET name = coalesce(%(name)s, name), tag = %(tag)s
         WHERE user_id = %(user_id)s AND id = %(pixel_id)s
        RETURNING *, created AS date, version::text
        """,
        user_id=user_id,
        pixel_id=pixel_id,
        **members,
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
