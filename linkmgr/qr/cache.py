"""Cache of rendered images, by tag: files in the data folder, shared by all processes.

The files can be deleted at any time. An image that cannot be read or written is rendered again.
"""

import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from flask import Flask

from linkmgr.settings import settings, this_app

FOLDER = "pictures"
MAX_BYTES = 64 << 20  # disk usage; the oldest files are deleted first
_BLOCK = 4096  # bytes
_CHECKSUM = 4  # bytes; after a power failure a file may exist without its content


class ImageCache:
    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self._added = max_bytes  # bytes since the last deletion; checks at the first put, as other processes add files

    def get(self, tag: str) -> bytes | None:
        with suppress(OSError):
            content = (self.folder / tag).read_bytes()
            image = content[_CHECKSUM:]
            if content[:_CHECKSUM] == _checksum(image):
                return image
        return None

    def put(self, tag: str, image: bytes) -> None:
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(tag, _checksum(image) + image)
            self._added += _disk_usage(len(image))
            if self._added > self.max_bytes // 8:
                self._added = 0
                self._delete_oldest()

    def _write(self, tag: str, content: bytes) -> None:
        """Replace the file atomically, because other processes read and write it."""
        with NamedTemporaryFile(dir=self.folder, delete=False) as file:
            try:
                file.write(content)
                file.flush()
                Path(file.name).replace(self.folder / tag)
            except OSError:
                Path(file.name).unlink()
                raise

    def _delete_oldest(self) -> None:
        files = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # deleted by another process
                files.append((path.stat().st_mtime_ns, _disk_usage(path.stat().st_size), path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.max_bytes:
                break
            total -= size
            with suppress(OSError):
                path.unlink()


def _disk_usage(size: int) -> int:
    """Return the disk usage of a file, in whole blocks."""
    return -(-size // _BLOCK) * _BLOCK


def _checksum(image: bytes) -> bytes:
    return zlib.crc32(image).to_bytes(_CHECKSUM, "big")


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_images"] = ImageCache(settings().folder / FOLDER)


def image_cache() -> ImageCache:
    cache: ImageCache = this_app().extensions["linkmgr_images"]
    return cache
