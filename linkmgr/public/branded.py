"""Branded domains with their root and not-found redirects. The brand of each host: name, logo and
accent color, and the footer of the operator, of whom pages of branded domains show nothing.

Under any other host only health, metrics and the domain challenge respond. Otherwise links could
redirect to themselves through another name, and DNS rebinding would reach the API.
"""

import hashlib
import re
from contextlib import suppress
from typing import NamedTuple

import psycopg2
from flask import Blueprint, Flask, Response, abort, g, redirect, render_template
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from linkmgr.core.database import service
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import colors
from linkmgr.core.fields.urls import is_ipv4
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import PREFIX, InvalidSetting, settings, this_app
from linkmgr.core.web.request import current
from linkmgr.public import loops
from linkmgr.repository import branded_domains

bp = Blueprint("brand", __name__, url_prefix="/static/brand")  # no alias can begin with "static"

# First path segments that exist only on the service's own host. Branded domains have no routes of
# PAGES, so that links may have these words. PROGRAMS are a plain 404 there, instead of redirecting
# to redirect404.
PAGES = ("login", "account", "avatar", "console", "user", "api", "c", "statistics", "docs", "openapi.json")
PROGRAMS = ("api", "healthz", "metrics")
_CHALLENGE = "probes.prove"  # responds on any host, before its domain is added
_UNKNOWN_HOST_ENDPOINTS = ("probes.healthz", "probes.scrape")
_NAME = re.compile(r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+")
_FILE_ENDPOINTS = ("static", "home.robots")


class OwnBrand(NamedTuple):
    """The brand of our own host."""

    logo: tuple[bytes, str] | None  # with its media type
    style: bytes | None
    shown: Row  # to templates


def init_app(app: Flask) -> None:
    chosen = settings()
    logo = _read_logo(chosen.logo) if chosen.logo else None
    style = _style(chosen.accent) if chosen.accent else None
    shown = {
        "name": chosen.name,
        "footer": chosen.footer,
        "icon": _url("logo", _digest(logo[0])) if logo else "/static/icon.svg",
        "style": _url("accent.css", _digest(style)) if style else "",
        "is_ours": True,
    }
    app.extensions["linkmgr_brand"] = OwnBrand(logo, style, shown)
    app.jinja_env.globals["base_url"] = chosen.base_url
    app.context_processor(lambda: {"brand": current_brand()})


def _own_brand() -> OwnBrand:
    brand: OwnBrand = this_app().extensions["linkmgr_brand"]
    return brand


def host() -> str | None:
    """Return the requested host, or None if it is our own. It need not be a branded domain."""
    return current().foreign_host


def requested_domain() -> Row | None:
    if "domain" not in g:
        name = host() or ""
        g.domain = branded_domains.read(name) if can_be_branded(name) else None
    domain: Row | None = g.domain
    return domain


def can_be_branded(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and not is_ipv4(name)


def _begins_with(words: tuple[str, ...]) -> bool:
    return current().path.split("/", 2)[1] in words


def answer_host() -> AnyResponse | str | None:
    """Answer a request to a foreign host, or return None if a route answers it."""
    request = current()
    name = request.foreign_host
    if name is None or request.endpoint == _CHALLENGE:
        return None
    if request.endpoint == "short.visit" and request.method in ("GET", "HEAD") and can_be_branded(name):
        return None  # the statement for a short link reads the domain itself, and `missing_page` determines the error
    if request.endpoint == "probes.healthz":
        service.check()  # has a deadline, which the look-up of the domain has not
    try:
        domain = requested_domain()
    except psycopg2.Error:
        if request.endpoint in _FILE_ENDPOINTS:  # error pages need the style sheet
            return None
        raise
    if domain is None:
        if request.endpoint in _UNKNOWN_HOST_ENDPOINTS:
            return None
        raise AppError("unknown_host")
    return _serve_branded(domain)


def _serve_branded(domain: Row) -> AnyResponse | str | None:
    if _begins_with(PROGRAMS):
        raise NotFound
    if current().path != "/":
        return None
    if domain["redirectroot"]:
        return _redirect(domain, "redirectroot")
    return render_template("branded_root.html", host=host())


def _redirect(domain: Row, member: str) -> AnyResponse:
    loops.refuse(domain[member], branded=domain["redirects_branded"])
    return redirect(domain[member], code=302)


def missing_page() -> AnyResponse | None:
    """Return the redirect of a foreign host for paths that it does not have, or None if it has
    none, as our own host."""
    if _begins_with(PROGRAMS):
        return None
    if host() is None:
        is_wide = "widealiases" in settings().aliases
        hooks().count_missing_path(current().environ, None, current().path, can_be_wide=is_wide)
        return None
    try:
        domain = requested_domain()
    except psycopg2.Error:  # keep the plain 404 page
        return None
    if domain is None:
        raise AppError("unknown_host")
    hooks().count_missing_path(
        current().environ, domain["id"], current().path, can_be_wide=domain["widealiases"]
    )
    return _redirect(domain, "redirect404") if domain["redirect404"] else None


# --- the brand

_MAX_LOGO = 256 * 1024  # bytes
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/svg+xml": re.compile(
        rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*+<svg[\s>]", re.DOTALL
    ),
}
# An SVG file is a document that may contain scripts. Opened directly, it must not get our origin.
_LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def _url(name: str, version: str) -> str:
    return f"{bp.url_prefix}/{name}?v={version}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def _read_logo(name: str) -> tuple[bytes, str]:
    path = settings().folder / name
    try:
        content = path.read_bytes() if path.name == name and path.stat().st_size <= _MAX_LOGO else b""
    except (OSError, ValueError):
        content = b""
    for mimetype, signature in _SIGNATURES.items():
        if signature.match(content):
            return content, mimetype
    raise InvalidSetting(
        f"{PREFIX}LOGO must be the name of a PNG, JPEG or SVG file of at most {_MAX_LOGO >> 10} "
        "KiB in the data folder."
    )


