"""The host of a request: our own, or a foreign one, which need not be a branded domain; and the
routes of each."""

from functools import lru_cache
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from flask import Flask
from werkzeug.routing import Map

from linkmgr.core.fields.urls import is_own_host, requested_host
from linkmgr.core.settings import settings, this_app


class Hosts:
    def __init__(self, app: Flask) -> None:
        self._app = app
        self._own = urlsplit(settings().base_url).netloc.lower()  # the header of most requests
        self.routes: Map = app.url_map  # of foreign hosts
        # Every request calls it, and its result depends only on settings.
        self.foreign = lru_cache(maxsize=256)(self._foreign)

    def _foreign(self, header: str) -> str | None:
        """Return the host of a Host header, or None if it is our own."""
        if header == self._own:
            return None
        with self._app.app_context():
            name = requested_host(header)
            return None if is_own_host(name) else name


class HasHosts(Protocol):
    """The application (`Service` of request.py)."""

    hosts: Hosts


def init_routes(app: Flask, own: tuple[str, ...]) -> None:
    """Leave the routes whose first segment is one of `own` to our own host. Call this after all are
    registered."""
    rules = [rule.empty() for rule in app.url_map.iter_rules() if rule.rule.split("/", 2)[1] not in own]
    routes = Map(rules, converters=app.url_map.converters, strict_slashes=False, merge_slashes=False)
    cast("HasHosts", app).hosts.routes = routes


def foreign_routes() -> Map:
    return cast("HasHosts", this_app()).hosts.routes


def host_of(environ: dict[str, Any]) -> str | None:
    return cast("HasHosts", this_app()).hosts.foreign(environ.get("HTTP_HOST", ""))
