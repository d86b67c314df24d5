"""Spool files in the data folder: visits that are not yet in the database, one JSON object per
line.

Each process appends to its own files and holds a lock on them. A file that is not locked belongs to
a dead process; any other process stores the rest of it. A new file reserves its whole size, filled
with NUL, so that visits can be appended while the disk is full.
"""

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

SIZE = 1024 * 1024  # bytes of a file
_CHUNK = 256 * 1024  # bytes per read
_SUFFIX = ".spool"
_TRACKED = re.compile(rb'"tracked_id":(\d+)')  # quotation marks in labels are escaped
BOT = b'"bot":true'  # in the line of a bot


class Spool:
    """An open and locked file. `size` and `stored` are positions in bytes."""

    def __init__(self, path: Path, file: int) -> None:
        self.name = path.stem
        self.size = 0
        self.stored = 0
        self._path = path
        self._file = file

    @classmethod
    def create(cls, folder: Path) -> "Spool":
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            path = folder / f"{secrets.token_hex(16)}{_SUFFIX}"
            file = _open(path, os.O_CREAT | os.O_EXCL)
            if file is None:  # another process adopted the file and deletes it
                continue
            try:
                if os.pwrite(file, bytes(SIZE), 0) < SIZE:
                    raise OSError("there is no space for another spool file")
            except OSError:
                path.unlink()
                os.close(file)
                raise
            return cls(path, file)

    @classmethod
    def adopt(cls, path: Path) -> "Spool | None":
        """Open and lock the file of a dead process. Return None if another process has it."""
        try:
            file = _open(path)
        # Deleted in the meantime, or owned by another system user
        except (FileNotFoundError, PermissionError):
            return None
        if file is None:
            return None
        spool = cls(path, file)
        content = os.pread(file, os.fstat(file).st_size, 0)
        spool.size = content.rfind(b"\n") + 1  # the rest is an incomplete line or unused
        return spool

    def append(self, line: bytes) -> None:
        if os.pwrite(self._file, line, self.size) < len(line):
            raise OSError("a visit was written incompletely")
        self.size += len(line)

    def is_stored(self) -> bool:
        return self.stored == self.size

    def read(self, limit: int) -> list[bytes]:
        content = os.pread(self._file, max(0, min(self.size - self.stored, _CHUNK)), self.stored)
        lines = content.splitlines(keepends=True)[:limit]
        return lines if not lines or lines[-1].endswith(b"\n") else lines[:-1] or lines

    def delete(self) -> None:
        self._path.unlink()
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def orphans(folder: Path) -> Iterator[Spool]:
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        if spool := Spool.adopt(path):
            yield spool


def clicks(folder: Path, ids: set[int]) -> Iterator[dict[str, Any]]:
    """Return the clicks of these links in all files, also those that are stored: the `spool`, the
    position `stop` at which it is stored, and the `tracked_id`."""
    for path in folder.glob(f"*{_SUFFIX}"):
        stop = 0
        with suppress(OSError):  # deleted in the meantime, or owned by another system user
            for line in path.read_bytes().splitlines(keepends=True):
                stop += len(line)
                tracked = _TRACKED.search(line)
                if tracked and int(tracked[1]) in ids and BOT not in line:
                    yield {"spool": path.stem, "stop": stop, "tracked_id": int(tracked[1])}


def backlog(folder: Path, stored: dict[str, int]) -> tuple[int, float]:
    """Return the number of waiting visits, and the age of the oldest one in seconds."""
    number, now = 0, time.time()
    oldest = now
    for path in folder.glob(f"*{_SUFFIX}"):
        # Deleted in the meantime, owned by another system user, or damaged
        with suppress(OSError, ValueError):
            waiting = path.read_bytes()[stored.get(path.stem, 0) :]
            number += (lines := waiting.count(b"\n"))
            if lines:
                oldest = min(oldest, orjson.loads(waiting[: waiting.index(b"\n")])["at"])
    return number, now - oldest


def _open(path: Path, flags: int = 0) -> int | None:
    """Open and lock a file. Return None if another process has locked, renamed or deleted it."""
    file = os.open(path, os.O_RDWR | flags, 0o600)
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    os.close(file)
    return None
