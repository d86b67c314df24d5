"""Branded domains: the same public addresses under other hosts, and a root and a not-found page of their own.

A host that is neither ours nor branded, such as an address that a health check uses, is served as ours.
"""

import re
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urlsplit

import psycopg2
from flask import Flask, Response, g, redirect, render_template
from werkzeug.exceptions import BadRequest, NotFound
from werkzeug.wrappers import Response as AnyResponse

from linkmgr.addresses import is_address
from linkmgr.database import Row
from linkmgr.errors import Refusal
from linkmgr.incoming import current
from linkmgr.pages import loops
from linkmgr.repository import public
from linkmgr.settings import settings, this_app

# First words of the paths that exist under our own name only: for people, who are led on, and for programs.
PAGES = ("login", "account", "avatar")
PROGRAMS = ("api", "healthz", "metrics")
_HOST = re.compile(r"([a-z0-9.-]{1,253}?)\.?(?::[0-9]*)?", re.ASCII)


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_netloc"] = urlsplit(settings().base_url).netloc.lower()
    # In front of the gate, which would count a request to an API that does not exist on the host.
    app.before_request_funcs.setdefault(None, []).insert(0, _choose)
    app.after_request(_not_found)


def host() -> str | None:
    """The host that was asked for, unless it is our own or cannot be branded, as an address or `localhost`."""
    asked: str = current().environ.get("HTTP_HOST", "")
    if asked == this_app().extensions["linkmgr_netloc"]:
        return None
    found = _HOST.fullmatch(asked.lower())
    if not found or found[1] == settings().host or "." not in found[1] or is_address(found[1]):
        return None
    return found[1]


def _domain() -> Row | None:
    """The branded domain that was asked for, looked up where it matters only."""
    name = host()
    if name is None:
        return None
    if "domain" not in g:
        g.domain = public.branded(name)
    domain: Row | None = g.domain
    return domain


def _begins_with(words: tuple[str, ...]) -> bool:
    return current().path.split("/", 2)[1] in words


def _choose() -> AnyResponse | str | None:
    request = current()
    if isinstance(request.routing_exception, BadRequest):  # the host is no name, and nothing is served under it
        raise request.routing_exception
    if host() is None:
        return None
    ours = _begins_with(PAGES + PROGRAMS)
    domain = _domain() if ours or request.path == "/" else None
    if domain is None:
        return None
    if ours:
        raise NotFound
    if domain["redirectroot"]:
        return _redirect(domain, "redirectroot")
    return render_template("branded_root.html", host=host())


def _redirect(domain: Row, member: str) -> AnyResponse:
    loops.refuse(domain[member], branded=domain["redirects_branded"])
    return redirect(domain[member], code=302)


def _not_found(response: Response) -> AnyResponse:
    if response.status_code != HTTPStatus.NOT_FOUND or host() is None or _begins_with(PROGRAMS):
        return response
    with suppress(psycopg2.Error):  # then our own page has to do
        domain = _domain()
        if domain and domain["redirect404"]:
            try:
                return _redirect(domain, "redirect404")
            except Refusal as refusal:  # no handler is asked for what is raised here
                return this_app().make_response(this_app().handle_user_exception(refusal))
    return response
