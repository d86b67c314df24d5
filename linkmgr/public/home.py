from http import HTTPStatus

from flask import Blueprint, current_app, redirect, url_for
from werkzeug.wrappers import Response

from linkmgr.core.feature import has_console
from linkmgr.public import branded, short

bp = Blueprint("home", __name__)


@bp.get("/")
def root() -> Response:
    return redirect(url_for("login.form"), code=302)


def first_page() -> str:
    """Return the URL of the first page for a user who has signed in."""
    return url_for("console.home" if has_console() else "account_page.show")


@bp.get("/user")
def user() -> Response:
    """Lead the browser extension, which opens this page, to the console."""
    return redirect(first_page(), code=302)


@bp.get("/docs")
def docs() -> Response:
    """Lead people to the documentation. Without this page, a link could be at it."""
    return redirect("/api/docs", code=302)


@bp.get("/openapi.json")
def openapi() -> Response:
    """Lead programs that look for the document there. Without this page, a link could be at it."""
    return redirect("/api/openapi.json", code=302)


@bp.get("/favicon.ico")
@bp.get("/<alias:alias>/ico")
@short.page_of_link
def favicon(alias: str = "") -> Response:
    """Return our icon. The browser extension asks for that of a link's target, which the service
    does not call."""
    if logo := branded.own_logo():
        return logo
    if branded.host():
        return Response(status=HTTPStatus.NO_CONTENT)
    return current_app.send_static_file("favicon.ico")


@bp.get("/robots.txt")
def robots() -> Response:
    if branded.host():  # nothing of ours is there, and a link may be /login
        return Response("User-agent: *\nDisallow:\n", mimetype="text/plain")
    return current_app.send_static_file("robots.txt")
