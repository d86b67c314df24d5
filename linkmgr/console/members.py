"""Members of the account, its activity, and what a person does in the accounts of others."""

from flask import Blueprint, flash, g, redirect, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import confirmation, login, signed_in
from linkmgr.console.forms import LIST, PER_PAGE
from linkmgr.console.frame import blueprint
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, existing, required
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.query import query_position, values_of
from linkmgr.core.web import security_headers, session_store, sessions
from linkmgr.features.activity import handlers as api
from linkmgr.features.members import repository as members
from linkmgr.features.members.schema import MEMBERS, ROLES
from linkmgr.features.signin import accounts
from linkmgr.features.webhooks import activity
from linkmgr.public.home import first_page

bp = blueprint("member_pages", "/console")
of_person = Blueprint("membership", __name__, url_prefix=signed_in.OF_PERSON)
of_person.after_request(security_headers.keep_private)


class MemberForm(StoredForm):
    bp = bp
    list_template = "console/members.html"
    template = "console/member_form.html"
    after = LIST
    can_duplicate = False
    example = (
        "Invite others to work in this account, with their own sign-in. For example, a colleague who "
        "creates links, or a customer who looks at the statistics."
    )
    consequence = "Rows and API keys that a member has made remain."
    afterwards = "The person has no access from now on."

    def check(self, _members: Row) -> dict[str, str]:
        return confirmation.problem()  # a member has lasting access

    def choices(self) -> Row:
        return {"roles": ROLES}

    def show_new(self, row: Row) -> str:
        return render_template("console/member_made.html", row=row)

    def title(self, row: Row) -> str:
        return str(row["name"])


FORM = MemberForm(MEMBERS)
FORM.add_urls("/members", "/members/new", "/members/<id:row_id>/edit", "/members/<id:row_id>/delete")


@bp.get("/members/activity")
def activity_page() -> str:
    if not has_feature("activity"):
        raise AppError("no_such_page")
    before = query_position("before")
    page = activity.index(
        g.user_id, **api.selected(values_of(api.ACTIVITY)), limit=PER_PAGE, number=1, after=before or None
    )
    return render_template(
        "console/activity.html", page=page, before=before, kinds=api.KINDS, days=activity.DAYS_KEPT
    )


# --- the accounts of others


@of_person.post("/switch")
def switch() -> Response:
    account_id = request.form.get("account", 0, int)
    if not session_store.work_in(g.session, account_id):
        raise AppError("account_lost")
    return redirect(first_page(), code=303)


@of_person.post("/leave")
def leave() -> Response:
    account_id = request.form.get("account", 0, int)
    existing(members.leave(g.person_id, account_id) or None, "account")
    session_store.work_in(g.session, g.person_id)
    flash("You no longer work in that account.", "success")
    return redirect(first_page(), code=303)


@of_person.get("/invitation/<token>")
def show_invitation(token: str) -> str:
    """Ask whether to accept an invitation. GET does not use it up, because mail scanners and link
    previews fetch it."""
    invitation = required(members.invitation(keys.digest(token)), "invitation_spent")
    current = sessions.current()
    person = current and not current["suspended"] and current["person"]
    is_welcome = accounts.is_welcome(invitation["email"], is_verified=True)
    registering = next(iter(login.ways().values()), None) if is_welcome else None
    return render_template(
        "invitation.html", invitation=invitation, person=person, roles=ROLES, registering=registering
    )


@of_person.post("/invitation/<token>")
def accept(token: str) -> Response:
    account_id = required(members.accept(g.person_id, keys.digest(token)), "invitation_spent")
    session_store.work_in(g.session, account_id)
    flash("You now work in this account. The menu at the top switches to your own.", "success")
    return redirect(first_page(), code=303)


@of_person.before_request
def _require_session() -> ResponseReturnValue | None:
    return None if request.endpoint == "membership.show_invitation" else signed_in.require_session()
