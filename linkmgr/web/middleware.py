"""The outermost layer: every request has an id, and is counted and timed where metrics are on; every answer has the
headers that do not depend on what it says.  Here they are a list, to which adding is cheap.

The id is the client's `X-Request-Id` when it is a plain one and cannot be a secret, else made here.  It stands on the
answer, in the access log (deploy/gunicorn.conf.py) and in what the service logs, so that one leads to the others.
"""

import logging
import random
import re
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from flask import Flask, has_request_context, request
from flask.logging import default_handler

from linkmgr.web import keys, rate_limit, security_headers
from linkmgr.web import request as web_request
from linkmgr.web.metrics import Metrics

REQUEST_ID, USER_ID = "linkmgr.request_id", "linkmgr.user_id"  # keys of the WSGI environment
# Our keys and tokens have 43 characters or more. A UUID has 36.
_PLAIN = re.compile(f"(?!.*{keys.PREFIX})[A-Za-z0-9._-]{{1,39}}")
# Answers of the API are for one caller, and some show API keys or login links.
_PRIVATE = ("Cache-Control", "no-store")


class RequestMiddleware:
    def __init__(self, app: Any, metrics: Metrics | None, headers: list[tuple[str, str]]) -> None:
        self.app, self.metrics, self.headers = app, metrics, headers

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        began = perf_counter()
        given = environ.get("HTTP_X_REQUEST_ID")
        request_id = given if given and _PLAIN.fullmatch(given) else f"{random.getrandbits(64):016x}"
        environ[REQUEST_ID] = request_id

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += [("X-Request-Id", request_id), *self.headers]
            asked: web_request.Request | None = environ.get("werkzeug.request")
            if asked and asked.is_api:
                headers += rate_limit.headers(environ)
                if all(name != "Cache-Control" for name, _ in headers):
                    headers.append(_PRIVATE)
            elif all(name != "Content-Security-Policy" for name, _ in headers):
                headers.append(security_headers.policy(environ))
            if self.metrics:
                self.metrics.request(environ, status, perf_counter() - began)
            return start_response(status, headers, exc_info)

        answer: Iterable[bytes] = self.app(environ, start)
        return answer


class RequestIdFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        message = super().formatMessage(record)
        return f"{message} [request {request.environ.get(REQUEST_ID)}]" if has_request_context() else message


def log_user(user_id: int | None) -> None:
    """Who sent the request, for the access log."""
    web_request.current().environ[USER_ID] = user_id


def init_app(app: Flask) -> None:
    default_handler.setFormatter(RequestIdFormatter("[%(asctime)s] %(levelname)s in %(module)s: %(message)s"))
    outermost = RequestMiddleware(app.wsgi_app, app.extensions["linkmgr_metrics"], security_headers.fixed_headers())
    app.wsgi_app = outermost  # type: ignore[method-assign]
