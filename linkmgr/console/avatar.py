"""/avatar/<username>.png: the initials of a user. /avatar/bio/<name>.png: those of the name of a
bio page."""

import colorsys
import hashlib
import io
import re
from functools import lru_cache

from flask import Blueprint, Response, abort, request
from PIL import Image, ImageDraw, ImageFont, ImageOps

from linkmgr.core.web import pool
from linkmgr.repository import public

bp = Blueprint("avatar", __name__)

_NAME = re.compile("[A-Za-z0-9_.-]{3,50}", re.ASCII)
SIZE = 256  # pixels
_VERSION = b"1"  # part of the ETag: increment when the drawing changes, because browsers cache avatars


def _initials(username: str) -> str:
    words = [word for word in re.split("[_.-]+", username) if word]
    return "".join(word[0] for word in words[:2]).upper() or username[0]


def _color(hue: float, lightness: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(hue % 1, lightness, 0.55)
    return round(red * 255), round(green * 255), round(blue * 255)


@lru_cache(maxsize=256)
def _render(username: str) -> bytes:
    pool.take_for_image()
    hue = hashlib.sha256(username.encode()).digest()[0] / 256
    gradient = Image.linear_gradient("L").resize((SIZE, SIZE))
    image = ImageOps.colorize(gradient, _color(hue, 0.38), _color(hue + 0.06, 0.29))
    font = ImageFont.load_default(SIZE * 0.42)
    ImageDraw.Draw(image).text(
        (SIZE / 2, SIZE / 2), _initials(username), "white", font, anchor="mm", stroke_width=2
    )
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


@bp.get("/avatar/<username>.png")
def show(username: str) -> Response:
    if not (_NAME.fullmatch(username) and public.is_username(username)):
        abort(404)
    return _respond(username)


@bp.get("/avatar/bio/<name>.png")
def show_for_bio(name: str) -> Response:
    if not _NAME.fullmatch(name):
        abort(404)
    return _respond(name)


def _respond(name: str) -> Response:
    name = name.lower()
    response = Response(mimetype="image/png")
    response.set_etag(hashlib.sha256(_VERSION + name.encode()).hexdigest()[:32])
    response.cache_control.public = True
    response.cache_control.max_age = 86400
    response.make_conditional(request)
    if response.status_code == 200:  # noqa: PLR2004
        response.data = _render(name)
    return response
