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


def wanted() -> bool:
    """Outside of the API everybody gets a page but those who ask for JSON by name, as programs do."""
    request = web_request.current()
    if request.is_api or request.path.rstrip("/") in _FOR_PROGRAMS:
        return False
    return request.accept_mimetypes["text/html"] >= request.accept_mimetypes["application/json"]


def page(status: int, message: str) -> str:
    title = _TITLES.get(status, "That did not work")
    return render_template("error.html", status=status, title=title, message=message)


def bug() -> str:
    """Made at the start, so that nothing can fail in showing it."""
    made: str = this_app().extensions["linkmgr_bug_page"]
    return made


def init_app(app: Flask, message: str) -> None:
    with app.test_request_context():
        app.extensions["linkmgr_bug_page"] = page(HTTPStatus.INTERNAL_SERVER_ERROR, message)
