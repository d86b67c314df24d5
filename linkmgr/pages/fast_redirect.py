"""GET requests for links that only redirect to their URL, answered before Flask.

Routing, hooks and the response of Flask take longer than the rest of such a request. `short.visit` answers the same,
and answers all requests that are passed on.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import psycopg2
from flask import Flask

from linkmgr.pages import AliasConverter, branded, short
from linkmgr.repository import public
from linkmgr.visits import record
from linkmgr.web import metrics

_ROUTE = "/<alias:alias>"
_PATH = re.compile(f"/({AliasConverter.regex})")


class FastRedirects:
    def __init__(self, app: Flask) -> None:
        self.app, self.flask = app, app.wsgi_app
        self._reserved = AliasConverter(app.url_map).reserved

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        location = self._visit(environ)
        if location is None:
            return self.flask(environ, start_response)
        environ[metrics.ROUTE] = _ROUTE
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": "0", "Cache-Control": "no-store"}
        start_response("302 FOUND", [*headers.items(), ("Location", location)])
        return ()

    def _visit(self, environ: dict[str, Any]) -> str | None:
        """Record the visit of a link and return its URL. Return None for a request that Flask answers."""
        path = _PATH.fullmatch(environ["PATH_INFO"])
        if environ["REQUEST_METHOD"] != "GET" or path is None or path[1] in self._reserved:
            return None
        with self.app.app_context():
            try:
                return self._redirect(environ, path[1])
            except psycopg2.Error as error:
                environ[short.LINK] = error
            except Exception:  # noqa: S110 - the route tries again, and reports the error
                pass
        return None

    def _redirect(self, environ: dict[str, Any], alias: str) -> str | None:
        host = branded.host_of(environ)
        if host is None or branded.can_be_branded(host):
            link = environ[short.LINK] = public.short_link(host, alias)
            if link and short.is_fast(link, environ.get("HTTP_USER_AGENT", "")):
                record.record(environ, link["id"], link["user_id"])
                return str(link["url"])
        return None


def init_app(app: Flask) -> None:
    """Call this after all routes are registered."""
    app.wsgi_app = FastRedirects(app)  # type: ignore[method-assign]
