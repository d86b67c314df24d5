"""Resources that are alike: one control for each member, a list of names, and perhaps a preview beside the form."""

from typing import Any

from flask import g, render_template, request
from marshmallow import Schema
from werkzeug.wrappers import Response

from linkmgr.db.statements import Page, Row
from linkmgr.fields.base import Array, Boolean, Color, Id, Integer, Timestamp
from linkmgr.fields.colors import to_hex
from linkmgr.fields.query import page_number
from linkmgr.pages import interstitial, signed_in
from linkmgr.pages.console.forms import Form, FormData, lines, to_number
from linkmgr.pages.console.frame import bp
from linkmgr.repository import console_queries
from linkmgr.resources.resource import Resource
from linkmgr.web import security_headers

PER_PAGE = 15
MANY = 1000  # uses of a row; more are not counted
_framing: set[str] = set()  # beginnings of the endpoints whose pages show a preview in a frame


def _typed(field: Any, name: str, form: FormData, default: Any) -> Any:
    """Return a value of the type that the API takes. Other text in place of an integer is kept for its message."""
    if isinstance(field, Boolean):
        return name in form
    if isinstance(field, Array):
        return [to_number(text) for text in form.getlist(name)] if form else default or []
    text = lines(form.get(name, str(default)))
    if isinstance(field, Timestamp):
        return signed_in.from_control(text)
    return to_number(text) if isinstance(field, Integer | Id) else text


def declared(kind: type[Resource], **members: Any) -> Form:
    """Add the list and the form of a resource whose members have labels."""
    usual: Row = {
        "name": kind.path,
        "plural": kind.plural,
        "noun": kind.noun,
        "id_name": kind.id_name(),
        "labels": {name: (f.metadata["label"], f.metadata["description"]) for name, f in kind.controls().items()},
        "defaults": kind.defaults(),
        "add": kind.create,
        "change": kind.change,
    }
    return resource(kind.path, kind, kind.creates(), kind.updates(), **(usual | members))


def form(rows: Any, new: type[Schema], changed: type[Schema], **members: Any) -> Form:
    """Add the form of a resource. `rows` is its module of `repository`, which has the name of its blueprint, and
    `defaults` are the values of an empty form."""
    fields, changeable, defaults = new().fields, changed().fields, members.pop("defaults", {})

    def changes(record: Row, stored: Row) -> Row:
        differing = {name: record[name] for name in changeable if record[name] != stored[name]}
        return differing and {name: record[name] for name in changeable if changeable[name].required} | differing

    def add(user_id: int, values: Row) -> Row:
        added = rows.add(user_id, **values)
        return added if isinstance(added, dict) else {"id": added}

    def from_form(form: FormData) -> Row:
        return {name: _typed(fields[name], name, form, defaults.get(name, "")) for name in fields}

    def from_row(row: Row) -> Row:
        colors = {name: to_hex(row[name]) for name in fields if isinstance(fields[name], Color) and row[name]}
        return {name: row[name] for name in fields} | colors

    name = members["name"]
    usual: Row = {
        "plural": f"{name}s",
        "noun": name,
        "blueprint": rows.__module__.rpartition(".")[2] if isinstance(rows, type) else rows.__name__.rpartition(".")[2],
    }
    usual |= {"id_name": f"{name}_id", "from_form": from_form, "from_row": from_row, "changes": changes, "add": add}
    usual |= {verb: getattr(rows, verb) for verb in ("read", "delete") if verb not in members}
    usual["change"] = lambda user_id, row_id, values: rows.update(user_id, row_id, **values)
    return Form(new=new, changed=changed, **(usual | members)).register()


def show_rows(form: Form, page: Page, **values: Any) -> str:
    """Render the list of a resource."""
    return render_template(f"console/{form.plural}.html", page=page, form=form, **(values | form.choices()))


def resource(kind: str, rows: Any, new: type[Schema], changed: type[Schema], **members: Any) -> Form:
    """Add the list and the form of a resource. `kind` is its name in `console_queries.uses`."""

    def show_list() -> str:
        page = rows.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
        ids = [row["id"] for row in page.rows]
        used = ids and resource_form.used
        states = console_queries.uses(g.user_id, ids, kind=kind, limit=MANY + 1) if used else []
        uses = {row["id"]: row for row in states}
        page.rows[:] = [row | uses.get(row["id"], {}) for row in page.rows]
        return show_rows(resource_form, page, many=MANY)

    usual = {"name": kind, "id_name": f"{kind}_id", "show_list": show_list}
    resource_form = form(rows, new, changed, **(usual | members))
    return resource_form


def add_preview(form: Form, kind: str) -> None:
    """Add the pages for the frame beside the form: what was typed, and what is stored."""

    def typed() -> Response:
        return interstitial.preview(kind, form.from_form(request.values))

    def stored(row_id: int) -> Response:
        return interstitial.preview(kind, form.read(g.user_id, row_id))

    bp.add_url_rule(f"/{form.plural}/preview", f"{form.name}_typed", typed, methods=["GET", "POST"])
    bp.add_url_rule(f"/{form.plural}/<id:row_id>/preview", f"{form.name}_preview", stored)
    form.has_preview = True
    _framing.add(f"console.{form.name}")


@bp.after_request
def _allow_frame(response: Response) -> Response:
    if (request.endpoint or "").rpartition("_")[0] in _framing and "Content-Security-Policy" not in response.headers:
        name, policy = security_headers.policy(request.environ)
        response.headers[name] = f"{policy}; frame-src 'self'"
    return response
