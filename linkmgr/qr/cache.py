"""Pictures that were drawn, by their tags: files that all processes of a data folder share, so that each is drawn once.

They can be deleted at any time.  What cannot be read or written is drawn again.
"""

import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from flask import Flask

from linkmgr.settings import settings, this_app

FOLDER = "pictures"
_MOST = 64 << 20  # bytes, that the oldest have to go for
_BLOCK = 4096  # bytes
_CHECK = 4  # bytes: after a loss of power a file may be there without what was written to it


class ImageCache:
    def __init__(self, folder: Path, most: int = _MOST) -> None:
        self.folder, self.most = folder, most
        self._put = most  # bytes since files were deleted last: at first nobody knows how many others put

    def get(self, tag: str) -> bytes | None:
        with suppress(OSError):
            found = (self.folder / tag).read_bytes()
            picture = found[_CHECK:]
            if found[:_CHECK] == _checksum(picture):
                return picture
        return None

    def put(self, tag: str, picture: bytes) -> None:
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(tag, _checksum(picture) + picture)
            self._put += _room(len(picture))
            if self._put > self.most // 8:
                self._put = 0
                self._make_room()

    def _write(self, tag: str, content: bytes) -> None:
        """Whole or not at all, whoever reads or writes it meanwhile."""
        with NamedTemporaryFile(dir=self.folder, delete=False) as file:
            try:
                file.write(content)
                file.flush()
                Path(file.name).replace(self.folder / tag)
            except OSError:
                Path(file.name).unlink()
                raise

    def _make_room(self) -> None:
        found = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process deleted it
                found.append((path.stat().st_mtime_ns, _room(path.stat().st_size), path))
        held = sum(room for _, room, _ in found)
        for _, room, path in sorted(found):
            if held <= self.most:
                break
            held -= room
            with suppress(OSError):
                path.unlink()


def _room(size: int) -> int:
    """What a file of this size takes of a disk."""
    return -(-size // _BLOCK) * _BLOCK


def _checksum(picture: bytes) -> bytes:
    return zlib.crc32(picture).to_bytes(_CHECK, "big")


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_pictures"] = ImageCache(settings().folder / FOLDER)


def image_cache() -> ImageCache:
    found: ImageCache = this_app().extensions["linkmgr_pictures"]
    return found
