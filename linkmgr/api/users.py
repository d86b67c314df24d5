"""/api/users and /api/user, for administrators"""

from flask import Blueprint, Response

from linkmgr import keys
from linkmgr.fields.base import Email, Expiration, Id, Matching, New, Password, body
from linkmgr.fields.member import member
from linkmgr.fields.query import query_choice, query_text
from linkmgr.repository import login, users
from linkmgr.web import auth, passwords
from linkmgr.web import export as web_export
from linkmgr.web import request as web_request
from linkmgr.web.responses import Json, ok, versioned, warn_fixed

bp = Blueprint("users", __name__)

STATUSES = ("admin", "free", "pro")


class UserCreate(New):
    username = member(
        Matching("[A-Za-z0-9_.-]{3,50}", "3 to 50 letters, digits, '_', '.' or '-'", required=True),
        "Unique, ignoring case.",
        "carol",
    )
    email = member(Email(required=True), "Unique, ignoring case.", "carol@example.com")
    password = member(Password(required=True), "The first password.", "correct horse")
    planid = member(Id(), "The id of a premium plan. Without it, the user has the free plan.", 2)
    expiration = member(
        Expiration(), "The end of the plan, read as `expires`. Without it, the plan has no end.", "2030-12-31 23:59:59"
    )


@bp.get("/users")
def index() -> Response:
    return web_export.streamed(users.search(status=query_choice("filter", STATUSES), email=query_text("email")))


@bp.get("/user/<id:user_id>")
def read(user_id: int) -> Response:
    user = users.read(user_id)
    return versioned(user.pop("version"), data=user)


@bp.post("/user/add")
def add() -> Json:
    added = create(body(UserCreate))
    if web_request.current().fixed:
        warn_fixed(users.read(added["id"]), "set")
    return ok("User has been registered.", data=added)


@bp.delete("/user/<id:user_id>/delete")
def delete(user_id: int) -> Json:
    users.delete(user_id, by=auth.user_id())
    return ok("User has been deleted.")


@bp.get("/user/login/<id:user_id>")
def login_link(user_id: int) -> Json:
    return ok(url=login.new_link(user_id))


def create(new: Json, *, admin: bool = False) -> Json:
    """Store a user with a new API key and return its `id`, `email` and `username`."""
    new["password_hash"] = passwords.hashed(new.pop("password"))
    user_id = users.next_id()
    return users.add(user_id, **keys.new_key(user_id), **new, admin=admin)
