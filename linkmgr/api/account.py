"""/api/account"""

from flask import Blueprint
from marshmallow import ValidationError, validates_schema

from linkmgr.fields.base import Changes, Email, Password, body
from linkmgr.repository import account as accounts
from linkmgr.settings import settings
from linkmgr.web import passwords
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, ok

bp = Blueprint("account", __name__)


class AccountChanges(Changes):
    email = Email()
    password = Password()

    @validates_schema
    def names_something(self, data: Json, **_: object) -> None:
        if not data:
            raise ValidationError("Send a new email, a new password or both")


@bp.get("/account")
@bp.post("/account")  # what clients send instead
def read() -> Json:
    """Of whom the gate has let in."""
    me = caller()
    return ok(
        data={
            "id": me.id,
            "email": me.email,
            "username": me.username,
            "avatar": f"{settings().base_url}/avatar/{me.username}.png",
            "status": me.status,
            "expires": me.expires,
            "registered": me.registered,
        }
    )


@bp.put("/account/update")
def update() -> Json:
    changes = body(AccountChanges)
    if "password" in changes:
        changes["password_hash"] = passwords.hashed(changes.pop("password"))
    accounts.update(user_id(), **changes)
    return ok("Account has been successfully updated.")
