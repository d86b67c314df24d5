"""Statements that store two colors."""

from typing import Any

from psycopg2.errors import CheckViolation

from linkmgr.db.statements import Row, run
from linkmgr.errors import AppError
from linkmgr.fields.colors import readable

_CODES = ("colours_too_close", "overlay_colours_too_close")


def run_with_colors(sql: str, **params: Any) -> Row | None:
    """Run a statement and return its first row. If the colors are too similar, name some that are not."""
    try:
        return run(sql, **params)
    except CheckViolation as error:
        if error.diag.constraint_name not in _CODES:
            raise
        color, background = (error.diag.message_detail or "").split()
        better = {"color": readable(color, background), "background": readable(background, color)}
        raise AppError(error.diag.constraint_name, **better) from None
