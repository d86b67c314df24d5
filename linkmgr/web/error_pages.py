"""How a failure is told to people: a page in the style of all others."""

from http import HTTPStatus

from flask import Flask, render_template

from linkmgr.settings import this_app
from linkmgr.web import request as web_request

_TITLES = {
    401: "Please sign in",
    403: "This is not open to you",
    404: "There is nothing here",
    410: "This is gone",
    413: "That was too much",
    429: "Slow down, please",
    500: "Something went wrong",
    503: "Back in a moment",
    508: "This leads in a circle",
}
_FOR_PROGRAMS = ("/healthz", "/metrics")
_API_PAGE = "/api/docs"


def prefers_html() -> bool:
    """Return True if the client gets a page rather than JSON.

    Outside of the API only clients that prefer JSON get JSON. On the one page of the API only clients that prefer
    HTML, as browsers do, get a page.
    """
    request = web_request.current()
    path, accepted = request.path.rstrip("/"), request.accept_mimetypes
    if path == _API_PAGE:
        return accepted["text/html"] > accepted["application/json"]
    if request.is_api or path in _FOR_PROGRAMS:
        return False
    return accepted["text/html"] >= accepted["application/json"]


def page(status: int, message: str) -> str:
    title = _TITLES.get(status, "That did not work")
    return render_template("error.html", status=status, title=title, message=message)


def internal_error_page() -> str:
    """Made at the start, so that nothing can fail in showing it."""
    made: str = this_app().extensions["linkmgr_bug_page"]
    return made


def init_app(app: Flask, message: str) -> None:
    with app.test_request_context():
        app.extensions["linkmgr_bug_page"] = page(HTTPStatus.INTERNAL_SERVER_ERROR, message)
