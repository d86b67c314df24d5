"""Resources that are alike: one control for each member, a list of names, and perhaps a preview beside the form."""

from types import ModuleType
from typing import Any

from flask import g, render_template, request
from marshmallow import Schema
from werkzeug.wrappers import Response

from linkmgr.db.statements import Row
from linkmgr.fields.base import Boolean, Color, Integer, page_number
from linkmgr.fields.colors import long_notation
from linkmgr.pages import interstitial
from linkmgr.pages.console.forms import Form, FormData, lines
from linkmgr.pages.console.frame import bp
from linkmgr.repository import overviews
from linkmgr.web import security_headers

PER_PAGE = 15
MANY = 1000  # uses of a row; more are not counted
_framing: set[str] = set()  # beginnings of the endpoints whose pages show a preview in a frame


def _typed(field: Any, name: str, form: FormData, default: str) -> Any:
    """Return a value of the type that the API takes. Other text in place of an integer is kept for its message."""
    if isinstance(field, Boolean):
        return name in form
    text = lines(form.get(name, default))
    return int(text[:20]) if isinstance(field, Integer) and text.isascii() and text.isdecimal() else text


def resource(kind: str, rows: ModuleType, new: type[Schema], changed: type[Schema], **members: Any) -> Form:
    """Add the list and the form of a resource. `kind` is its name in `overviews.uses`, `rows` its module of
    `repository`, which has the name of its blueprint, and `defaults` are the values of an empty form."""
    fields, changeable, defaults = new().fields, changed().fields, members.pop("defaults", {})

    def changes(record: Row, stored: Row) -> Row:
        differing = {name: record[name] for name in changeable if record[name] != stored[name]}
        return differing and {name: record[name] for name in changeable if changeable[name].required} | differing

    def add(user_id: int, values: Row) -> Row:
        added = rows.add(user_id, **values)
        return added if isinstance(added, dict) else {"id": added}

    def show_list() -> str:
        page = rows.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
        ids = [row["id"] for row in page.rows]
        uses = {row["id"]: row for row in overviews.uses(g.user_id, ids, kind=kind, limit=MANY + 1)} if ids else {}
        page.rows[:] = [row | uses.get(row["id"], {}) for row in page.rows]
        return render_template(f"console/{form.plural}.html", page=page, form=form, **({"many": MANY} | form.choices()))

    usual: Row = {"name": kind, "plural": f"{kind}s", "noun": kind, "blueprint": rows.__name__.rpartition(".")[2]}
    usual |= {"id_name": f"{kind}_id", "read": rows.read, "add": add, "delete": rows.delete}
    usual["change"] = lambda user_id, row_id, values: rows.update(user_id, row_id, **values)
    form = Form(
        new=new,
        changed=changed,
        from_form=lambda form: {name: _typed(fields[name], name, form, defaults.get(name, "")) for name in fields},
        from_row=lambda row: {
            name: long_notation(row[name]) if isinstance(fields[name], Color) and row[name] else row[name]
            for name in fields
        },
        changes=changes,
        **(usual | members),
    ).register()
    bp.add_url_rule(f"/{form.plural}", form.plural, show_list)
    return form


def add_preview(form: Form, kind: str) -> None:
    """Add the pages for the frame beside the form: what was typed, and what is stored."""

    def typed() -> Response:
        return interstitial.preview(kind, form.from_form(request.values))

    def stored(row_id: int) -> Response:
        return interstitial.preview(kind, form.read(g.user_id, row_id))

    bp.add_url_rule(f"/{form.plural}/preview", f"{form.name}_typed", typed, methods=["GET", "POST"])
    bp.add_url_rule(f"/{form.plural}/<id:row_id>/preview", f"{form.name}_preview", stored)
    _framing.add(f"console.{form.name}")


@bp.after_request
def _allow_frame(response: Response) -> Response:
    if (request.endpoint or "").rpartition("_")[0] in _framing and "Content-Security-Policy" not in response.headers:
        name, policy = security_headers.policy(request.environ)
        response.headers[name] = f"{policy}; frame-src 'self'"
    return response
