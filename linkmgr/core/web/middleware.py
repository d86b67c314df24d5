"""The WSGI layer around Flask: request ids, common headers, metrics, and requests from pages of
other origins.

The id is the client's `X-Request-Id` if it is plain text and cannot be a secret, else a new one. It
is in the response, the access log (deploy/gunicorn.conf.py) and the error log.

Pages of other origins may call the API (CORS), but not send forms of ours. They authenticate with a
key in a header. The API reads no cookies, and browsers send none, because credentials are never
allowed. So another origin gains nothing that a program with the same key does not have. Browsers
send the origin with every form. A client that does not send it is not a browser, so it has no
session cookie that another site could abuse.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from time import perf_counter
from typing import Any

import orjson
from flask import Flask, Response, has_request_context
from flask.logging import default_handler
from werkzeug.exceptions import MethodNotAllowed

from linkmgr.core import keys, metrics
from linkmgr.core.error_catalogue import CATALOGUE, HTTP_CODES
from linkmgr.core.errors import RETRY_SECONDS, as_json
from linkmgr.core.metrics import Metrics
from linkmgr.core.settings import RELEASE, Settings, port, settings
from linkmgr.core.web import limiter, security_headers
from linkmgr.core.web import request as web_request

# Our keys and tokens have 40 characters or more. A UUID has 36.
_PLAIN = re.compile(f"(?!.*(?:{keys.PREFIX}|{keys.SCOPED_PREFIX}))[A-Za-z0-9._-]{{1,39}}")
# API responses are for one caller, and some contain API keys or sign-in links.
_PRIVATE = ("Cache-Control", "no-store")
# The headers of responses that browsers would hide from scripts.
_EXPOSED = (
    "Content-Disposition", "ETag", "Idempotency-Replayed", "Link", "Linkmgr-Version", "RateLimit",
    "RateLimit-Policy", "Retry-After", "WWW-Authenticate", "X-RateLimit-Limit", "X-RateLimit-Remaining",
    "X-RateLimit-Reset", "X-RateLimit-Rows-Limit", "X-RateLimit-Rows-Remaining", "X-RateLimit-Rows-Reset",
    "X-Request-Id",
)  # fmt: skip
_METHODS = ("DELETE", "GET", "POST", "PUT")
_MAX_AGE = 7200  # seconds that browsers keep the response to a preflight; the maximum of Chromium

# On every response of the API, errors included
CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", ", ".join(_EXPOSED)))
_VERSION = ("Linkmgr-Version", RELEASE)


class RequestMiddleware:
    def __init__(self, api: Any, pages: Any, metrics: Metrics | None, headers: list[tuple[str, str]]) -> None:
        """`pages` answers all requests but those of the API."""
        self.api, self.pages, self.metrics, self.headers = api, pages, metrics, headers
        self.log_addresses = settings().log_addresses

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        started = perf_counter()
        client_id = environ.get("HTTP_X_REQUEST_ID")
        request_id = client_id if client_id and _PLAIN.fullmatch(client_id) else web_request.new_id()
        environ[web_request.REQUEST_ID] = request_id
        environ[web_request.LOGGED] = logged = {**web_request.UNKNOWN, "request": request_id}
        if self.log_addresses != "0":
            logged["address"] = web_request.logged_address(environ, is_full=self.log_addresses == "full")

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += [("X-Request-Id", request_id), *self.headers]
            # The one of another layer if Flask has not seen the request
            request = environ.get("werkzeug.request")
            if isinstance(request, web_request.Request) and request.is_api:
                headers.append(_VERSION)
                if request.foreign_host is None:
                    headers += CORS
                if "Cache-Control" not in dict(headers):
                    headers.append(_PRIVATE)
            elif "Content-Security-Policy" not in dict(headers):
                headers.append(security_headers.policy(environ))
            if self.metrics:
                self.metrics.request(environ, status, perf_counter() - started)
            return start_response(status, headers, exc_info)

        app = self.api if environ["PATH_INFO"].startswith("/api/") else self.pages
        response: Iterable[bytes] = app(environ, start)
        return response


class RequestIdFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        message = super().formatMessage(record)
        return f"{message} [request {web_request.current().id}]" if has_request_context() else message


def malformed(status: int) -> tuple[bytes, dict[str, Any]]:
    """Return the response to a request that deploy/worker.py refuses, and its WSGI environment for
    the access log."""
    code, request_id = HTTP_CODES.get(status, "bad_request"), web_request.new_id()
    base_url = (os.environ.get("LINKMGR_BASE_URL") or f"http://127.0.0.1:{port()}").rstrip("/")
    message = CATALOGUE[code][1].format(id=request_id, seconds=RETRY_SECONDS)
    body = orjson.dumps(as_json(code, message, request_id, base_url))
    headers = [
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Content-Length", len(body)),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Request-Id", request_id),
        *([("Retry-After", RETRY_SECONDS)] if status == HTTPStatus.SERVICE_UNAVAILABLE else []),
        *limiter.headers_of_uncounted(
            os.environ.get("LINKMGR_RATE_LIMIT") or Settings.rate_limit, is_whole=True
        ),
        _VERSION,
        *CORS,
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    environ = {
        "REQUEST_METHOD": None,
        "PATH_INFO": None,
        web_request.LOGGED: {**web_request.UNKNOWN, "request": request_id},
    }
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body, environ


def answer_preflight(request: web_request.Request) -> Response | None:
    """Answer the request that browsers send to ask for permission. It has no key, so it is neither
    counted nor authenticated. No route takes OPTIONS, so routing has failed with the methods of the
    path.

    For an unknown path all methods are allowed, so that the script gets the 404.
    """
    if not ("Origin" in request.headers and "Access-Control-Request-Method" in request.headers):
        return None
    error = request.routing_exception
    methods = set(error.valid_methods or ()) if isinstance(error, MethodNotAllowed) else set(_METHODS)
    headers = {
        "Access-Control-Allow-Methods": ", ".join(sorted(methods - {"HEAD"})),
        # All that are asked for: those that the API does not read do no harm. `*` would not include
        # Authorization.
        "Access-Control-Allow-Headers": request.headers.get(
            "Access-Control-Request-Headers", "Authorization"
        ),
        "Access-Control-Max-Age": str(_MAX_AGE),
    }
    return Response(status=204, headers=headers)


def is_same_origin(request: web_request.Request) -> bool:
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin == settings().base_url or origin == f"{request.scheme}://{request.host}"


def init_app(app: Flask, pages: Callable[..., Iterable[bytes]]) -> None:
    default_handler.setFormatter(RequestIdFormatter("[%(asctime)s] %(levelname)s in %(module)s: %(message)s"))
    counters, headers = metrics.metrics(), security_headers.fixed_headers()
    app.wsgi_app = RequestMiddleware(app.wsgi_app, pages, counters, headers)  # type: ignore[method-assign]
