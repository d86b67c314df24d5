"""Host names: the service's own, and branded domains with their root and not-found redirects.

Under any other host only health, metrics and the domain challenge respond. Otherwise links could redirect to
themselves through another name, and DNS rebinding would reach the API.
"""

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from flask import Flask, Response, g, redirect, render_template
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields.urls import is_ipv4, is_own_host, requested_host
from linkmgr.pages import loops
from linkmgr.repository import public
from linkmgr.settings import settings, this_app
from linkmgr.web.request import current

# First path segments that exist only on the service's own host. On branded domains PAGES
# redirect to redirect404, and PROGRAMS are a plain 404.
PAGES = ("login", "account", "avatar", "console", "user")
PROGRAMS = ("api", "healthz", "metrics")
_CHALLENGE = "probes.prove"  # responds on any host, before its domain is added
_UNKNOWN_HOST_ENDPOINTS = ("probes.healthz", "probes.scrape")
_NAME = re.compile(r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+")
_FILE_ENDPOINTS = ("static", "home.robots")


def init_app(app: Flask) -> None:
    """Call this before the other hooks are registered: auth would count requests to hosts that have no API."""
    app.extensions["linkmgr_netloc"] = urlsplit(settings().base_url).netloc.lower()
    app.before_request(_check_host)
    app.after_request(_not_found)


def host() -> str | None:
    return host_of(current().environ)


def host_of(environ: dict[str, Any]) -> str | None:
    """Return the requested host, or None if it is our own. It need not be a branded domain."""
    header: str = environ.get("HTTP_HOST", "")
    if header == this_app().extensions["linkmgr_netloc"]:
        return None
    name = requested_host(header)
    return None if is_own_host(name) else name


def requested_domain() -> Row | None:
    """Return the branded domain of the request, read at most once."""
    if "domain" not in g:
        name = host() or ""
        g.domain = public.branded_domain(name) if can_be_branded(name) else None
    domain: Row | None = g.domain
    return domain


def can_be_branded(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and not is_ipv4(name)


def _begins_with(words: tuple[str, ...]) -> bool:
    return current().path.split("/", 2)[1] in words


def _check_host() -> AnyResponse | str | None:
    request = current()
    name = host()
    request.has_foreign_host = name is not None
    if name is None or request.endpoint == _CHALLENGE:
        return None
    if request.endpoint == "short.visit" and request.method in ("GET", "HEAD") and can_be_branded(name):
        return None  # the statement for a short link reads the domain itself, and `_not_found` determines the error
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
    if _begins_with(PAGES + PROGRAMS):
        raise NotFound
    if current().path != "/":
        return None
    if domain["redirectroot"]:
        return _redirect(domain, "redirectroot")
    return render_template("branded_root.html", host=host())


def _redirect(domain: Row, member: str) -> AnyResponse:
    loops.refuse(domain[member], branded=domain["redirects_branded"])
    return redirect(domain[member], code=302)


def _not_found(response: Response) -> AnyResponse:
    if response.status_code != HTTPStatus.NOT_FOUND or host() is None or _begins_with(PROGRAMS):
        return response
    try:
        domain = requested_domain()
        if domain is None:
            raise AppError("unknown_host")
        return _redirect(domain, "redirect404") if domain["redirect404"] else response
    except AppError as error:  # Flask does not handle errors raised in after_request
        return this_app().make_response(this_app().handle_user_exception(error))
    except psycopg2.Error:  # keep the plain 404 page
        return response