def _style(accent: str) -> bytes:
    pair = accent.lower().replace(",", " ").split()[:2]
    if problem := colors.accent_problem(*pair):
        raise InvalidSetting(f"{PREFIX}ACCENT {problem}.")
    return colors.accent_style(*pair)


def current_brand() -> Row | None:
    """Return the brand of the operator or of the branded domain, or None if the domain has none,
    and on unknown hosts.

    The URLs of the icon and the style sheet are empty for a domain without a logo or without a
    color.
    """
    if not host():
        return _own_brand().shown
    domain = None
    with suppress(psycopg2.Error):  # the page that reports the error needs no brand
        domain = requested_domain()
    if not domain or not (domain["brandname"] or domain["logo_digest"] or domain["brandcolor"]):
        return None
    return {
        "name": domain["brandname"] or current().host,
        "icon": _url("logo", domain["logo_digest"]) if domain["logo_digest"] else "",
        "style": _url("accent.css", domain["brandcolor"][1:]) if domain["brandcolor"] else "",
    }


def own_logo() -> Response | None:
    name, logo = host(), _own_brand().logo
    if name is not None:
        domain = requested_domain()
        content = branded_domains.logo(name) if domain and domain["logo_digest"] else None
        logo = (content, "image/png") if content else None
    return _respond(*logo) if logo else None


def _respond(content: bytes, mimetype: str) -> Response:
    response = Response(content, mimetype=mimetype)
    response.cache_control.public, response.cache_control.max_age = True, 86400
    response.headers["Content-Security-Policy"] = _LOGO_POLICY
    response.add_etag()
    response.make_conditional(current())
    return response


@bp.get("/logo")
def logo() -> Response:
    return own_logo() or abort(404)


@bp.get("/accent.css")
def style() -> Response:
    content = _own_brand().style
    if host() is not None:
        domain = requested_domain()
        content = colors.accent_style(domain["brandcolor"]) if domain and domain["brandcolor"] else None
    if content is None:
        abort(404)
    return _respond(content, "text/css")
