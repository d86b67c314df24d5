"""/, /favicon.ico and /robots.txt."""

from http import HTTPStatus

from flask import Blueprint, current_app, redirect, url_for
from werkzeug.wrappers import Response

from linkmgr.pages import brand

bp = Blueprint("home", __name__)


@bp.get("/")
def root() -> Response:
    return redirect(url_for("login.form"), code=302)


@bp.get("/favicon.ico")
def favicon() -> Response:
    own = brand.current()
    if own is None:
        return Response(status=HTTPStatus.NO_CONTENT)
    if own.logo:
        return brand.respond(own.logo)
    return current_app.send_static_file("favicon.ico")


@bp.get("/robots.txt")
def robots() -> Response:
    return current_app.send_static_file("robots.txt")
