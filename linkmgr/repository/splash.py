"""Splash pages. linkmgr/schemas/splash.py says which columns are shown."""

from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, run, run_one
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import existing

batch = batch_of("splash_pages")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        """
        SELECT id, name, created AS date, updated, version::text FROM splash_pages
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        counted="splash_pages",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, splash_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM splash_pages WHERE user_id = %(user_id)s "
        "AND id = %(splash_id)s",
        user_id=user_id,
        splash_id=splash_id,
    )
    return existing(stored, "splash page")


def add(user_id: int, members: Row) -> Row:
    return run_one(
        """
        WITH added AS (
            INSERT INTO splash_pages (user_id, name, title, message, link, counter, banner)
            VALUES (%(user_id)s, %(name)s, %(title)s, %(message)s, %(link)s, %(counter)s,
                    %(banner)s)
            RETURNING *)
        SELECT *, created AS date, version::text
          FROM added
         WHERE require_unblocked(user_id, to_jsonb(added))
        """,
        **members,
        user_id=user_id,
    )


def update(user_id: int, splash_id: int, members: Row) -> Row:
    updated = run(
        """
        WITH updated AS (
            UPDATE splash_pages
               SET name = coalesce(%(name)s, name),
                   title = coalesce(%(title)s, title),
                   message = coalesce(%(message)s, message),
                   link = coalesce(%(link)s, link),
                   counter = coalesce(%(counter)s, counter),
                   banner = coalesce(%(banner)s, banner)
             WHERE user_id = %(user_id)s AND id = %(splash_id)s
            RETURNING *)
        SELECT u.*, u.created AS date, u.version::text
          FROM updated u
          JOIN splash_pages before USING (id)
         WHERE require_unblocked(u.user_id, to_jsonb(u), to_jsonb(before))
        """,
        **members,
        user_id=user_id,
        splash_id=splash_id,
    )
    return existing(updated, "splash page")


def delete(user_id: int, splash_id: int) -> None:
    deleted = run(
        "DELETE FROM splash_pages WHERE user_id = %(user_id)s AND id = %(splash_id)s RETURNING id",
        user_id=user_id,
        splash_id=splash_id,
    )
    existing(deleted, "splash page")
