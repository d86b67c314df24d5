from typing import Any

from flask import g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import confirmation, plan_use, signed_in
from linkmgr.console.account import require_strong
from linkmgr.console.admin_access import bp
from linkmgr.console.controls import lines, to_number
from linkmgr.console.forms import PAGE, PER_PAGE
from linkmgr.console.frame import flash_with_warnings
from linkmgr.console.stored_forms import FormWithDelete
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields.bodies import load, problems
from linkmgr.core.fields.query import page_number, query_text
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import session_store
from linkmgr.repository import account as accounts
from linkmgr.repository import link_lists, plans, users
from linkmgr.schemas.plans import Subscription
from linkmgr.schemas.users import ManagedUser, register

_PLAN = {"plan": "New plan", "type": "Duration", "expiration": "End"}


class UserForm(FormWithDelete):
    template = "console/user_form.html"
    after = PAGE
    bp = bp
    typed = "username"
    can_duplicate = False
    consequence = (
        "This deletes the user, all links and everything else that the user owns. Visitors of "
        "their short URLs will see a page that says they do not exist."
    )

    def show_list(self) -> str:
        q = query_text("q")
        page = users.index(q=q, limit=PER_PAGE, number=page_number(), after=None)
        return render_template("administration/users.html", form=self, page=page, searched=q)

    def page(self, row_id: int, **values: Any) -> str:
        account = self.read(g.user_id, row_id)
        values = {"record": dict.fromkeys(_PLAN, ""), "problems": {}} | values
        return render_template(
            "administration/user.html",
            form=self,
            account=account,
            usage=plan_use.usage(account),
            plans=plans.all_plans(),
            links=link_lists.index(row_id, limit=PER_PAGE, number=1, after=None),
            **values,
        )

    def read(self, _user_id: int, row_id: int) -> Row:
        return accounts.overview(row_id) | {"id": row_id}

    def add(self, _user_id: int, members: Row) -> Row:
        has_password = members["password"] is not None
        row = register(members)
        return row if has_password else row | {"secret": session_store.new_link(row["id"])}

    def change(self, user_id: int, row_id: int, members: Row) -> None:
        before = users.owner(row_id)["email"]
        users.update(row_id, by=user_id, **members)
        if members.get("email") not in (None, before):
            hooks().notify(row_id, "email_changed", to=before, email=members["email"])

    def delete(self, user_id: int, row_id: int) -> None:
        users.delete(row_id, by=user_id)

    def check(self, members: Row) -> dict[str, str]:
        password, names = members.get("password"), (members.get("username", ""), members.get("email", ""))
        if password and not settings().passwords:
            return {"password": AppError("passwords_off").message}
        weak = refusal(lambda: require_strong(password, *names)) if password else None
        return confirmation.problem() | ({"password": weak.message} if weak else {})

    def options(self) -> dict[str, dict[str, str]]:
        premium = {str(plan["id"]): plan["name"] for plan in plans.all_plans() if not plan["free"]}
        return {"planid": {"": "Free plan"} | premium}

    def show_new(self, row: Row) -> ResponseReturnValue:
        return self.page(row["id"], login_link=row["secret"]) if "secret" in row else super().show_new(row)


FORM = UserForm(ManagedUser, "user")
FORM.add_urls("/users", "/users/new", "/users/<id:row_id>/edit", "/users/<id:row_id>/delete")
bp.add_url_rule("/users/<id:row_id>", "user", FORM.page)


@bp.post("/users/<id:row_id>/plan")
def user_plan(row_id: int) -> ResponseReturnValue:
    record = {name: lines(request.form.get(name, "")) for name in _PLAN}
    sent = record | {"expiration": signed_in.from_control(record["expiration"])}
    messages = {name: f"{_PLAN[name]} {problem}." for name, problem in problems(Subscription, sent).items()}
    plan = to_number(record["plan"])
    plan_id = plan if isinstance(plan, int) else 0
    if not messages and refusal(
        lambda: plans.subscribe(plan_id, row_id, **load(Subscription, sent)), "missing"
    ):
        # A user who is missing is a 404 of the page
        messages = {"plan": "New plan must be one of the plans."}
    if messages:
        return FORM.page(row_id, record=record, problems=messages), 400
    flash_with_warnings("Plan changed.", _PLAN)
    return redirect(url_for("administration.user", row_id=row_id), code=303)


@bp.post("/users/<id:row_id>/login")
def user_login(row_id: int) -> ResponseReturnValue:
    """Show a sign-in link once: only its digest is stored. A link for oneself would replace the
    password."""
    if row_id == g.user_id:
        raise AppError("own_login_link")
    if messages := confirmation.problem():
        return FORM.page(row_id, problems=messages), 400
    return FORM.page(row_id, login_link=session_store.new_link(row_id))
