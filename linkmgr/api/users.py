from flask import Blueprint, Response

from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import Parameter, values_of
from linkmgr.core.web import auth, session_store, streams
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, ok, updated, versioned
from linkmgr.core.web.streams import BUSY
from linkmgr.repository import users
from linkmgr.schemas.account import STATUSES
from linkmgr.schemas.users import ManagedUser, User, register

bp = Blueprint("users", __name__, url_prefix="/api")
_ABOUT = """\
For administrators. A user whose plan has expired is shown with the free plan.
`expiration` is read as `expires`."""
SECTION = Section("users", "Users", _ABOUT, lambda: shapes.records_of(User))

QUERY = {
    "filter": Parameter(
        "Only users with this status.", title="UserStatus", type="string", enum=list(STATUSES)
    ),
    "email": Parameter("A part of the e-mail address."),
}


@bp.get("/users")
@operation("admin", "users.list", shapes.all_of(User), query=QUERY, errors=("other_secret", *BUSY))
def index() -> Response:
    """List users.

    All users in one response: `limit` and `page` are ignored.
    """
    users.note_shown_key(None)
    sent = values_of(QUERY)
    return streams.streamed(users.search(status=sent["filter"], email=sent["email"]))


@bp.get("/user/<id:user_id>")
@operation("admin", "users.get", shapes.reading_schema(User), errors=("other_secret",), has_etag=True)
def read(user_id: int) -> Response:
    """Read a user."""
    users.note_shown_key(user_id)
    user = users.read(user_id)
    return versioned(user.pop("version"), data=user)


@bp.post("/user/add")
@operation(
    "admin",
    "users.create",
    shapes.changed_schema("User has been registered.", User),
    body=User.creates(),
    example={"username": "carol", "email": "carol@example.com", "password": "correct horse"},
    errors=("username_taken", "email_taken", "plan_not_premium", "other_secret", "password_busy"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Register a user."""
    with transaction.in_transaction():
        user = users.read(register(new)["id"])
    return updated("User has been registered.", user.pop("version"), verb="set", data=user)


@bp.put("/user/<id:user_id>/update")
@operation(
    "admin",
    "users.update",
    shapes.changed_schema("User has been updated successfully.", User),
    body=ManagedUser.updates(),
    stored=lambda _, user_id: users.read(user_id),
    example={"email": "dana@example.com"},
    errors=("email_taken", "demote_self", "last_administrator", "administrator_suspended", "other_secret"),
    row="users",
    has_etag=True,
)
def update(changes: Row, user_id: int) -> Response:
    """Change the e-mail address of a user, suspend the user, or appoint an administrator.

    `PUT /api/plan/{plan_id}/user/{user_id}` changes the plan.
    """
    with transaction.in_transaction():
        users.update(user_id, by=auth.user_id(), **changes)
        user = users.read(user_id)
    return updated("User has been updated successfully.", user.pop("version"), data=user)


@bp.delete("/user/<id:user_id>/delete")
@operation(
    "admin",
    "users.delete",
    shapes.done("User has been deleted."),
    errors=("delete_self", "delete_last_administrator", "other_secret"),
    row="users",
)
def delete(user_id: int) -> Json:
    """Delete a user.

    Deletes everything that the user owns.
    """
    users.delete(user_id, by=auth.user_id())
    return ok("User has been deleted.")


@bp.get("/user/login/<id:user_id>")
@operation("admin", "users.createLoginLink", shapes.success("LoginLink", url=shapes.own_url("login/...")))
def login_link(user_id: int) -> Json:
    """Create a sign-in link for a user.

    The link can be used once, within an hour. All pages of the session say that an administrator
    made the link.
    """
    return ok(url=session_store.new_link(user_id))
