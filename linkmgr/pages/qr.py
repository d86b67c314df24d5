"""/qr/<code>: the picture of a QR code."""

import re

from flask import Blueprint, Response, request

from linkmgr.db.statements import Row
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import query_choice, query_text
from linkmgr.pages import branded
from linkmgr.qr import drawing
from linkmgr.qr import image as qr_image
from linkmgr.qr.cache import image_cache
from linkmgr.qr.image import ImageSpec
from linkmgr.repository import qr
from linkmgr.settings import settings
from linkmgr.web.errors import AppError

bp = Blueprint("qr_image", __name__)

# A picture is used inside of other pages.  Opened by itself, an SVG is a page, and may do nothing.
_POLICY = "default-src 'none'; img-src data:; sandbox"


@bp.get("/qr/<word:code>")
def image(code: str) -> Response:
    """A browser asks each time whether its picture is still right, so that an update is seen at once.  The
    answer to that needs neither the logo nor a drawing."""
    wanted = form(), pixels(query_text("size"))
    picture = _picture(code, qr.image_source(branded.host(), code, with_logo=False), *wanted)
    if request.if_none_match.contains_weak(picture.tag):
        return answer(picture, b"", status=304)
    drawn = image_cache().get(picture.tag)
    if drawn is None:
        # Read again, since the tag must be the one of this logo.
        found = qr.image_source(branded.host(), code, with_logo=True)
        picture = _picture(code, found, *wanted)
        drawn = draw(picture, found["logo"])
    return answer(picture, drawn)


def draw(picture: ImageSpec, logo: bytes | None) -> bytes:
    """Draw a picture, unless another request drew it while this one waited."""
    kept = image_cache()
    with drawing.exclusive():
        drawn = kept.get(picture.tag)
        if drawn is None:
            drawn = qr_image.render(picture, logo)
            kept.put(picture.tag, drawn)
    return drawn


def form() -> str:
    return query_choice("format", tuple(qr_image.FORMATS)) or "png"


def pixels(text: str | None) -> int:
    """Return the requested size."""
    if text is None:
        return qr_image.DEFAULT_SIZE
    size = int(text) if re.fullmatch("[1-9][0-9]{1,3}", text) else 0
    if not qr_image.MIN_SIZE <= size <= qr_image.MAX_SIZE:
        raise AppError(
            "invalid", problems=f"size must be a whole number from {qr_image.MIN_SIZE} to {qr_image.MAX_SIZE}"
        )
    return size


def _picture(code: str, found: Row, form: str, size: int) -> ImageSpec:
    payload = qr_data.payload(found["type"], found["data"], f"{settings().base_url}/q/{code}")
    return qr_image.image_spec(
        payload, found["foreground"], found["background"], found["logo_hash"], form=form, max_pixels=size
    )


def answer(picture: ImageSpec, drawn: bytes, status: int = 200) -> Response:
    response = Response(drawn, status, mimetype=qr_image.FORMATS[picture.format])
    response.set_etag(picture.tag)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Expires"] = "@1"  # the same to nginx, which would else not store it: long out of date
    response.headers["Content-Security-Policy"] = _POLICY
    return response
