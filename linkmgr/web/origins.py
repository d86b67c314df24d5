"""Requests from pages of other origins: they may call the API (CORS), but not send forms of ours.

They authenticate with a key in a header. The API reads no cookies, and browsers send none, because credentials are
never allowed. So another origin gains nothing that a program with the same key does not have.

Browsers send the origin with every form. A client that does not send it is not a browser, so it has no session cookie
that another site could abuse.
"""

from flask import Flask, Response
from werkzeug.exceptions import MethodNotAllowed

from linkmgr.errors import AppError
from linkmgr.settings import settings
from linkmgr.web import request as web_request

# The headers of responses that browsers would hide from scripts.
_EXPOSED = (
    "Content-Disposition", "ETag", "Idempotency-Replayed", "Link", "RateLimit", "RateLimit-Policy", "Retry-After",
    "WWW-Authenticate", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Rows-Limit",
    "X-RateLimit-Rows-Remaining", "X-RateLimit-Rows-Reset", "X-Request-Id",
)  # fmt: skip
_METHODS = ("DELETE", "GET", "POST", "PUT")
_MAX_AGE = 7200  # seconds that browsers keep the response to a preflight; the maximum of Chromium

# On every response of the API, errors included
HEADERS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", ", ".join(_EXPOSED)))


def _answer_preflight(request: web_request.Request) -> Response | None:
    """Answer the request that browsers send to ask for permission. It has no key, so it is neither counted nor
    authenticated. No route takes OPTIONS, so routing has failed with the methods of the path.

    For an unknown path all methods are allowed, so that the script gets the 404.
    """
    if not ("Origin" in request.headers and "Access-Control-Request-Method" in request.headers):
        return None
    error = request.routing_exception
    methods = set(error.valid_methods or ()) if isinstance(error, MethodNotAllowed) else set(_METHODS)
    headers = {
        "Access-Control-Allow-Methods": ", ".join(sorted(methods - {"HEAD"})),
        # All that are asked for: those that the API does not read do no harm. `*` would not include Authorization.
        "Access-Control-Allow-Headers": request.headers.get("Access-Control-Request-Headers", "Authorization"),
        "Access-Control-Max-Age": str(_MAX_AGE),
    }
    return Response(status=204, headers=headers)


def _is_same_origin(request: web_request.Request) -> bool:
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin == settings().base_url or origin == f"{request.scheme}://{request.host}"


def _check_origin() -> Response | None:
    request = web_request.current()
    if request.is_api:
        return _answer_preflight(request) if request.method == "OPTIONS" else None
    if request.method not in ("GET", "HEAD", "OPTIONS") and not _is_same_origin(request):
        raise AppError("foreign_origin")
    return None


def init_app(app: Flask) -> None:
    """Call this after the hook that rejects other hosts, which have no API, and before authentication."""
    app.before_request(_check_origin)
