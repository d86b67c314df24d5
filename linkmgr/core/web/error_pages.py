import base64
import hashlib
from functools import cache
from http import HTTPStatus
from pathlib import Path

from flask import render_template

from linkmgr.core.settings import this_app
from linkmgr.core.web import request as web_request

_TITLES = {
    401: "Sign-in required",
    403: "Access denied",
    404: "Page not found",
    410: "Link no longer valid",
    413: "Request too large",
    429: "Too many requests",
    500: "Something went wrong on our side",
    502: "Another service failed",
    503: "Temporarily unavailable",
    508: "Redirect loop",
}
_OTHER_TITLE = "Invalid request"
_JSON_PATHS = ("/healthz", "/metrics")
_API_PAGE = "/api/docs"


def _is_browser() -> bool:
    accepted = web_request.current().accept_mimetypes
    return accepted["text/html"] > accepted["application/json"]


def prefers_html() -> bool:
    """Outside the API, only clients that prefer JSON get JSON. On the pages of the API, only
    clients that prefer HTML, such as browsers, get a page."""
    request = web_request.current()
    path, accepted = request.path.rstrip("/"), request.accept_mimetypes
    if path == _API_PAGE or path.startswith(f"{_API_PAGE}/"):
        return _is_browser()
    if request.is_api or path in _JSON_PATHS:
        return False
    return accepted["text/html"] >= accepted["application/json"]


def meant() -> str | None:
    """Return the path of the documentation that was meant, or None. Of those who request `/api`,
    browsers are redirected; programs get an error that names it."""
    request = web_request.current()
    path = request.path.rstrip("/")
    if path == "/api" and request.method == "GET" and _is_browser():
        return _API_PAGE
    return None


def page(status: int, message: str, template: str = "error.html", **values: str) -> str:
    title = _TITLES.get(status, _OTHER_TITLE)
    text = message.removeprefix(f"{title}. ")  # the heading says it already
    return render_template(template, status=status, title=title, message=text, **values)


def unknown_host_page(message: str) -> tuple[str, str]:
    style, digest = _style(this_app().static_folder)
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
    return page(HTTPStatus.NOT_FOUND, message, "unknown_host.html", style=style), policy


@cache
def _style(folder: str | None) -> tuple[str, str]:
    style = Path(folder or "", "style.css").read_text()
    return style, base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
