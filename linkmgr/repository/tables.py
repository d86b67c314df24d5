"""The statements that resources share: they differ only by the table and its columns."""

from collections.abc import Callable
from typing import Any, Unpack

from psycopg2.errors import CheckViolation

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import AppError, existing
from linkmgr.fields.colors import readable
from linkmgr.settings import settings


class Table:
    """The rows of users in a table. `columns` are the columns of a record and its `version`. `write` executes the
    statements that store a row. Triggers count the rows of a table that `has_usage`."""

    def __init__(
        self,
        name: str,
        noun: str,
        columns: str = "*, created AS date, version::text",
        write: Callable[..., Row | None] = run,
        *,
        has_usage: bool = True,
    ) -> None:
        self._noun, self._write = noun, write
        self._index = f"""
            SELECT {columns} FROM {name} WHERE user_id = %(user_id)s AND id < %(after)s
             ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s
        """  # noqa: S608 - static SQL
        self._total = f"SELECT count(*) FROM {name} WHERE user_id = %(user_id)s"  # noqa: S608
        if has_usage:
            self._total = f"SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = '{name}'"  # noqa: S608
        self._batch = f"""
            SELECT {columns} FROM {name} WHERE user_id = %(user_id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
        """  # noqa: S608
        self._read = f"SELECT {columns} FROM {name} WHERE user_id = %(user_id)s AND id = %(row_id)s"  # noqa: S608
        self._delete = f"DELETE FROM {name} WHERE user_id = %(user_id)s AND id = %(row_id)s RETURNING id"  # noqa: S608
        self._returning = f" RETURNING {columns}"

    def index(self, user_id: int, **paging: Unpack[Paging]) -> Page:
        return page(self._index, self._total, user_id=user_id, base=settings().base_url, **paging)

    def batch(self, user_id: int, after: int, limit: int) -> list[Row]:
        return rows(self._batch, user_id=user_id, after=after, limit=limit, base=settings().base_url)

    def read(self, user_id: int, row_id: int) -> Row:
        return existing(row(self._read, user_id=user_id, row_id=row_id, base=settings().base_url), self._noun)

    def add(self, insert: str, user_id: int, members: Row) -> Row:
        """Execute an INSERT and return the record."""
        added = self._write(insert + self._returning, user_id=user_id, base=settings().base_url, **members)
        assert added is not None
        return added

    def change(self, update: str, user_id: int, row_id: int, members: Row) -> Row:
        """Execute an UPDATE and return the record."""
        values: dict[str, Any] = {"user_id": user_id, "row_id": row_id, "base": settings().base_url}
        return existing(self._write(update + self._returning, **values, **members), self._noun)

    def delete(self, user_id: int, row_id: int) -> None:
        existing(run(self._delete, user_id=user_id, row_id=row_id), self._noun)


_COLOR_CODES = ("colours_too_close", "overlay_colours_too_close")


def run_with_colors(sql: str, **params: Any) -> Row | None:
    """Run a statement and return its first row. If the colors are too similar, name some that are not."""
    try:
        return run(sql, **params)
    except CheckViolation as error:
        if error.diag.constraint_name not in _COLOR_CODES:
            raise
        color, background = (error.diag.message_detail or "").split()
        better = {"color": readable(color, background), "background": readable(background, color)}
        raise AppError(error.diag.constraint_name, **better) from None
