"""Logos of QR codes: files of the data folder or images from a URL, re-encoded as small PNG files.

All stored logos are re-encoded, so that rendering neither fetches URLs nor decodes images of
unknown origin.
"""

import base64
import hashlib
import os
import re
import stat
from io import BytesIO

from PIL import Image, ImageOps

from linkmgr.core.errors import AppError
from linkmgr.core.outbound.fetch import MAX_BYTES, fetch
from linkmgr.core.settings import settings
from linkmgr.core.web import outbound_budget, pool
from linkmgr.core.web import request as web_request

FOLDER = "logos"
UPLOAD = "upload:"
# Codes of the errors of load() and of the write that follows
UNREACHABLE = ("fetch_refused", "fetch_unresolved", "fetch_unreachable", "fetch_timed_out", "fetch_status")
UNUSABLE = (
    "fetch_too_large",
    "fetch_busy",
    "fetches_limited",
    "image_busy",
    "logo_missing",
    "logo_unusable",
    "logos_full",
)
ERRORS = UNREACHABLE + UNUSABLE
MAX_PIXELS = 4_000_000
# MiB of all logos of a user; KiB that each counts at least (schema.sql, "store_logo")
MAX_TOTAL, LEAST = (32, 4)
SIDE = 320  # pixels of the longer side of a stored logo
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")
# A photograph has about ten. A scan of a dozen bytes can cost a pass over all pixels.
_MAX_JPEG_SCANS = 100
_JPEG_SCAN = b"\xff\xda"

Image.MAX_IMAGE_PIXELS = None  # Pillow only warns above its own limit, which is higher than ours


def upload_name(image: bytes) -> str:
    """Return the name of an uploaded logo. It can be neither that of a file nor a URL."""
    return f"{UPLOAD}{hashlib.sha256(image).hexdigest()[:16]}"


def load(name: str, *, member: str = "logo") -> bytes:
    """Return the logo with this file name or URL as PNG, or b"" for an empty name. `member` is for
    messages."""
    if not name:
        return b""
    if "://" not in name:
        return reencode(_read(name))
    outbound_budget.spend(web_request.user_id())
    return reencode(fetch(name, subject=member))


def _read(name: str) -> bytes:
    if not _NAME.fullmatch(name):
        raise AppError("logo_missing")
    try:
        # A symbolic link could point outside of the folder, and opening or reading a pipe could
        # block.
        descriptor = os.open(settings().folder / FOLDER / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise AppError("logo_missing")
            return file.read(MAX_BYTES + 1)
    except OSError:
        raise AppError("logo_missing") from None


def decode(text: object) -> bytes:
    try:
        image = base64.b64decode(str(text))
    except ValueError:
        raise AppError("logo_unusable") from None
    return reencode(image)


def reencode(image: bytes) -> bytes:
    if len(image) > MAX_BYTES:
        raise AppError("logo_unusable")
    pool.take("image_busy")
    try:
        return _png(image)
    except AppError:
        raise
    # A broken image can raise anything: OSError, SyntaxError, struct.error, zlib.error, ...
    except Exception:
        raise AppError("logo_unusable") from None


def _png(image: bytes) -> bytes:
    with Image.open(BytesIO(image), formats=("PNG", "JPEG")) as opened:
        # The size is in the header. Nothing has been decoded yet.
        if opened.width * opened.height > MAX_PIXELS:
            raise AppError("logo_unusable")
        if opened.format != "PNG" and image.count(_JPEG_SCAN) > _MAX_JPEG_SCANS:
            raise AppError("logo_unusable")
        upright = ImageOps.exif_transpose(opened)
    if upright.mode == "I;16":  # convert() would clip values above 255 of 65535
        upright = upright.point(lambda value: value / 256).convert("L")
    logo = upright.convert("RGBA")
    logo.thumbnail((SIDE, SIDE))
    # Copy the pixels to a new image, which has no metadata such as text, color profile or location.
    clean = Image.new("RGBA", logo.size)
    clean.paste(logo)
    output = BytesIO()
    clean.save(output, "PNG", optimize=True)
    return output.getvalue()
