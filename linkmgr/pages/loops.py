"""Refuse redirects that would send a visitor in a circle through our own hosts.

Creates and updates refuse a target on a branded domain, but the target of a link can become one later: a link moves
onto a domain, or a domain is added. So an address on one of our hosts is followed before a visitor is sent there,
through what our pages would answer that visitor.
"""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from werkzeug.exceptions import HTTPException, NotFound

from linkmgr.fields.urls import is_own_host
from linkmgr.repository import public
from linkmgr.settings import this_app
from linkmgr.web.errors import AppError
from linkmgr.web.request import current

MAX_HOPS = 10

# Takes the branded host (None: our own) and the arguments of the view. Returns the address that the visitor is sent
# to, or None if there is a page. Raises NotFound if there is nothing.
Hop = Callable[..., str | None]
_hops: dict[str, Hop] = {}  # by endpoint


def hop(endpoint: str) -> Callable[[Hop], Hop]:
    """Register where the view of an endpoint sends a visitor."""

    def register(function: Hop) -> Hop:
        _hops[endpoint] = function
        return function

    return register


def refuse(address: str, *, branded: bool = True) -> None:
    """Raise redirect_loop if the address leads back to a place on the way, or further than MAX_HOPS.

    `branded=False` says that it is on no branded domain, which saves asking the database.
    """
    if not branded and not is_own_host(urlsplit(address).hostname or ""):
        return
    request = current()
    passed = {(urlsplit(f"//{request.host}").hostname, request.path)}
    for _ in range(MAX_HOPS):
        parts = urlsplit(address)
        place = parts.hostname or "", unquote(parts.path) or "/"
        if place in passed:
            raise AppError("redirect_loop")
        passed.add(place)
        onward = _onward(*place)
        if onward is None:
            return
        address = onward
    raise AppError("redirect_loop")


def _onward(host: str, path: str) -> str | None:
    """Return the address that our answer redirects to, or None if it is no redirect or not ours."""
    domain = None if is_own_host(host) else public.branded_domain(host)
    if not (domain or is_own_host(host)):
        return None
    if domain and path == "/":
        return domain["redirectroot"] or None
    try:
        endpoint, arguments = this_app().url_map.bind("").match(path)
        if endpoint not in _hops:
            raise NotFound  # taken for missing without a look, so that no circle through redirect404 is overlooked
        return _hops[endpoint](host if domain else None, **arguments)
    except HTTPException:
        return domain["redirect404"] or None if domain else None
