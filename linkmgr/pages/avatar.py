"""/avatar/<username>.png: a picture drawn from the name alone, so that it does not tell who exists."""

import colorsys
import hashlib
import io
import re
from functools import lru_cache

from flask import Blueprint, Response, abort, request
from PIL import Image, ImageDraw, ImageFont, ImageOps

bp = Blueprint("avatar", __name__)

SIZE = 256  # pixels
_DRAWING = b"1"  # another one when avatars are drawn another way, since browsers keep them


def _initials(username: str) -> str:
    words = [word for word in re.split("[_.-]+", username) if word]
    return "".join(word[0] for word in words[:2]).upper() or username[0]


def _colour(hue: float, lightness: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(hue % 1, lightness, 0.55)
    return round(red * 255), round(green * 255), round(blue * 255)


@lru_cache(maxsize=256)
def _drawn(username: str) -> bytes:
    hue = hashlib.sha256(username.encode()).digest()[0] / 256
    shade = Image.linear_gradient("L").resize((SIZE, SIZE))
    image = ImageOps.colorize(shade, _colour(hue, 0.38), _colour(hue + 0.06, 0.29))
    font = ImageFont.load_default(SIZE * 0.42)
    middle = SIZE / 2
    ImageDraw.Draw(image).text((middle, middle), _initials(username), "white", font, anchor="mm", stroke_width=2)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


@bp.get("/avatar/<username>.png")
def draw(username: str) -> Response:
    if not re.fullmatch("[A-Za-z0-9_.-]{3,50}", username, re.ASCII):
        abort(404)
    name = username.lower()
    response = Response(mimetype="image/png")
    response.set_etag(hashlib.sha256(_DRAWING + name.encode()).hexdigest()[:32])
    response.cache_control.public = True
    response.cache_control.max_age = 86400
    response.make_conditional(request)
    if response.status_code == 200:  # noqa: PLR2004
        response.data = _drawn(name)
    return response
