"""The outermost WSGI layer: request ids, common headers and metrics.

The id is the client's `X-Request-Id` if it is plain text and cannot be a secret, else a new one. It is in the response,
the access log (deploy/gunicorn.conf.py) and the error log.
"""

import logging
import re
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from flask import Flask, has_request_context
from flask.logging import default_handler

from linkmgr import keys
from linkmgr.web import origins, rate_limit, security_headers
from linkmgr.web import request as web_request
from linkmgr.web.metrics import Metrics

USER_ID = "linkmgr.user_id"  # key of the WSGI environment
# Our keys and tokens have 40 characters or more. A UUID has 36.
_PLAIN = re.compile(f"(?!.*(?:{keys.PREFIX}|{keys.SCOPED_PREFIX}))[A-Za-z0-9._-]{{1,39}}")
# API responses are for one caller, and some contain API keys or sign-in links.
_PRIVATE = ("Cache-Control", "no-store")


class RequestMiddleware:
    def __init__(self, app: Any, metrics: Metrics | None, headers: list[tuple[str, str]]) -> None:
        self.app, self.metrics, self.headers = app, metrics, headers

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        started = perf_counter()
        client_id = environ.get("HTTP_X_REQUEST_ID")
        request_id = client_id if client_id and _PLAIN.fullmatch(client_id) else web_request.new_id()
        environ[web_request.REQUEST_ID] = request_id

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += [("X-Request-Id", request_id), *self.headers]
            request = environ.get("werkzeug.request")  # that of another layer if Flask has not seen the request
            if isinstance(request, web_request.Request) and request.is_api:
                headers += rate_limit.headers(environ)
                if not request.has_foreign_host:
                    headers += origins.HEADERS
                if all(name != "Cache-Control" for name, _ in headers):
                    headers.append(_PRIVATE)
            elif all(name != "Content-Security-Policy" for name, _ in headers):
                headers.append(security_headers.policy(environ))
            if self.metrics:
                self.metrics.request(environ, status, perf_counter() - started)
            return start_response(status, headers, exc_info)

        response: Iterable[bytes] = self.app(environ, start)
        return response


class RequestIdFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        message = super().formatMessage(record)
        return f"{message} [request {web_request.current().id}]" if has_request_context() else message


def set_log_user(user_id: int | None) -> None:
    """Store the user id for the access log."""
    web_request.current().environ[USER_ID] = user_id


def init_app(app: Flask) -> None:
    default_handler.setFormatter(RequestIdFormatter("[%(asctime)s] %(levelname)s in %(module)s: %(message)s"))
    outermost = RequestMiddleware(app.wsgi_app, app.extensions["linkmgr_metrics"], security_headers.fixed_headers())
    app.wsgi_app = outermost  # type: ignore[method-assign]
