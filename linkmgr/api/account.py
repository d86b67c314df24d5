"""/api/account"""

from flask import Blueprint, Response

from linkmgr.fields.bodies import body
from linkmgr.repository import account as accounts
from linkmgr.resources.account import Account
from linkmgr.web import passwords
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import updated, versioned

bp = Blueprint("account", __name__)


@bp.get("/account")
@bp.post("/account")  # clients read with POST
def read() -> Response:
    user = caller()
    assert user.version
    return versioned(user.version, data={name: getattr(user, name) for name in Account.shown()})


@bp.put("/account/update")
def update() -> Response:
    changes = body(Account.updates())
    if "password" in changes:
        changes["password_hash"] = passwords.hashed(changes.pop("password"))
    account = accounts.update(user_id(), **changes)
    return updated("Account has been successfully updated.", account.pop("version"), data=account)
