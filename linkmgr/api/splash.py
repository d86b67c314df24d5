"""/api/splash"""

from flask import Blueprint, Response

from linkmgr.fields.base import Changes, Integer, New, Target, Text, body, changes_of
from linkmgr.fields.query import paging
from linkmgr.repository import splash
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("splash", __name__)

MAX_MESSAGE = 2000
SECONDS = 1, 60  # bounds of the countdown


class NewSplash(New):
    name = Text(required=True)
    title = Text()
    message = Text(MAX_MESSAGE, multiline=True)
    link = Target()
    counter = Integer(*SECONDS)
    banner = Target()


class SplashChanges(Changes):
    name = Text()
    title = Text(allow_empty=True)
    message = Text(MAX_MESSAGE, multiline=True, allow_empty=True)
    link = Target(allow_empty=True)
    counter = Integer(*SECONDS)
    banner = Target(allow_empty=True)


@bp.get("/splash")
def index() -> Json:
    return listing("splash", splash.index(user_id(), **paging()))


@bp.get("/splash/<id:splash_id>")
def read(splash_id: int) -> Response:
    page = splash.read(user_id(), splash_id)
    return versioned(page.pop("version"), data=page)


@bp.post("/splash/add")
def add() -> Json:
    return ok(id=splash.add(user_id(), **body(NewSplash)))


@bp.put("/splash/<id:splash_id>/update")
def update(splash_id: int) -> Response:
    changes = changes_of(SplashChanges, lambda: splash.read(user_id(), splash_id))
    page = splash.update(user_id(), splash_id, **changes)
    return updated("Splash page has been updated successfully.", page.pop("version"), data=page)


@bp.delete("/splash/<id:splash_id>/delete")
def delete(splash_id: int) -> Json:
    splash.delete(user_id(), splash_id)
    return ok("Splash page has been deleted successfully.")
