"""Refuse redirects that would send a visitor in a loop through our own hosts.

Creates and updates refuse a target on a branded domain, but the target of a link can become one
later: a link moves onto a domain, or a domain is added. Before a visitor is redirected to a URL on
one of our hosts, the redirects that our pages would return are therefore followed.
"""

import posixpath
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from werkzeug.exceptions import HTTPException, NotFound

from linkmgr.core.errors import AppError
from linkmgr.core.fields.urls import is_own_host
from linkmgr.core.settings import this_app
from linkmgr.core.web.host import hosts
from linkmgr.core.web.request import current
from linkmgr.repository import branded_domains

MAX_HOPS = 10
View = TypeVar("View", bound=Callable[..., Any])


def hop(target: Callable[..., str | None]) -> Callable[[View], View]:
    """State where a view redirects: `target` is a function of the branded host, or None for our
    own, and of the arguments of the view. It returns the URL, or None if the view renders a page,
    and raises the errors of the view."""

    def mark(view: View) -> View:
        view.hop = target  # type: ignore[attr-defined]
        return view

    return mark


def is_on_our_hosts(url: str, *, branded: bool) -> bool:
    return branded or is_own_host(urlsplit(url).hostname or "")


def refuse(url: str, *, branded: bool = True) -> None:
    """Raise redirect_loop if the redirects form a loop or exceed MAX_HOPS. `branded=False` means
    that the URL is not on a branded domain, which saves a query."""
    if not is_on_our_hosts(url, branded=branded):
        return
    request = current()
    visited = {(urlsplit(f"//{request.host}").hostname, request.path)}
    for _ in range(MAX_HOPS):
        page = _page(url)
        if page in visited:
            raise AppError("redirect_loop")
        visited.add(page)
        location = _location(*page)
        if location is None:
            return
        url = location
    raise AppError("redirect_loop")


def _page(url: str) -> tuple[str, str]:
    """Return host and path of the request for a URL. Browsers remove `.` and `..` from the path,
    also encoded ones."""
    parts = urlsplit(url)
    path = unquote(parts.path) or "/"
    return parts.hostname or "", posixpath.normpath(path) if "/." in path else path


def _location(host: str, path: str) -> str | None:
    domain = None if is_own_host(host) else branded_domains.read(host)
    if not (domain or is_own_host(host)):
        return None
    if domain and path == "/":
        return domain["redirectroot"] or None
    try:
        endpoint, arguments = hosts().paths(path, is_own=domain is None).match()
        target: Callable[..., str | None] | None = getattr(this_app().view_functions[endpoint], "hop", None)
        if target is None:
            raise NotFound  # assume a 404, so that no loop through redirect404 is missed
        return target(host if domain else None, **arguments)
    except (HTTPException, AppError) as error:
        is_disabled = isinstance(error, AppError) and error.status == HTTPStatus.GONE
        return domain["redirect404"] or None if domain and not is_disabled else None
