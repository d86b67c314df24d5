"""Users: find, create, sign in and delete them, and change their plans."""

from typing import Any

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from psycopg2 import IntegrityError

from linkmgr.api.plans import Subscription
from linkmgr.api.users import NewUser, create
from linkmgr.db.statements import Row
from linkmgr.fields.base import load, problems
from linkmgr.fields.query import page_number, query_text
from linkmgr.pages import account as account_page
from linkmgr.pages import signed_in
from linkmgr.pages.administration.blueprint import bp
from linkmgr.pages.console.forms import flash_with_warnings, lines, to_number
from linkmgr.repository import account as accounts
from linkmgr.repository import administration as repository
from linkmgr.repository import login, plans
from linkmgr.repository import users as stored_users
from linkmgr.web import errors, keys
from linkmgr.web.errors import AppError

PER_PAGE = 15
_USER = {"username": "Name", "email": "E-mail address", "password": "Password", "planid": "Plan", "expiration": "End"}
_PLAN = {"plan": "New plan", "type": "Duration", "expiration": "End"}
_FIELDS = {"username_taken": "username", "email_taken": "email", "plan_not_premium": "planid"}


@bp.get("/users")
def users() -> str:
    q = query_text("q")
    page = repository.users(q=q, limit=PER_PAGE, number=page_number(), after=None)
    return render_template("administration/users.html", page=page, q=q)


def _user_form(record: Row, messages: dict[str, str]) -> str:
    return render_template(
        "administration/user_form.html",
        record=record,
        problems=messages,
        labels=_USER,
        noun="user",
        plans=[plan for plan in plans.all_plans() if not plan["free"]],
    )


@bp.get("/users/new")
def user_new() -> str:
    return _user_form(dict.fromkeys(_USER, ""), {})


@bp.post("/users/new")
def user_add() -> ResponseReturnValue:
    record: Any = {name: lines(request.form.get(name, "")) for name in _USER}
    sent = record | {
        "password": record["password"] or keys.new_token(),
        "planid": to_number(record["planid"]),
        "expiration": signed_in.from_control(record["expiration"]),
    }
    messages = {name: f"{_USER[name]} {problem}." for name, problem in problems(NewUser, sent).items()}
    if not messages:
        try:
            user_id = create(load(NewUser, sent))["id"]
        except (AppError, IntegrityError) as error:
            app_error = errors.as_app_error(error)
            if app_error is None or app_error.code not in _FIELDS:
                raise
            messages = {_FIELDS[app_error.code]: app_error.message}
        else:
            flash("User created. Create a sign-in link below to let the user in without a password.", "success")
            return redirect(url_for("administration.user", row_id=user_id), code=303)
    return _user_form(record, messages), 400


def _user_page(row_id: int, **values: Any) -> str:
    account = accounts.overview(row_id)
    usage = account_page.usage(account)
    values = {"record": dict.fromkeys(_PLAN, ""), "problems": {}} | values
    return render_template(
        "administration/user.html", row_id=row_id, account=account, usage=usage, plans=plans.all_plans(), **values
    )


@bp.get("/users/<id:row_id>")
def user(row_id: int) -> str:
    return _user_page(row_id)


@bp.post("/users/<id:row_id>/plan")
def user_plan(row_id: int) -> ResponseReturnValue:
    record = {name: lines(request.form.get(name, "")) for name in _PLAN}
    sent = record | {"expiration": signed_in.from_control(record["expiration"])}
    messages = {name: f"{_PLAN[name]} {problem}." for name, problem in problems(Subscription, sent).items()}
    plan = to_number(record["plan"])
    if not messages:
        try:
            plans.subscribe(plan if isinstance(plan, int) else 0, row_id, **load(Subscription, sent))
        except AppError as error:
            if error.code != "missing":
                raise
            messages = {"plan": "New plan must be one of the plans."}  # a user who is missing is a 404 of the page
        else:
            flash_with_warnings("Plan changed.")
            return redirect(url_for("administration.user", row_id=row_id), code=303)
    return _user_page(row_id, record=record, problems=messages), 400


@bp.post("/users/<id:row_id>/login")
def user_login(row_id: int) -> str:
    """Show a sign-in link once: only its digest is stored."""
    return _user_page(row_id, login_link=login.new_link(row_id))


@bp.route("/users/<id:row_id>/delete", methods=["GET", "POST"])
def user_delete(row_id: int) -> ResponseReturnValue:
    account, message = accounts.overview(row_id), ""
    if request.method == "POST":
        message = "Type the name of the user exactly as it is shown."
        if request.form.get("name", "") == account["username"]:
            try:
                stored_users.delete(row_id, by=g.user_id)
            except AppError as error:
                message = error.message
            else:
                flash(f"{account['username']} has been deleted.", "success")
                return redirect(url_for("administration.users"), code=303)
    page = render_template("administration/user_delete.html", row_id=row_id, account=account, message=message)
    return page, 400 if message else 200
