"""Logos of QR codes: a file of the data folder or an image of the web, as a small PNG of our own making.

What is stored has passed through here, so that a picture never depends on a foreign server or a foreign decoder.
"""

import os
import re
import stat
from io import BytesIO

from PIL import Image, ImageOps

from linkmgr.outbound.fetch import MAX_BYTES, fetch
from linkmgr.qr import drawing
from linkmgr.settings import settings
from linkmgr.web.errors import AppError

FOLDER = "logos"
MAX_PIXELS = 4_000_000
SIDE = 320  # pixels, the longer side of what is kept
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")
# A photograph has about ten.  Each one is a pass over all pixels and may be a dozen bytes long.
_MAX_JPEG_SCANS = 100
_JPEG_SCAN = b"\xff\xda"

Image.MAX_IMAGE_PIXELS = None  # Pillow only warns above its own limit; ours is below


def load(name: str) -> bytes:
    """The logo of a file name or a URL, as a PNG; "" for none."""
    if not name:
        return b""
    return _redrawn(fetch(name) if "://" in name else _read(name))


def _read(name: str) -> bytes:
    if not _NAME.fullmatch(name):
        raise AppError("logo_missing")
    try:
        # A link would lead out of the folder, and a pipe would not end.
        opened = os.open(settings().folder / FOLDER / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise AppError("logo_missing")
            return file.read(MAX_BYTES + 1)
    except OSError:
        raise AppError("logo_missing") from None


def _redrawn(image: bytes) -> bytes:
    if len(image) > MAX_BYTES:
        raise AppError("logo_unusable")
    try:
        with drawing.alone():
            return _png(image)
    except AppError:
        raise
    except Exception:  # a broken image can raise anything: OSError, SyntaxError, struct.error, zlib.error, ...
        raise AppError("logo_unusable") from None


def _png(image: bytes) -> bytes:
    with Image.open(BytesIO(image), formats=("PNG", "JPEG")) as opened:
        # Nothing is decoded before this: the size stands in the header.
        if opened.width * opened.height > MAX_PIXELS:
            raise AppError("logo_unusable")
        if opened.format != "PNG" and image.count(_JPEG_SCAN) > _MAX_JPEG_SCANS:
            raise AppError("logo_unusable")
        upright = ImageOps.exif_transpose(opened)
    if upright.mode == "I;16":  # convert() would cut off what is brighter than 255 of 65535
        upright = upright.point(lambda value: value / 256).convert("L")
    drawn = upright.convert("RGBA")
    drawn.thumbnail((SIDE, SIDE))
    # A new image, so that no text, profile or place of the old one is kept.
    clean = Image.new("RGBA", drawn.size)
    clean.paste(drawn)
    kept = BytesIO()
    clean.save(kept, "PNG", optimize=True)
    return kept.getvalue()
