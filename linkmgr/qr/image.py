"""The picture of a QR code, as PNG or SVG: whole pixels a module, at most as large as requested.

Equal input gives equal bytes, which is what the ETag stands for.
"""

import base64
import hashlib
import zlib
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import PIL
import segno
from PIL import Image, ImageOps

from linkmgr.web.errors import AppError

MIN_SIZE, MAX_SIZE, DEFAULT = 64, 2048, 400  # pixels
FORMATS = {"png": "image/png", "svg": "image/svg+xml"}
_QUIET = 4  # modules that stay free on each side where there is room, as the standard requires
_BLOCK = 8  # pixels; common decoders compare blocks of this size and fail when the modules coincide with them
_LOGO_SHARE = 0.25  # of the side; error correction H restores far more than the 1/16 that this covers
# Increase the number when the drawing changes, so that no old picture is kept.
_DRAWN_BY = f"2 segno {segno.__version__} Pillow {PIL.__version__}"


class ImageSpec(NamedTuple):
    """All that a picture depends on."""

    payload: str
    foreground: str
    background: str
    logo_hash: bytes | None
    format: str
    scale: int  # pixels of a module
    margin: int  # modules that stay free on each side

    @property
    def tag(self) -> str:
        return hashlib.sha256(repr((_DRAWN_BY, *self)).encode()).hexdigest()[:32]


class Box(NamedTuple):
    """The place of the logo, in modules, which stays free for it."""

    start: int
    side: int


def picture(
    payload: str, foreground: str, background: str, logo_hash: bytes | None, *, form: str, most_pixels: int
) -> ImageSpec:
    """Return the largest picture with whole pixels for each module that fits the size."""
    width = len(_code(payload, _correction(logo_hash)))
    # One free module on each side is the least that readers find a code by.
    if most_pixels < width + 2:
        raise AppError("invalid", problems=f"size must be at least {width + 2} for what this code holds")
    scale = max(1, most_pixels // (width + 2 * _QUIET))
    scale -= scale % _BLOCK == 0
    margin = min(_QUIET, (most_pixels - width) // 2)
    return ImageSpec(payload, foreground, background, logo_hash, form, scale, margin)


def render(picture: ImageSpec, logo: bytes | None) -> bytes:
    modules = [bytearray(row) for row in _code(picture.payload, _correction(picture.logo_hash))]
    box = _clear_box(modules) if logo else None
    return (_svg if picture.format == "svg" else _png)(picture, modules, box, logo or b"")


def _correction(logo_hash: bytes | None) -> str:
    return "m" if logo_hash is None else "h"


@lru_cache(maxsize=128)
def _code(payload: str, correction: str) -> tuple[bytes, ...]:
    """Rows of 1 for dark and 0 for light."""
    code = segno.make(payload, error=correction, micro=False, encoding="utf-8")
    return tuple(bytes(row) for row in code.matrix)


def _clear_box(modules: list[bytearray]) -> Box:
    width = len(modules)
    side = int(width * _LOGO_SHARE)
    side -= 1 - side % 2  # odd, as every code's width is, so that it can be in the middle
    start = (width - side) // 2
    for row in modules[start : start + side]:
        row[start : start + side] = bytes(side)
    return Box(start, side)


def _png(picture: ImageSpec, modules: list[bytearray], box: Box | None, logo: bytes) -> bytes:
    free = bytes(picture.margin)
    width = len(modules) + 2 * picture.margin
    rows = [bytes(width)] * picture.margin
    code = Image.frombytes("P", (width, width), b"".join([*rows, *(free + row + free for row in modules), *rows]))
    code.putpalette([*_parts(picture.background), *_parts(picture.foreground)])
    if box:
        code = code.convert("RGB")  # while it is small
    canvas = code.resize((width * picture.scale, width * picture.scale), Image.Resampling.NEAREST)
    if box:
        # Half a module stays free around the logo.
        side = max(1, (box.side - 1) * picture.scale)
        drawn = ImageOps.contain(Image.open(BytesIO(logo)).convert("RGBA"), (side, side))
        canvas.paste(drawn, ((canvas.width - drawn.width) // 2, (canvas.height - drawn.height) // 2), drawn)
    written = BytesIO()
    # Rows of equal pixels are what this strategy is for: it takes two thirds of the time.
    canvas.save(written, "PNG", compress_type=zlib.Z_RLE)
    return written.getvalue()


def _svg(picture: ImageSpec, modules: list[bytearray], box: Box | None, logo: bytes) -> bytes:
    margin, width = picture.margin, len(modules) + 2 * picture.margin
    size = width * picture.scale
    place = f'transform="translate({margin} {margin})"'
    image = ""
    if box:
        image = (
            f'<image {place} x="{box.start + 0.5}" y="{box.start + 0.5}" width="{box.side - 1}" '
            f'height="{box.side - 1}" href="data:image/png;base64,{base64.b64encode(logo).decode()}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {width} {width}">'
        f'<path fill="{picture.background}" d="M0 0h{width}v{width}H0z"/>'
        f'<path fill="{picture.foreground}" shape-rendering="crispEdges" {place} d="{_outline(modules)}"/>'
        f"{image}</svg>\n"
    ).encode()


def _outline(modules: list[bytearray]) -> str:
    """A bar for each run of dark modules."""
    bars = []
    for y, row in enumerate(modules):
        x = row.find(1)
        while x >= 0:
            end = row.find(0, x)
            end = len(row) if end < 0 else end
            bars.append(f"M{x} {y}h{end - x}v1h{x - end}z")
            x = row.find(1, end)
    return "".join(bars)


def _parts(colour: str) -> list[int]:
    return [int(part) for part in colour[len("rgb(") : -1].split(",")]
