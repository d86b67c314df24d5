"""The picture of a QR code, as PNG or SVG: whole pixels a module, centred, exactly as large as it was asked for.

Equal input gives equal bytes, which is what the ETag stands for.
"""

import base64
import hashlib
from io import BytesIO
from typing import NamedTuple

import PIL
import segno
from PIL import Image, ImageOps

from linkmgr.errors import Refusal

SMALLEST, LARGEST, DEFAULT = 64, 4096, 400  # pixels
FORMATS = {"png": "image/png", "svg": "image/svg+xml"}
_QUIET = 4  # modules that stay free on each side where there is room, as the standard has it
_LOGO_SHARE = 0.25  # of the side; error correction H restores far more than the 1/16 that this covers
# Whoever changes the drawing counts this up, so that nobody keeps an old picture.
_DRAWN_BY = f"1 segno {segno.__version__} Pillow {PIL.__version__}"


class Picture(NamedTuple):
    """All that a picture depends on."""

    payload: str
    foreground: str
    background: str
    logo_hash: bytes | None
    format: str
    size: int

    @property
    def tag(self) -> str:
        return hashlib.sha256(repr((_DRAWN_BY, *self)).encode()).hexdigest()[:32]


class Box(NamedTuple):
    """Where the logo is, in modules: the place that is kept free for it."""

    start: int
    side: int


def draw(picture: Picture, logo: bytes | None) -> bytes:
    modules = _modules(picture.payload, "h" if logo else "m")
    width = len(modules)
    # One free module on each side is the least that readers find a code by.
    if picture.size < width + 2:
        raise Refusal("invalid", problems=f"size must be at least {width + 2} for what this code holds")
    scale = max(1, picture.size // (width + 2 * _QUIET))
    box = _clear_box(modules) if logo else None
    return (_svg if picture.format == "svg" else _png)(picture, modules, scale, box, logo or b"")


def _modules(payload: str, correction: str) -> list[bytearray]:
    """Rows of 1 for dark and 0 for light."""
    code = segno.make(payload, error=correction, micro=False, encoding="utf-8")
    return [bytearray(row) for row in code.matrix]


def _clear_box(modules: list[bytearray]) -> Box:
    width = len(modules)
    side = int(width * _LOGO_SHARE)
    side -= 1 - side % 2  # odd, as every code's width is, so that it can be in the middle
    start = (width - side) // 2
    for row in modules[start : start + side]:
        row[start : start + side] = bytes(side)
    return Box(start, side)


def _png(picture: Picture, modules: list[bytearray], scale: int, box: Box | None, logo: bytes) -> bytes:
    width, size = len(modules), picture.size
    offset = (size - width * scale) // 2
    canvas = Image.new("P", (size, size), 0)
    canvas.putpalette([*_parts(picture.background), *_parts(picture.foreground)])
    code = Image.frombytes("P", (width, width), b"".join(modules))
    canvas.paste(code.resize((width * scale, width * scale), Image.Resampling.NEAREST), (offset, offset))
    if box:
        canvas = canvas.convert("RGB")
        # Half a module stays free around the logo.
        side = max(1, (box.side - 1) * scale)
        drawn = ImageOps.contain(Image.open(BytesIO(logo)).convert("RGBA"), (side, side))
        canvas.paste(drawn, ((size - drawn.width) // 2, (size - drawn.height) // 2), drawn)
    written = BytesIO()
    canvas.save(written, "PNG")
    return written.getvalue()


def _svg(picture: Picture, modules: list[bytearray], scale: int, box: Box | None, logo: bytes) -> bytes:
    size = picture.size
    offset = (size - len(modules) * scale) // 2
    place = f'transform="translate({offset} {offset}) scale({scale})"'
    image = ""
    if box:
        image = (
            f'<image {place} x="{box.start + 0.5}" y="{box.start + 0.5}" width="{box.side - 1}" '
            f'height="{box.side - 1}" href="data:image/png;base64,{base64.b64encode(logo).decode()}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}">'
        f'<path fill="{picture.background}" d="M0 0h{size}v{size}H0z"/>'
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
