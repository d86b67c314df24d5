from typing import Any

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Boolean, Choice, Expiration, Id, Password, Shown
from linkmgr.core.fields.member import member
from linkmgr.core.web import passwords
from linkmgr.repository import users
from linkmgr.schemas.account import Person, Username

SUSPENDED = {
    "no": "No",
    "access": "Yes, and the links, bio pages and campaigns go on answering",
    "all": "Yes, and visitors see that the links, bio pages and campaigns are turned off",
}


class User(Person):
    username = member(Username(required=True), "Unique, ignoring case.", "carol", label="Name", fixed=True)
    password = member(
        Password(required=True, load_only=True),
        "The first password.",
        "correct horse",
        label="Password",
        fixed=True,
    )
    planid = member(
        Id(), "The id of a premium plan. Without it, the user has the free plan.", 2, label="Plan", fixed=True
    )
    expiration = member(
        Expiration(load_only=True),
        "The end of the plan. Without it, the plan has no end.",
        "2030-12-31 23:59:59",
        label="End",
        fixed=True,
    )
    apikey = member(Shown({"type": "string"}), "", "linkmgr_...")
    admin = member(
        Boolean(), "Manages the service, all users and plans.", False, label="Administrator", default=False
    )
    suspended = member(Shown({"type": "string", "enum": list(SUSPENDED)}), "", "no")


class ManagedUser(User):
    """A user as administrators change it. A new one of the console without a password gets a
    sign-in link."""

    component = "User"
    password = member(
        Password(load_only=True),
        "At least 5 characters. Leave it empty to get a sign-in link for the user.",
        "correct horse",
        label="Password",
        fixed=True,
    )
    suspended: Any = member(
        Choice(tuple(SUSPENDED)),
        "The API keys and browser sessions of a suspended user are refused. What was begun before, "
        "such as an import, goes on.",
        "access",
        label="Suspended",
        options=SUSPENDED,
    )


def register(members: Row, *, admin: bool = False) -> Row:
    """Store a user with a new API key and return the id, e-mail address and name. One without a
    password has an empty hash, which no password matches, and sets one at the first sign-in with a
    link."""
    password, user_id = members.pop("password", None), users.next_id()
    password_hash = passwords.hashed(password) if password else ""
    members["admin"] = admin or bool(members.get("admin"))
    return users.add(user_id, **keys.new_key(user_id), **members, password_hash=password_hash)
