"""API keys: the list, the form, and a new key, which is shown once."""

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.api import keys as api
from linkmgr.db.statements import Row
from linkmgr.fields.base import load
from linkmgr.fields.query import page_number
from linkmgr.pages import signed_in
from linkmgr.pages.account import confirm_password
from linkmgr.pages.console.forms import Form, FormData, differing, lines, to_number
from linkmgr.pages.console.frame import bp
from linkmgr.repository import api_keys, overviews
from linkmgr.web import keys as web_keys
from linkmgr.web import scopes
from linkmgr.web.errors import AppError

PER_PAGE = 15
MAX_CHOICES = 200
ACTIONS = (scopes.READ, scopes.CREATE, scopes.WRITE)
_LABELS = {  # of the words of scopes; the others are their own
    "bio": "Bio pages", "keys": "API keys", "overlay": "Overlays", "qr": "QR codes", "splash": "Splash pages",
    "stats": "Statistics", "webhooks": "Webhooks, events",
}  # fmt: skip


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


# --- the form


def _from_form(form: FormData) -> Row:
    domains = [to_number(text) for text in form.getlist("domains")]
    return {
        "name": lines(form.get("name", "")),
        "scopes": sorted(set(form.getlist("scopes"))),
        "domains": sorted(domains, key=str),
        "own_only": bool(form.get("own_only")),
        "expires": signed_in.from_control(form.get("expires", "")),
        "allowed_ips": lines(form.get("allowed_ips", "")).replace(",", " ").split(),
    }


def _from_key(key: Row) -> Row:
    ordered = {"scopes": sorted(key["scopes"]), "domains": sorted(key["domains"], key=str)}
    return (
        {name: key[name] for name in ("name", "own_only", "allowed_ips")} | ordered | {"expires": key["expires"] or ""}
    )


def _changes(record: Row, stored: Row) -> Row:
    """Return the members that differ. `own_only` cannot be changed."""
    return differing(record | {"own_only": stored["own_only"]}, stored)


def _check_password(_members: Row) -> dict[str, str]:
    """Ask for the current password, because a key gives lasting access."""
    try:
        confirm_password()
    except AppError as error:
        return {"current_password": error.message}
    return {}


def _scope_table() -> list[tuple[str, list[str]]]:
    """Return the words with their scopes, by action; "" if an action has none. Links come first."""
    names = scopes.names()
    words = sorted({name.partition(":")[0] for name in names if ":" in name}, key=lambda word: (word != "links", word))
    table = [(_LABELS.get(word, word.capitalize()), [f"{word}:{action}" for action in ACTIONS]) for word in words]
    return [(label, [name if name in names else "" for name in row]) for label, row in table]


def _choices() -> Row:
    rows, owner = overviews.choices(g.user_id, limit=MAX_CHOICES), api_keys.owner(g.user_id)
    domains = [row for row in rows if row["kind"] == "domain"]
    return {"table": _scope_table(), "is_admin": owner["admin"], "email": owner["email"], "domains": domains}


def _add(user_id: int, members: Row) -> Row:
    g.secret = web_keys.new_scoped_key()
    return {"id": api_keys.add(user_id, api_keys.most_of(user_id), secret=g.secret, **members)}


class KeyForm(Form):
    def _add(self) -> ResponseReturnValue:
        """Show the new key in the response to the form, so that no URL of the browser's history shows it."""
        answer = super()._add()
        is_added = isinstance(answer, Response)
        return render_template("console/key_made.html", secret=g.secret) if is_added else answer


KeyForm(
    name="key",
    plural="keys",
    noun="API key",
    blueprint="keys",
    id_name="key_id",
    new=api.NewKey,
    changed=api.KeyChanges,
    from_form=_from_form,
    from_row=_from_key,
    read=api_keys.read,
    add=_add,
    change=lambda user_id, key_id, members: api_keys.update(user_id, key_id, api_keys.most_of(user_id), **members),
    delete=lambda user_id, key_id: api_keys.delete(user_id, key_id, api_keys.most_of(user_id)),
    labels={
        "name": "Name", "scopes": "Scopes", "domains": "Domains", "own_only": "Own rows only", "expires": "Expiry",
        "allowed_ips": "IP addresses", "current_password": "Current password",
    },
    fields={"domains_unknown": "domains", "admin_scope": "scopes"},
    changes=_changes,
    check=_check_password,
    choices=_choices,
    after="keys",
).register()  # fmt: skip


# --- rotation


@bp.get("/keys/<id:row_id>/rotate")
def key_rotate(row_id: int, problem: str = "", *, has_changed: bool = False) -> str:
    key, email = api_keys.read(g.user_id, row_id), api_keys.owner(g.user_id)["email"]
    return render_template("console/key_rotate.html", row=key, email=email, problem=problem, has_changed=has_changed)


@bp.post("/keys/<id:row_id>/rotate")
def key_rotate_now(row_id: int) -> ResponseReturnValue:
    try:
        confirm_password()
    except AppError as error:
        return key_rotate(row_id, error.message), error.status
    rotation = load(api.KeyRotation, {"overlap": request.form.get("overlap", 0, int)})
    secret, version = web_keys.new_scoped_key(), request.form.get("version")
    try:
        api_keys.rotate(g.user_id, row_id, api_keys.most_of(g.user_id), secret=secret, version=version, **rotation)
    except AppError as error:
        if error.code != "changed_meanwhile":
            raise
        return key_rotate(row_id, has_changed=True), error.status
    return render_template("console/key_made.html", secret=secret)
