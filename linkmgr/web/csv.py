"""CSV responses (RFC 4180), for clients that prefer them to JSON."""

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

from flask import Response, request

# Spreadsheets read a cell that begins with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
MIMETYPE = "text/csv"


def is_preferred() -> bool:
    """Return True if the client prefers CSV. Without a preference it gets JSON."""
    return request.accept_mimetypes.best_match(["application/json", MIMETYPE]) == MIMETYPE


def cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def respond(columns: list[str], rows: Iterable[dict[str, Any]], **headers: str) -> Response:
    """Return the rows as CSV, with a line of column names. None is an empty cell."""
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([cell(row[column]) for column in columns] for row in rows)
    return Response(text.getvalue(), content_type=f"{MIMETYPE}; charset=utf-8; header=present", headers=headers)
