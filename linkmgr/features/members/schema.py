from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Choice, Email, Shown, Timestamp
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import Resource, Stored, Words, created, row_id, updated
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.features.members import repository as members

ROLES = {
    "viewer": "Viewer: sees links and statistics",
    "editor": "Editor: also changes links",
    "owner": "Owner: also keys and members",
}


class Member(Resource):
    id = row_id()
    email = member(
        Email(required=True),
        "The address to which the invitation goes. The person may have another one here.",
        "erin@example.com",
        label="E-mail address",
        fixed=True,
    )
    role = member(Choice(tuple(ROLES), required=True), "What the member may do.", "editor", label="Role")
    state = member(
        Shown({"type": "string", "enum": ["invited", "joined", "expired"]}),
        "An invitation can be accepted for 7 days.",
        "joined",
    )
    user = member(Shown({"type": ["integer", "null"]}), "The id of the user who has accepted it.", 17)
    name = member(Shown({"type": "string"}), "The name of this user, and until then the address.", "erin")
    joined = member(
        Timestamp(dump_only=True, allow_none=True),
        "The time at which it was accepted.",
        "2026-11-21 09:30:00",
    )
    date = created()
    updated = updated()


def create_member(user_id: int, sent: Row) -> Row:
    """Store an invitation and return its row with its `url`, which is not shown again."""
    token = keys.new_token()
    added = members.add(user_id, sent | {"digest": keys.digest(token)})
    url = f"{settings().base_url}/account/invitation/{token}"
    shown = {"inviter": added["inviter"], "account": added["account"], "role": sent["role"], "url": url}
    hooks().notify(user_id, "invitation", to=sent["email"], **shown)
    return members.read(user_id, added["id"]) | {"url": url}


MEMBERS = Stored(
    Member,
    Words("member", path="member", plural="members", table="members"),
    rows=members,
    create=create_member,
    change=members.update,
)
