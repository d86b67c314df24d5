"""The host of a request: our own, or a foreign one, which need not be a branded domain; and the routes of each."""

from functools import lru_cache
from typing import Any
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


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_hosts"] = Hosts(app)


def init_routes(app: Flask, own: tuple[str, ...]) -> None:
    """Leave the routes whose first segment is one of `own` to our own host. Call this after all are registered."""
    rules = [rule.empty() for rule in app.url_map.iter_rules() if rule.rule.split("/", 2)[1] not in own]
    routes = Map(rules, converters=app.url_map.converters, strict_slashes=False, merge_slashes=False)
    hosts(app).routes = routes


def hosts(app: Flask) -> Hosts:
    registered: Hosts = app.extensions["linkmgr_hosts"]
    return registered


def foreign_routes() -> Map:
    return hosts(this_app()).routes


def host_of(environ: dict[str, Any]) -> str | None:
    return hosts(this_app()).foreign(environ.get("HTTP_HOST", ""))
