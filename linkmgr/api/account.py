"""/api/account"""

from flask import Blueprint, Response
from marshmallow import ValidationError, validates_schema

from linkmgr.fields.base import Changes, Email, Password, body
from linkmgr.fields.member import member
from linkmgr.repository import account as accounts
from linkmgr.settings import settings
from linkmgr.web import passwords
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, updated, versioned

bp = Blueprint("account", __name__)


class AccountUpdate(Changes):
    email = member(Email(), "The new e-mail address. It is unique, ignoring case.", "new@example.com")
    password = member(
        Password(),
        "The new password. It ends the user's browser sessions and cancels unused sign-in links.",
        "correct horse battery",
    )

    @validates_schema
    def check_not_empty(self, data: Json, **_: object) -> None:
        if not data:
            raise ValidationError("Send email, password or both")


@bp.get("/account")
@bp.post("/account")  # clients read with POST
def read() -> Response:
    user = caller()
    assert user.version
    return versioned(
        user.version,
        data={
            "id": user.id,
            "email": user.email,
            "username": user.username,
            "avatar": f"{settings().base_url}/avatar/{user.username}.png",
            "status": user.status,
            "expires": user.expires,
            "registered": user.registered,
        },
    )


@bp.put("/account/update")
def update() -> Response:
    changes = body(AccountUpdate)
    if "password" in changes:
        changes["password_hash"] = passwords.hashed(changes.pop("password"))
    account = accounts.update(user_id(), **changes)
    return updated("Account has been successfully updated.", account.pop("version"), data=account)
