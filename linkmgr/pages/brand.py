"""Name, logo, accent color and footer of the operator, and the name, logo and color of a branded domain.

Pages of branded domains show nothing of the operator.
"""

import hashlib
import re
from contextlib import suppress
from typing import NamedTuple

import psycopg2
from flask import Blueprint, Flask, Response, abort, request

from linkmgr.fields import colors
from linkmgr.pages import branded
from linkmgr.repository import public
from linkmgr.settings import PREFIX, InvalidSetting, settings, this_app
from linkmgr.web import request as web_request

bp = Blueprint("brand", __name__, url_prefix="/static/brand")  # no alias can begin with "static"

_MAX_LOGO = 256 * 1024  # bytes
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/svg+xml": re.compile(rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*+<svg[\s>]", re.DOTALL),
}
# An SVG file is a document that may contain scripts. Opened directly, it must not get our origin.
_LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class Brand(NamedTuple):
    """The URLs of the icon and the style sheet are empty for a domain without a logo or without a color."""

    name: str
    footer: str
    icon: str
    style: str
    is_ours: bool


def _url(name: str, version: str) -> str:
    """Return the URL of a file. Browsers notice a change by its version."""
    return f"{bp.url_prefix}/{name}?v={version}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def _read_logo(name: str) -> tuple[bytes, str]:
    """Return the logo of the operator and its type."""
    path = settings().folder / name
    try:
        content = path.read_bytes() if path.name == name and path.stat().st_size <= _MAX_LOGO else b""
    except (OSError, ValueError):
        content = b""
    for mimetype, signature in _SIGNATURES.items():
        if signature.match(content):
            return content, mimetype
    raise InvalidSetting(
        f"{PREFIX}LOGO must be the name of a PNG, JPEG or SVG file of at most {_MAX_LOGO >> 10} KiB in the data folder."
    )


def _style(accent: str) -> bytes:
    pair = accent.lower().replace(",", " ").split()[:2]
    if problem := colors.accent_problem(*pair):
        raise InvalidSetting(f"{PREFIX}ACCENT {problem}.")
    return colors.accent_style(*pair)


def current() -> Brand | None:
    """Return the brand of the operator or of the branded domain, or None if the domain has none, and on unknown hosts.

    Pages that are rendered at the start have no domain.
    """
    if not branded.host():
        brand: Brand = this_app().extensions["linkmgr_brand"]
        return brand
    domain = None
    if web_request.current().has_foreign_host:
        with suppress(psycopg2.Error):  # the page that reports the error needs no brand
            domain = branded.requested_domain()
    if not domain or not (domain["brandname"] or domain["logo_digest"] or domain["brandcolor"]):
        return None
    return Brand(
        domain["brandname"] or web_request.current().host,
        "",
        _url("logo", domain["logo_digest"]) if domain["logo_digest"] else "",
        _url("accent.css", domain["brandcolor"][1:]) if domain["brandcolor"] else "",
        is_ours=False,
    )


def init_app(app: Flask) -> None:
    chosen = settings()
    logo = _read_logo(chosen.logo) if chosen.logo else None
    style = _style(chosen.accent) if chosen.accent else None
    app.extensions["linkmgr_brand_files"] = logo, style
    app.extensions["linkmgr_brand"] = Brand(
        chosen.name,
        chosen.footer,
        _url("logo", _digest(logo[0])) if logo else "/static/icon.svg",
        _url("accent.css", _digest(style)) if style else "",
        is_ours=True,
    )
    app.context_processor(lambda: {"brand": current()})


def own_logo() -> Response | None:
    """Return the logo of the operator or of the branded domain, or None if there is none."""
    name, (logo, _) = branded.host(), this_app().extensions["linkmgr_brand_files"]
    if name is not None:
        domain = branded.requested_domain()
        content = public.domain_logo(name) if domain and domain["logo_digest"] else None
        logo = (content, "image/png") if content else None
    return _respond(*logo) if logo else None


def _respond(content: bytes, mimetype: str) -> Response:
    response = Response(content, mimetype=mimetype)
    response.cache_control.public, response.cache_control.max_age = True, 86400
    response.headers["Content-Security-Policy"] = _LOGO_POLICY
    response.add_etag()
    response.make_conditional(request)
    return response


@bp.get("/logo")
def logo() -> Response:
    return own_logo() or abort(404)


@bp.get("/accent.css")
def style() -> Response:
    _, content = this_app().extensions["linkmgr_brand_files"]
    if branded.host() is not None:
        domain = branded.requested_domain()
        content = colors.accent_style(domain["brandcolor"]) if domain and domain["brandcolor"] else None
    if content is None:
        abort(404)
    return _respond(content, "text/css")
