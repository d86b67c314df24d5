"""The file of an import, encrypted in the database in chunks, so that any host can read it."""

import io
from typing import IO

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports.failed_rows import CHUNK_BYTES


def store(user_id: int, import_id: int, file: IO[bytes]) -> None:
    number = 0
    while data := file.read(CHUNK_BYTES):
        import_rows.add_chunk(user_id, import_id, number, keys.seal_bytes(user_id, data))
        number += 1


def open_file(details: Row) -> io.BufferedReader:
    return io.BufferedReader(_StoredFile(details["user_id"], details["id"], details["size"]), 1 << 16)


class _StoredFile(io.RawIOBase):
    def __init__(self, user_id: int, import_id: int, size: int) -> None:
        super().__init__()
        self._user_id, self._import_id, self._size = user_id, import_id, size
        self._at = 0
        self._number, self._chunk = -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        number, start = divmod(self._at, CHUNK_BYTES)
        if number != self._number:
            data = import_rows.chunk(self._user_id, self._import_id, number)
            self._chunk = keys.unseal_bytes(self._user_id, data) if data else b""
            self._number = number
        part = self._chunk[start : start + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
