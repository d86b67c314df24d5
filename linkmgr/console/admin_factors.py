from flask import flash, g, redirect, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import confirmation
from linkmgr.console.admin_access import blueprint
from linkmgr.console.admin_users import FORM
from linkmgr.features.signin import factors

bp = blueprint("admin_factors")


@bp.post("/users/<id:row_id>/factors/remove")
def remove(row_id: int) -> ResponseReturnValue:
    """Remove the factors of a user who has lost them."""
    account = FORM.read(g.user_id, row_id)
    if messages := confirmation.problem():
        return FORM.page(row_id, problems={"factors": messages["current_password"]}), 400
    number = factors.delete(row_id)
    flash(f"{account['username']} now has no passkeys and no one-time codes ({number} removed).", "success")
    return redirect(url_for("administration.user", row_id=row_id), code=303)
