"""Splash pages. linkmgr/resources/splash.py says which columns are shown."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import not_found


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, name, created AS date
          FROM splash_pages
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'splash_pages'",
        user_id=user_id,
        **paging,
    )


def batch(user_id: int, after: int, limit: int) -> list[Row]:
    return rows(
        """
        SELECT *, created AS date
          FROM splash_pages
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=limit,
    )


def read(user_id: int, splash_id: int) -> Row:
    splash_page = row(
        """
        SELECT *, created AS date, version::text
          FROM splash_pages
         WHERE user_id = %(user_id)s AND id = %(splash_id)s
        """,
        user_id=user_id,
        splash_id=splash_id,
    )
    if splash_page is None:
        raise not_found("splash page")
    return splash_page


def add(user_id: int, members: Row) -> Row:
    added = run(
        """
        INSERT INTO splash_pages (user_id, name, title, message, link, counter, banner)
        VALUES (%(user_id)s, %(name)s, %(title)s, %(message)s, %(link)s, %(counter)s, %(banner)s)
        RETURNING *, created AS date, version::text
        """,
        user_id=user_id,
        **members,
    )
    assert added is not None
    return added


def update(user_id: int, splash_id: int, members: Row) -> Row:
    updated = run(
        """
        UPDATE splash_pages
           SET name = coalesce(%(name)s, name),
               title = coalesce(%(title)s, title),
               message = coalesce(%(message)s, message),
               link = coalesce(%(link)s, link),
               counter = coalesce(%(counter)s, counter),
               banner = coalesce(%(banner)s, banner)
         WHERE user_id = %(user_id)s AND id = %(splash_id)s
        RETURNING *, created AS date, version::text
        """,
        user_id=user_id,
        splash_id=splash_id,
        **members,
    )
    if updated is None:
        raise not_found("splash page")
    return updated


def delete(user_id: int, splash_id: int) -> None:
    """Delete a splash page. Its links remain and redirect directly."""
    deleted = run(
        "DELETE FROM splash_pages WHERE user_id = %(user_id)s AND id = %(splash_id)s RETURNING id",
        user_id=user_id,
        splash_id=splash_id,
    )
    if deleted is None:
        raise not_found("splash page")
