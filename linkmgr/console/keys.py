from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import confirmation, queries
from linkmgr.console.forms import LIST
from linkmgr.console.frame import blueprint
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core.database.statements import Row
from linkmgr.core.database.transaction import in_transaction
from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.rotation import Rotation
from linkmgr.core.hooks import hooks
from linkmgr.core.web import scopes
from linkmgr.features.scoped_keys import repository as api_keys
from linkmgr.features.scoped_keys.schema import KEYS, rotate_secret

bp = blueprint("key_pages", "/console")

ACTIONS = (scopes.READ, scopes.CREATE, scopes.WRITE)
_LABELS = {  # of the words of scopes; the others are their own
    "bio": "Bio "
    "pages", "keys": "API keys", "overlay": "Overlays", "qr": "QR codes", "splash": "Splash pages",
    "stats": "Statistics", "utm": "UTM templates", "webhooks": "Webhooks, events",
}  # fmt: skip


@bp.post("/keys/default")
def key_default() -> Response:
    active = request.form.get("active") == "1"
    try:
        if active:
            confirmation.require()
        api_keys.set_default(g.user_id, active=active)
        flash(f"The default key has been turned {'on' if active else 'off'}.", "success")
    except AppError as error:
        flash(error.message, "error")
    return redirect(url_for("key_pages.keys"), code=303)


def _scope_table() -> list[tuple[str, list[str]]]:
    names = scopes.names()
    words = sorted(
        {name.partition(":")[0] for name in names if ":" in name}, key=lambda word: (word != "links", word)
    )
    table = [
        (_LABELS.get(word, word.capitalize()), [f"{word}:{action}" for action in ACTIONS]) for word in words
    ]
    return [(label, [name if name in names else "" for name in row]) for label, row in table]


class KeyForm(StoredForm):
    bp = bp
    list_template = "console/keys.html"
    template = "console/key_form.html"
    after = LIST
    can_duplicate = False
    example = (
        "Give each program its own key, which allows only what the program needs. For example, a "
        "key can create links and do nothing else."
    )
    consequence = "Programs that use it stop working at once."

    def check(self, _members: Row) -> dict[str, str]:
        return confirmation.problem()  # a key gives lasting access

    def options(self) -> dict[str, dict[str, str]]:
        return {"domains": queries.choices(g.user_id)["domain"]}

    def choices(self) -> Row:
        return {"table": _scope_table()}

    def add(self, user_id: int, members: Row) -> Row:
        with in_transaction():
            row = super().add(user_id, members)
            hooks().notify(user_id, "account_changed", change=f"The API key {members['name']} was created.")
        return row

    def show_new(self, row: Row) -> str:
        return render_template("console/key_made.html", secret=row["key"])


FORM = KeyForm(KEYS)
FORM.add_urls("/keys", "/keys/new", "/keys/<id:row_id>/edit", "/keys/<id:row_id>/delete")


# --- rotation


@bp.get("/keys/<id:row_id>/rotate")
def key_rotate(row_id: int, problem: str = "", *, has_changed: bool = False) -> str:
    row = api_keys.read(g.user_id, row_id)
    return render_template("console/key_rotate.html", row=row, problem=problem, has_changed=has_changed)


@bp.post("/keys/<id:row_id>/rotate")
def key_rotate_now(row_id: int) -> ResponseReturnValue:
    if messages := confirmation.problem():
        return key_rotate(row_id, messages["current_password"]), 400
    rotation = load(Rotation, {"overlap": request.form.get("overlap", 0, int)})
    try:
        with in_transaction():
            secret = rotate_secret(g.user_id, row_id, version=request.form.get("version"), **rotation)["key"]
            hooks().notify(g.user_id, "account_changed", change="An API key was replaced.")
    except AppError as error:
        if error.code != "changed_meanwhile":
            raise
        return key_rotate(row_id, has_changed=True), error.status
    return render_template("console/key_made.html", secret=secret)
