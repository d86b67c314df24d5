"""CSV responses (RFC 4180), for clients that prefer them to JSON."""

import csv
import re
from collections.abc import Iterable
from io import StringIO
from typing import Any

import orjson
from flask import Response, after_this_request, request

# Spreadsheets read a cell that begins with one of these characters as a formula, unless an
# apostrophe is before it. A text that has apostrophes itself gets one more, so that an import,
# which removes one, returns the same text.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
MIMETYPE = "text/csv"
_JSON = ("*/*", "application/json")
CONTENT_TYPE = f"{MIMETYPE}; charset=utf-8; header=present"


def vary_by_accept() -> None:
    @after_this_request
    def add(response: Response) -> Response:
        response.vary.add("Accept")
        return response


def is_preferred() -> bool:
    vary_by_accept()
    if request.headers.get("Accept", "*/*") in _JSON:  # most clients; comparing takes a tenth of parsing
        return False
    return request.accept_mimetypes.best_match(["application/json", MIMETYPE]) == MIMETYPE


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return orjson.dumps(value).decode()
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = StringIO(newline="")
    csv.writer(text).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def respond(columns: list[str], rows: Iterable[dict[str, Any]], **headers: str) -> Response:
    content = lines([columns, *([row[column] for column in columns] for row in rows)])
    return Response(content, content_type=CONTENT_TYPE, headers=headers)
