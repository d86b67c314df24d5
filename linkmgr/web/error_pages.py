"""HTML error pages and content negotiation."""

import base64
import hashlib
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, render_template

from linkmgr.settings import settings, this_app
from linkmgr.web import request as web_request

ID_PLACEHOLDER = "REQUEST-ID"
_TITLES = {
    401: "Sign-in required",
    403: "Access denied",
    404: "Page not found",
    410: "Link no longer valid",
    413: "Request too large",
    429: "Too many requests",
    500: "Something went wrong on our side",
    503: "Temporarily unavailable",
    508: "Redirect loop",
}
_OTHER_TITLE = "Invalid request"
_JSON_PATHS = ("/healthz", "/metrics")
_API_PAGE = "/api/docs"


def prefers_html() -> bool:
    """Return True if the client gets a page instead of JSON.

    Outside the API, only clients that prefer JSON get JSON. On the one page of the API, only clients that prefer
    HTML, such as browsers, get a page.
    """
    request = web_request.current()
    path, accepted = request.path.rstrip("/"), request.accept_mimetypes
    if path == _API_PAGE:
        return accepted["text/html"] > accepted["application/json"]
    if request.is_api or path in _JSON_PATHS:
        return False
    return accepted["text/html"] >= accepted["application/json"]


def page(status: int, message: str) -> str:
    return _render("error.html", status, message)


def _render(template: str, status: int, message: str, **values: str) -> str:
    title = _TITLES.get(status, _OTHER_TITLE)
    text = message.removeprefix(f"{title}. ")  # the heading says it already
    return render_template(template, status=status, title=title, message=text, **values)


def unknown_host_page(message: str) -> tuple[str, str]:
    """Return the page and its Content-Security-Policy, which allows the style that the page contains."""
    style, policy = this_app().extensions["linkmgr_unknown_host_style"]
    return _render("unknown_host.html", HTTPStatus.NOT_FOUND, message, style=style), policy


def internal_error_page(request_id: str) -> str:
    """Return the page that was rendered at the start, so that a broken template cannot prevent it."""
    host = web_request.current().environ.get("HTTP_HOST", "").lower()
    pages: dict[bool, str] = this_app().extensions["linkmgr_bug_pages"]
    rendered = pages[host == urlsplit(settings().base_url).netloc.lower()]
    return rendered.replace(ID_PLACEHOLDER, request_id)


def init_app(app: Flask, message: str) -> None:
    style = Path(app.static_folder or "", "style.css").read_text()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
    app.extensions["linkmgr_unknown_host_style"] = style, policy
    app.extensions["linkmgr_bug_pages"] = pages = {}
    # A page for our own host, with its name, and one for branded domains.
    for is_own, base_url in ((True, settings().base_url), (False, "http://branded.invalid")):
        with app.test_request_context(base_url=base_url):
            pages[is_own] = page(HTTPStatus.INTERNAL_SERVER_ERROR, message)
