from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema

from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Email, Matching, Password, Shown, Timestamp
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.links import OwnDomain
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import Resource, row_id, updated
from linkmgr.core.hooks import hooks
from linkmgr.repository import account as accounts

STATUSES = ("admin", "free", "pro")


class Username(Matching):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__("[A-Za-z0-9_.-]{3,50}", "3 to 50 letters, digits, '_', '.' or '-'", **kwargs)


class AccountBody(Body):
    @validates_schema
    def check_not_empty(self, data: Row, **_: object) -> None:
        if not data:
            raise ValidationError("Send email, password or domain")


class Person(Resource):
    id = row_id()
    email = member(
        Email(required=True),
        "The e-mail address. It is unique, ignoring case.",
        "new@example.com",
        label="E-mail address",
    )
    username = member(Username(dump_only=True), "", "dana", fixed=True)
    avatar = member(
        Shown({"type": "string", "pattern": "^https?://"}), "", "https://go.example.org/avatar/dana.png"
    )
    status = member(Shown({"type": "string", "enum": list(STATUSES)}), "", "pro", fixed=True)
    expires = member(Timestamp(dump_only=True, allow_none=True), "", "2026-11-21 09:30:00")
    registered = member(Timestamp(dump_only=True), "", "2026-11-21 09:30:00")
    updated = updated()
    password = member(
        Password(load_only=True),
        "The new password. It ends the user's browser sessions and cancels unused sign-in links.",
        "correct horse battery",
    )


class Account(Person):
    body: ClassVar[type[Body]] = AccountBody

    domain = member(
        OwnDomain(allow_empty=True, allow_none=True),
        'The domain of new links in forms of the console, or `null` for this service. `""` in an update sets this '
        "service. An operation of the API that creates a link uses it if `domain` is `default`.",
        "https://go.example.com",
        removed="",
    )


def change_account(user_id: int, **changes: Any) -> Row:
    """Change an account as `accounts.update` does, and notify the user of a new password, at a new
    address also the one before."""
    with transaction.in_transaction():
        account = accounts.update(user_id, **changes)
        before = account.pop("email_before")
        if account["email"] != before:
            hooks().notify(user_id, "email_changed", to=before, email=account["email"])
        if changes.get("password_hash"):
            hooks().notify(user_id, "account_changed", change="The password was changed.")
    return account
