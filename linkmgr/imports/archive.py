"""The zip of GET /api/account/export."""

from collections.abc import Iterator
from typing import IO, Any

from linkmgr.db.statements import Row
from linkmgr.imports.rows import ImportRow, ReadError

SOURCE = "account"


def is_archive(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04")


def read(stream: IO[bytes], position: Any) -> Iterator[ImportRow]:
    raise ReadError("Zip files cannot be read yet.")


def store(user_id: int, import_id: int, rows: list[ImportRow]) -> Any:
    raise NotImplementedError


def preview(stream: IO[bytes], limit: int) -> list[Row]:
    return []
