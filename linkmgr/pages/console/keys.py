"""API keys: the list, the form, and a new key, which is shown once."""

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.api import keys as api
from linkmgr.db.statements import Row
from linkmgr.fields.base import load, page_number
from linkmgr.pages.account import confirm_password
from linkmgr.pages.console import key_form
from linkmgr.pages.console.forms import Form
from linkmgr.pages.console.frame import bp
from linkmgr.repository import api_keys
from linkmgr.web import keys as web_keys
from linkmgr.web.errors import AppError

PER_PAGE = 15


@bp.get("/keys")
def keys() -> str:
    page = api_keys.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template("console/keys.html", page=page, default=api_keys.default(g.user_id))


@bp.post("/keys/default")
def key_default() -> Response:
    active = request.form.get("active") == "1"
    try:
        api_keys.set_default(g.user_id, active=active)
        flash(f"The default key has been turned {'on' if active else 'off'}.", "success")
    except AppError as error:
        flash(error.message, "error")
    return redirect(url_for("console.keys"), code=303)


def _add(user_id: int, members: Row) -> Row:
    secret = web_keys.new_scoped_key()
    key_id = api_keys.add(user_id, api_keys.most_of(user_id), secret=secret, **members)
    g.secret = secret
    return {"id": key_id}


def _change(user_id: int, key_id: int, members: Row) -> None:
    api_keys.update(user_id, key_id, api_keys.most_of(user_id), **members)


def _delete(user_id: int, key_id: int) -> None:
    api_keys.delete(user_id, key_id, api_keys.most_of(user_id))


class KeyForm(Form):
    def _add(self) -> ResponseReturnValue:
        """Show the new key in the response to the form, so that no URL of the browser's history shows it."""
        answer = super()._add()
        return render_template("console/key_made.html", secret=g.secret) if "secret" in g else answer


FORM = KeyForm(add=_add, change=_change, delete=_delete, **key_form.OPTIONS).register()


@bp.get("/keys/<id:row_id>/rotate")
def key_rotate(row_id: int, problem: str = "") -> str:
    key, email = api_keys.read(g.user_id, row_id), api_keys.owner(g.user_id)["email"]
    return render_template("console/key_rotate.html", row=key, email=email, problem=problem)


@bp.post("/keys/<id:row_id>/rotate")
def key_rotate_now(row_id: int) -> ResponseReturnValue:
    try:
        confirm_password()
    except AppError as error:
        return key_rotate(row_id, error.message), error.status
    rotation = load(api.KeyRotation, {"overlap": request.form.get("overlap", 0, int)})
    secret = web_keys.new_scoped_key()
    api_keys.rotate(g.user_id, row_id, api_keys.most_of(g.user_id), secret=secret, **rotation)
    return render_template("console/key_made.html", secret=secret)
