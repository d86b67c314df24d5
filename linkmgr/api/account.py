from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.web import passwords
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import updated, versioned
from linkmgr.repository import account as accounts
from linkmgr.schemas.account import Account, change_account

bp = Blueprint("account", __name__, url_prefix="/api")
_ABOUT = """\
`status` is `admin` for administrators, `pro` while a premium plan is in force, and
`free` otherwise. `expires` is the end of the plan, or `null` if it has none."""
SECTION = Section("account", "Account", _ABOUT, lambda: shapes.records_of(Account))


@bp.get("/account")
@operation("account:read", "account.get", shapes.reading_schema(Account), has_etag=True)
def read() -> Response:
    """Read the account.

    Use it to see whose key this is, and when the plan ends. Clicks are in `GET /api/stats`.
    """
    return _account()


def _account() -> Response:
    user = caller()
    assert user.version
    return versioned(user.version, data={name: getattr(user, name) for name in Account.shown()})


@bp.post("/account")  # clients read with POST
@operation("account:read", "account.getByPost", shapes.reading_schema(Account), has_etag=True)
def read_by_post() -> Response:
    """Read the account.

    The same as GET.
    """
    return _account()


@bp.put("/account/update")
@operation(
    "account:write",
    "account.update",
    shapes.changed_schema("Account has been successfully updated.", Account),
    body=Account.updates(),
    errors=("email_taken", "password_busy", "domain_unknown", "account_shared"),
    row="users",
    has_etag=True,
)
def update(changes: Row) -> Response:
    """Change the e-mail address, the password or the default domain.

    Send at least one of them. If the account has had members, only its default key changes the
    e-mail address and the password.
    """
    password = changes.pop("password")
    if caller().key and (password or changes["email"]) and accounts.is_shared(user_id()):
        raise AppError("account_shared")
    password_hash = None if password is None else passwords.hashed(password)
    account = change_account(user_id(), password_hash=password_hash, **changes)
    return updated("Account has been successfully updated.", account.pop("version"), data=account)
