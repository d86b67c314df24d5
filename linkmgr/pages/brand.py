"""Name, logo, accent color and footer of the operator. Pages of branded domains show none of them."""

import hashlib
import re
from typing import NamedTuple

from flask import Blueprint, Flask, Response, abort, request

from linkmgr.fields import colors
from linkmgr.pages import branded
from linkmgr.settings import PREFIX, InvalidSetting, settings, this_app

bp = Blueprint("brand", __name__, url_prefix="/static/brand")  # no alias can begin with "static"

_MAX_LOGO = 256 * 1024  # bytes
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/svg+xml": re.compile(rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>]", re.DOTALL),
}
# An SVG file is a document that may contain scripts. Opened directly, it must not get our origin.
_LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_MIN_CONTRAST = 4.5
# Colors of style.css: the darkest light surface and the lightest dark one, and the text on the accent color.
_LIGHT, _DARK, _WHITE, _BLACK, _DARK_TEXT = "#f5f6fa", "#171a23", "#ffffff", "#000000", "#10131c"
_STYLE = """\
:root { --accent: %s; --accent-hover: %s; --on-accent: #ffffff; --glow: rgb(%s / 14%%); }
@media (prefers-color-scheme: dark) {
  :root { --accent: %s; --accent-hover: %s; --on-accent: #10131c; --glow: rgb(%s / 16%%); }
}
"""


class File(NamedTuple):
    """A file of the brand. The path contains a digest, so that browsers notice a change."""

    path: str
    content: bytes
    mimetype: str


class Brand(NamedTuple):
    name: str
    footer: str
    logo: File | None
    style: File | None

    @property
    def icon(self) -> str:
        return self.logo.path if self.logo else "/static/icon.svg"


def _file(name: str, content: bytes, mimetype: str) -> File:
    return File(f"/static/brand/{name}?v={hashlib.sha256(content).hexdigest()[:8]}", content, mimetype)


def _logo(name: str) -> File:
    path = settings().folder / name
    try:
        content = path.read_bytes() if path.name == name and path.stat().st_size <= _MAX_LOGO else b""
    except (OSError, ValueError):
        content = b""
    for mimetype, signature in _SIGNATURES.items():
        if signature.match(content):
            return _file("logo", content, mimetype)
    raise InvalidSetting(
        f"{PREFIX}LOGO must be the name of a PNG, JPEG or SVG file of at most {_MAX_LOGO >> 10} KiB in the data folder."
    )


def _contrast(first: str, second: str) -> float:
    return colors.contrast(colors.parts_of(first), colors.parts_of(second))


def _mixed(color: str, other: str, share: float) -> str:
    pairs = zip(colors.parts_of(color), colors.parts_of(other), strict=True)
    return "#" + "".join(f"{round(own + (added - own) * share):02x}" for own, added in pairs)


def _for_dark_pages(color: str) -> str:
    """Lighten a color until it can be read on dark pages."""
    return next(
        light for step in range(21) if _contrast(light := _mixed(color, _WHITE, step / 20), _DARK) >= _MIN_CONTRAST
    )


def _style(accent: str) -> File:
    light, *others = accent.lower().replace(",", " ").split()
    dark = others[0] if others else _for_dark_pages(light)
    for color, surface, change, pages in ((light, _LIGHT, "darker", "light"), (dark, _DARK, "lighter", "dark")):
        if (contrast := _contrast(color, surface)) < _MIN_CONTRAST:
            raise InvalidSetting(
                f"{PREFIX}ACCENT must be {change}: on {pages} pages, {color} has a contrast of {contrast:.1f} to 1 and "
                f"needs {_MIN_CONTRAST} to 1."
            )
    values = [
        value
        for color, other in ((light, _BLACK), (dark, _WHITE))
        for value in (color, _mixed(color, other, 0.2), " ".join(map(str, colors.parts_of(color))))
    ]
    return _file("accent.css", (_STYLE % tuple(values)).encode(), "text/css")


def current() -> Brand | None:
    """Return the brand, or None on branded domains and unknown hosts."""
    if branded.host():
        return None
    brand: Brand = this_app().extensions["linkmgr_brand"]
    return brand


def init_app(app: Flask) -> None:
    chosen = settings()
    app.extensions["linkmgr_brand"] = Brand(
        chosen.name,
        chosen.footer,
        _logo(chosen.logo) if chosen.logo else None,
        _style(chosen.accent) if chosen.accent else None,
    )
    app.context_processor(lambda: {"brand": current()})


def respond(file: File | None) -> Response:
    if file is None:
        abort(404)
    response = Response(file.content, mimetype=file.mimetype)
    response.cache_control.public, response.cache_control.max_age = True, 86400
    response.headers["Content-Security-Policy"] = _LOGO_POLICY
    response.add_etag()
    response.make_conditional(request)
    return response


@bp.get("/logo")
def logo() -> Response:
    brand = current()
    return respond(brand and brand.logo)


@bp.get("/accent.css")
def style() -> Response:
    brand = current()
    return respond(brand and brand.style)
