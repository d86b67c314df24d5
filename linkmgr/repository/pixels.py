"""Pixels. linkmgr/schemas/pixels.py says which columns are shown."""

from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, run, run_one
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import existing

batch = batch_of("pixels")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        "SELECT *, created AS date, version::text FROM pixels WHERE user_id = %(user_id)s AND "
        "has_text(name, %(q)s)",
        counted="pixels",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, pixel_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM pixels WHERE user_id = %(user_id)s AND id = "
        "%(pixel_id)s",
        user_id=user_id,
        pixel_id=pixel_id,
    )
    return existing(stored, "pixel")


def add(user_id: int, members: Row) -> Row:
    return run_one(
        """
        INSERT INTO pixels (user_id, type, name, tag)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(tag)s)
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
    )


def update(user_id: int, pixel_id: int, members: Row) -> Row:
    updated = run(
        """
        UPDATE pixels SET name = coalesce(%(name)s, name), tag = coalesce(%(tag)s, tag)
         WHERE user_id = %(user_id)s AND id = %(pixel_id)s
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
        pixel_id=pixel_id,
    )
    return existing(updated, "pixel")


def delete(user_id: int, pixel_id: int) -> None:
    deleted = run(
        "DELETE FROM pixels WHERE user_id = %(user_id)s AND id = %(pixel_id)s RETURNING id",
        user_id=user_id,
        pixel_id=pixel_id,
    )
    existing(deleted, "pixel")
