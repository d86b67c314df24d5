"""Images of QR codes, as PNG, SVG or PDF, with whole pixels per module and at most as large as
requested.

Equal input gives equal bytes, as the ETag requires.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import PIL
import segno
from PIL import Image, ImageOps

from linkmgr.core.errors import AppError
from linkmgr.core.fields.colors import parts_of
from linkmgr.core.web import pool
from linkmgr.qr import pdf

MIN_SIZE, MAX_SIZE, DEFAULT_SIZE = 64, 2048, 400  # pixels
FORMATS = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
_QUIET_ZONE = 4  # light modules on each side, as the standard requires, if the size allows
_BLOCK = 8  # pixels; common decoders compare blocks of this size and fail if modules have the same size
_POINTS = 0.75  # of a pixel in a PDF: there are 72 to the inch, and 96 pixels as in browsers
_LOGO_SHARE = 0.25  # of the width: 1/16 of the area, far less than error correction H restores
# Increase the number when the rendering changes, so that browsers do not use their copies.
_RENDERER = f"2 segno {segno.__version__} Pillow {PIL.__version__}"


class ImageSpec(NamedTuple):
    payload: str
    foreground: str
    background: str
    logo_hash: bytes | None
    format: str
    scale: int  # pixels per module
    margin: int  # light modules on each side

    @property
    def tag(self) -> str:
        return hashlib.sha256(repr((_RENDERER, *self)).encode()).hexdigest()[:32]


class Box(NamedTuple):
    """The square for the logo, in modules."""

    start: int
    side: int


def image_spec(
    payload: str, foreground: str, background: str, logo_hash: bytes | None, *, form: str, max_pixels: int
) -> ImageSpec:
    """Return the largest image with whole pixels per module that fits the size."""
    width = len(_code(payload, _correction(logo_hash)))
    # Readers need at least one light module on each side.
    if max_pixels < width + 2:
        raise AppError(
            "invalid", problems=f"size must be at least {width + 2} pixels for the data of this code"
        )
    scale = max(1, max_pixels // (width + 2 * _QUIET_ZONE))
    scale -= scale % _BLOCK == 0
    margin = min(_QUIET_ZONE, (max_pixels - width) // 2)
    return ImageSpec(payload, foreground, background, logo_hash, form, scale, margin)


def smallest(payload: str, foreground: str, background: str) -> bytes:
    return render(ImageSpec(payload, foreground, background, None, "png", 1, _QUIET_ZONE), None)


def render(spec: ImageSpec, logo: bytes | None) -> bytes:
    modules = [bytearray(row) for row in _code(spec.payload, _correction(spec.logo_hash))]
    box = _clear_box(modules) if logo else None
    return {"png": _png, "svg": _svg, "pdf": _pdf}[spec.format](spec, modules, box, logo or b"")


def _correction(logo_hash: bytes | None) -> str:
    return "m" if logo_hash is None else "h"


@lru_cache(maxsize=128)
def _code(payload: str, correction: str) -> tuple[bytes, ...]:
    """Return the rows of the code. A byte is 1 for a dark module, 0 for a light one."""
    pool.take_for_image()
    code = segno.make(payload, error=correction, micro=False, encoding="utf-8")
    return tuple(bytes(row) for row in code.matrix)


def _clear_box(modules: list[bytearray]) -> Box:
    width = len(modules)
    side = int(width * _LOGO_SHARE)
    side -= 1 - side % 2  # odd, like the width of every code, so that it can be centered
    start = (width - side) // 2
    for row in modules[start : start + side]:
        row[start : start + side] = bytes(side)
    return Box(start, side)


def _png(spec: ImageSpec, modules: list[bytearray], box: Box | None, logo: bytes) -> bytes:
    quiet_zone = bytes(spec.margin)
    width = len(modules) + 2 * spec.margin
    empty_rows = [bytes(width)] * spec.margin
    rows = [*empty_rows, *(quiet_zone + row + quiet_zone for row in modules), *empty_rows]
    code = Image.frombytes("P", (width, width), b"".join(rows))
    code.putpalette([*parts_of(spec.background), *parts_of(spec.foreground)])
    if box:
        code = code.convert("RGB")  # before the resize, while the image is small
    canvas = code.resize((width * spec.scale, width * spec.scale), Image.Resampling.NEAREST)
    if box:
        # Leave half a module free around the logo.
        side = max(1, (box.side - 1) * spec.scale)
        scaled = ImageOps.contain(Image.open(BytesIO(logo)).convert("RGBA"), (side, side))
        canvas.paste(
            scaled, ((canvas.width - scaled.width) // 2, (canvas.height - scaled.height) // 2), scaled
        )
    output = BytesIO()
    # Run-length encoding suits rows of equal pixels and takes two thirds of the time.
    canvas.save(output, "PNG", compress_type=zlib.Z_RLE)
    return output.getvalue()


def _svg(spec: ImageSpec, modules: list[bytearray], box: Box | None, logo: bytes) -> bytes:
    margin, width = spec.margin, len(modules) + 2 * spec.margin
    size = width * spec.scale
    transform = f'transform="translate({margin} {margin})"'
    image = ""
    if box:
        image = (
            f'<image {transform} x="{box.start + 0.5}" y="{box.start + 0.5}" width="{box.side - 1}" '
            f'height="{box.side - 1}" href="data:image/png;base64,{base64.b64encode(logo).decode()}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {width} {width}">'
        f'<path fill="{spec.background}" d="M0 0h{width}v{width}H0z"/>'
        f'<path fill="{spec.foreground}" shape-rendering="crispEdges" {transform} d="{_outline(modules)}"/>'
        f"{image}</svg>\n"
    ).encode()


def _pdf(spec: ImageSpec, modules: list[bytearray], box: Box | None, logo: bytes) -> bytes:
    """Return a file with one page, the code as shapes, so that it prints sharply in any size."""
    width, module = len(modules) + 2 * spec.margin, spec.scale * _POINTS
    front, back = (
        " ".join(f"{part / 255:.4f}" for part in parts_of(color))
        for color in (spec.foreground, spec.background)
    )
    # The y axis of PDF points up.
    shapes = [
        f"{module} 0 0 {-module} 0 {width * module} cm",
        f"{back} rg 0 0 {width} {width} re f",
        f"{front} rg",
    ]
    shapes += [f"{x + spec.margin} {y + spec.margin} {length} 1 re" for x, y, length in _bars(modules)]
    shapes.append("f")
    picture = None
    if box:
        picture = Image.open(BytesIO(logo)).convert("RGBA")
        across, down = (side / max(picture.size) * (box.side - 1) for side in picture.size)
        x, y = (spec.margin + box.start + (box.side - length) / 2 for length in (across, down))
        shapes.append(f"{across:.4f} 0 0 {-down:.4f} {x:.4f} {y + down:.4f} cm /Logo Do")
    return pdf.page(width * module, "\n".join(shapes).encode(), picture)


def _outline(modules: list[bytearray]) -> str:
    return "".join(f"M{x} {y}h{length}v1h-{length}z" for x, y, length in _bars(modules))


def _bars(modules: list[bytearray]) -> Iterator[tuple[int, int, int]]:
    for y, row in enumerate(modules):
        x = row.find(1)
        while x >= 0:
            end = row.find(0, x)
            end = len(row) if end < 0 else end
            yield x, y, end - x
            x = row.find(1, end)
