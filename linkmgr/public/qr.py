import base64
import re
from collections.abc import Callable
from contextlib import suppress

from flask import Blueprint, Response, request

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import qr as qr_data
from linkmgr.core.fields.query import query_choice, query_text
from linkmgr.core.settings import settings
from linkmgr.core.web import pool
from linkmgr.public import branded
from linkmgr.qr import image as qr_image
from linkmgr.qr.image import FORMATS, ImageSpec
from linkmgr.repository import qr
from linkmgr.visits import scans

bp = Blueprint("qr_image", __name__)

# An SVG that is opened directly is a page, so this policy blocks everything but embedded images.
_POLICY = "default-src 'none'; img-src data:; sandbox"
_MAX_KEPT, _LARGEST_KEPT = 128, 64 << 10  # images; bytes of one: 8 MiB in a process
_kept: dict[str, bytes] = {}  # rendered images by tag


@bp.get("/qr/<code:code>")
def image(code: str) -> Response:
    """Return the image. Browsers revalidate it on each use, so that updates take effect
    immediately."""
    options = requested_format(), requested_size(query_text("size"))

    def read(*, with_logo: bool) -> tuple[ImageSpec, bytes | None]:
        row = qr.image_source(branded.host(), code, with_logo=with_logo)
        return _spec(code, row, *options), row.get("logo")

    # The code may change between the two reads, and the tag must match the logo.
    return _respond(read(with_logo=False)[0], lambda: read(with_logo=True))


def of_url(url: str, size: str | None) -> Response:
    form, pixels, scanned = requested_format(), requested_size(size), f"{url}?{scans.OWN}"
    spec = qr_image.image_spec(scanned, "rgb(0,0,0)", "rgb(255,255,255)", None, form=form, max_pixels=pixels)
    return _respond(spec, lambda: (spec, None))


def _respond(spec: ImageSpec, read: Callable[[], tuple[ImageSpec, bytes | None]]) -> Response:
    """Return the image, or 304 if the browser's copy is current. Only rendering needs what `read`
    returns."""
    is_current = request.if_none_match.contains_weak(spec.tag)
    content = b"" if is_current else _kept.get(spec.tag)
    if content is None:
        spec, logo = read()
        content = _render(spec, logo)
    response = Response(content, 304 if is_current else 200, mimetype=FORMATS[spec.format])
    response.set_etag(spec.tag)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Expires"] = "@1"  # let nginx store the image as expired and revalidate it
    response.headers["Content-Security-Policy"] = _POLICY
    return response


def _render(spec: ImageSpec, logo: bytes | None) -> bytes:
    pool.take_for_image()
    content = qr_image.render(spec, logo)
    if len(_kept) >= _MAX_KEPT:
        _kept.clear()
    if len(content) <= _LARGEST_KEPT:
        _kept[spec.tag] = content
    return content


def requested_format() -> str:
    return query_choice("format", tuple(FORMATS)) or "png"


def requested_size(text: str | None) -> int:
    if text is None:
        return qr_image.DEFAULT_SIZE
    size = int(text) if re.fullmatch("[1-9][0-9]{1,3}", text) else 0
    if not qr_image.MIN_SIZE <= size <= qr_image.MAX_SIZE:
        raise AppError(
            "invalid", problems=f"size must be a whole number from {qr_image.MIN_SIZE} to {qr_image.MAX_SIZE}"
        )
    return size


def thumbnail(code: str, row: Row) -> str:
    """Return a small PNG without the logo as a data URI, or "" if too many requests take long. The
    browser would request all images of a list at once, most of which would be refused."""
    payload = qr_data.payload(row["type"], row["data"], f"{settings().base_url}/q/{code}")
    with suppress(AppError):
        return _data_uri(qr_image.smallest(payload, row["foreground"], row["background"]), "png")
    return ""


def preview(code: str, row: Row, logo: bytes | None) -> str:
    spec = _spec(code, row | {"logo_hash": b"" if logo else None}, "svg", qr_image.DEFAULT_SIZE)
    return _data_uri(qr_image.render(spec, logo), "svg")


def _data_uri(image: bytes, form: str) -> str:
    return f"data:{FORMATS[form]};base64,{base64.b64encode(image).decode()}"


def _spec(code: str, row: Row, form: str, size: int) -> ImageSpec:
    payload = qr_data.payload(row["type"], row["data"], f"{settings().base_url}/q/{code}")
    return qr_image.image_spec(
        payload, row["foreground"], row["background"], row["logo_hash"], form=form, max_pixels=size
    )
