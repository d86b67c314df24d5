"""Files that readers of imports read in tests."""

import io
from typing import Any

import pytest

from linkmgr.features.imports import files
from linkmgr.features.imports.rows import ImportRow, ReadError

SALE = "https://example.com/sale"
END = "2027-01-01 00:00:00"
CLOSE_QUOTE = "is too long, or has a quotation mark that is never closed. Correct the file."
HEADER = "Long URL,Short code,Title,Tags\n"
SHLINK = HEADER + "https://example.com/sale,summer,Café “Été”,news|mail\nhttps://example.com/jobs,jobs,,\n"
ELEMENT = b'{"longUrl": "https://example.com", "shortCode": "a"}'


def read(content: bytes, **options: Any) -> list[ImportRow]:
    """Return the rows of a file."""
    return [row for row in files.read(io.BytesIO(content), **options) if row]


def titles(content: bytes) -> list[Any]:
    return [row.members.get("title") for row in read(content)]


def only(content: bytes, **options: Any) -> ImportRow:
    [row] = read(content, **options)
    return row


def problem(content: bytes, **options: Any) -> str:
    """Return the reason why a file cannot be read."""
    with pytest.raises(ReadError) as error:
        read(content, **options)
    return error.value.message


def outcome(content: bytes) -> tuple[list[ImportRow], str | None]:
    """Return the rows of a file, and the reason why it cannot be read any further, or None."""
    rows: list[ImportRow] = []
    try:
        rows.extend(row for row in files.read(io.BytesIO(content)) if row)
    except ReadError as error:
        return rows, error.message
    return rows, None
