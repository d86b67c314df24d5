from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.web import scopes
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.features.members import repository as members
from linkmgr.features.members.schema import Member, create_member

bp = Blueprint("members", __name__, url_prefix="/api")


def _records() -> dict[str, JsonSchema]:
    return shapes.records_of(Member)


SECTION = Section("members", "Members", prose(__file__), _records)


def _require_unlimited(role: str | None) -> None:
    """An owner of the account can make keys without limits."""
    if role == "owner" and not scopes.is_unlimited(caller()):
        raise AppError("owner_exceeded")


@bp.get("/members")
@operation("members:read", "members.list", shapes.listing_schema("members", Member), query=NAMED_PAGING)
def index() -> Json:
    """List members and invitations."""
    return listing("members", members.index(user_id(), **named_paging()), Member)


@bp.get("/member/<id:member_id>")
@operation("members:read", "members.get", shapes.reading_schema(Member), has_etag=True)
def read(member_id: int) -> Response:
    """Read a member."""
    return reading(Member, members.read(user_id(), member_id))


@bp.post("/member/add")
@operation(
    "members:create",
    "members.create",
    shapes.created_schema(Member, url=shapes.own_url("account/invitation/...")),
    body=Member.creates(),
    example={"email": "erin@example.com", "role": "editor"},
    errors=("plan_feature", "plan_limit", "members_full", "invitation_open", "owner_exceeded"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Invite a member.

    `url` is the invitation, which is shown only once: send it to the person. Whoever has it can
    accept it, once, within 7 days.
    """
    _require_unlimited(new["role"])
    return created(Member, create_member(user_id(), new), "url")


@bp.put("/member/<id:member_id>/update")
@operation(
    "members:write",
    "members.update",
    shapes.changed_schema("Member has been updated successfully.", Member),
    body=Member.updates(),
    stored=members.read,
    errors=("owner_exceeded",),
    row="members",
    has_etag=True,
)
def update(changes: Row, member_id: int) -> Response:
    """Change the role of a member."""
    _require_unlimited(changes["role"])
    return changed(
        "Member has been updated successfully.", Member, members.update(user_id(), member_id, changes)
    )


@bp.delete("/member/<id:member_id>/delete")
@operation(
    "members:write", "members.delete", shapes.done("Member has been deleted successfully."), row="members"
)
def delete(member_id: int) -> Json:
    """Remove a member, or withdraw an invitation.

    The person has no access from the next request on. The API keys that the person made remain.
    """
    members.delete(user_id(), member_id)
    return ok("Member has been deleted successfully.")
