"""The host of a request: our own, or a foreign one, which need not be a branded domain; and the
routes of each.

A path that no route of a host has may be that of a link whose alias has `/`, `.` or letters of any
script. The routes of links with such an alias are a map of their own, which is asked last: what the
service serves comes first.
"""

from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from flask import Flask
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.routing import Map, MapAdapter, Rule

from linkmgr.core.fields.urls import is_own_host, requested_host
from linkmgr.core.settings import settings, this_app

_ALIAS, _WIDE, _REST = "<alias:alias>", "<wide:alias>", "<path:rest>"


class WideRoutes(Map):
    """The routes of links in another map, for wide aliases."""

    def __init__(self, routes: Map) -> None:
        self.routes = routes
        self.rest, *self.originals = sorted(
            (rule for rule in routes.iter_rules() if _ALIAS in rule.rule),
            key=lambda rule: _REST not in rule.rule,
        )
        super().__init__(
            [
                Rule(rule.rule.replace(_ALIAS, _WIDE), endpoint=number, methods=rule.methods)
                for number, rule in enumerate(self.originals)
            ],
            converters=routes.converters,
            strict_slashes=False,
            merge_slashes=False,
        )


class Paths(MapAdapter):
    """Finds the route of a path on a host that can have wide aliases."""

    def __init__(self, wide: WideRoutes, *bound: Any) -> None:
        super().__init__(*bound)
        self.wide = wide

    def match(self, *args: Any, **options: Any) -> Any:
        return_rule = options.pop("return_rule", False)
        try:
            rule, arguments = super().match(*args, **options | {"return_rule": True})
        except NotFound:
            if route := self._match_wide(return_rule=return_rule):
                return route
            raise
        # Links with `extrapath` have the paths that are no wide alias.
        if _REST in rule.rule and (route := self._match_wide(return_rule=return_rule)):
            return route
        return (rule if return_rule else rule.endpoint), arguments

    def _match_wide(self, *, return_rule: bool) -> Any:
        """Return the route of a wide alias, or of a path behind one, or None."""
        path = self.path_info.removesuffix("/")
        first, _, rest = self.path_info[1:].partition("/")
        rule, arguments = self._find(path) or self._find_rest(first, rest) or (None, {})
        return rule and ((rule if return_rule else rule.endpoint), arguments)

    def _find(self, path: str) -> tuple[Rule, dict[str, Any]] | None:
        with suppress(HTTPException):
            number, arguments = self.wide.bind("").match(path, self.default_method)
            return self.wide.originals[number], dict(arguments)
        return None

    def _find_rest(self, alias: str, rest: str) -> tuple[Rule, dict[str, Any]] | None:
        """Find the path of a link with `extrapath`, whose rest need not be like an alias."""
        rule, arguments = self._find(f"/{alias}") or (None, {})
        if rule is None or rule.rule != f"/{_ALIAS}" or rest[:1] in ("", "/"):
            return None
        return self.wide.rest, arguments | {"rest": rest}


class Hosts:
    def __init__(self, app: Flask) -> None:
        self._app = app
        self._own = urlsplit(settings().base_url).netloc.lower()  # the header of most requests
        self.routes: Map = app.url_map  # of foreign hosts
        self.wide: WideRoutes | None = None  # of them, for wide aliases
        self.own_wide: WideRoutes | None = None  # if our own host can have these
        # Every request calls it, and its result depends only on settings.
        self.foreign = lru_cache(maxsize=256)(self._foreign)

    def paths(self, path: str, *, is_own: bool, method: str = "GET", root: str = "") -> MapAdapter:
        """Return what finds the route of a path. `match` of it raises the errors of werkzeug."""
        routes, wide = (self._app.url_map, self.own_wide) if is_own else (self.routes, self.wide)
        bound = routes, "localhost", root or "/", "", "http", path, method
        return Paths(wide, *bound) if wide else MapAdapter(*bound)

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
    all_hosts = cast("HasHosts", app).hosts
    all_hosts.routes, all_hosts.wide = routes, WideRoutes(routes)
    if "widealiases" in settings().aliases:
        all_hosts.own_wide = WideRoutes(app.url_map)


def hosts() -> Hosts:
    return cast("HasHosts", this_app()).hosts


def foreign_routes() -> Map:
    return hosts().routes


def wide_alias(path: str, *, is_own: bool, method: str = "GET") -> str | None:
    """Return the wide alias of the link that a path leads to on our own host or on branded
    domains, or None."""
    if (hosts().own_wide if is_own else hosts().wide) is None:
        return None
    try:
        rule, arguments = hosts().paths(path, is_own=is_own, method=method).match(return_rule=True)
    except HTTPException:
        return None
    return str(arguments["alias"]) if rule.rule == f"/{_ALIAS}" else None


def host_of(environ: dict[str, Any]) -> str | None:
    return hosts().foreign(environ.get("HTTP_HOST", ""))
