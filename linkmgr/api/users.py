"""/api/users and /api/user, for administrators"""

from flask import Blueprint, Response

from linkmgr.db import transaction
from linkmgr.fields.bodies import body
from linkmgr.fields.query import Parameter, values_of
from linkmgr.repository import login, users
from linkmgr.resources.account import STATUSES
from linkmgr.resources.users import User
from linkmgr.web import auth
from linkmgr.web import export as web_export
from linkmgr.web.responses import Json, ok, updated, versioned

bp = Blueprint("users", __name__)

QUERY = {
    "filter": Parameter("Only users with this status.", type="string", enum=list(STATUSES)),
    "email": Parameter("A part of the e-mail address."),
}


@bp.get("/users")
def index() -> Response:
    sent = values_of(QUERY)
    return web_export.streamed(users.search(status=sent["filter"], email=sent["email"]))


@bp.get("/user/<id:user_id>")
def read(user_id: int) -> Response:
    user = users.read(user_id)
    return versioned(user.pop("version"), data=user)


@bp.post("/user/add")
def add() -> Response:
    members = body(User.creates())
    with transaction.joined():
        user = users.read(User.register(members)["id"])
    return updated("User has been registered.", user.pop("version"), verb="set", data=user)


@bp.delete("/user/<id:user_id>/delete")
def delete(user_id: int) -> Json:
    users.delete(user_id, by=auth.user_id())
    return ok("User has been deleted.")


@bp.get("/user/login/<id:user_id>")
def login_link(user_id: int) -> Json:
    return ok(url=login.new_link(user_id))
