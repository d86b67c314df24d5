"""Resources that are alike: one control for each member, a list of names, and perhaps a preview beside the form."""

from functools import partial
from typing import Any

from flask import g, render_template, request
from werkzeug.wrappers import Response

from linkmgr.db.statements import Page, Row
from linkmgr.fields.query import page_number
from linkmgr.pages import interstitial
from linkmgr.pages.console import controls
from linkmgr.pages.console.controls import FormData
from linkmgr.pages.console.forms import Form
from linkmgr.pages.console.frame import bp
from linkmgr.repository import console_queries
from linkmgr.resources.resource import Resource
from linkmgr.web import security_headers

Kind = type[Resource]

PER_PAGE = 15
_framing: set[str] = set()  # beginnings of the endpoints whose pages show a preview in a frame


def from_form(kind: Kind, defaults: Row, form: FormData) -> Row:
    """Return the record of what was typed. `defaults` are the values of an empty form."""
    return {name: controls.read(field, name, form, defaults.get(name, "")) for name, field in kind.controls().items()}


def from_row(kind: Kind, row: Row) -> Row:
    """Return the record of a stored row."""
    return {name: controls.shown(field, row.get(name)) for name, field in kind.controls().items()}


def changes(kind: Kind, record: Row, stored: Row) -> Row:
    """Return the members that differ, those that checkboxes remove, and those that an update needs."""
    fields = kind.updates()().fields
    changes = {name: record[name] for name in fields if record[name] != stored[name]}
    changes |= {name: "" for name in fields if fields[name].load_only and f"{name}.remove" in request.form}
    return changes and {name: record[name] for name in fields if fields[name].required} | changes


def _show_list(form: Form) -> str:
    page = form.kind.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    if form.used and page.rows:
        ids = [row["id"] for row in page.rows]
        states = console_queries.uses(g.user_id, ids, kind=form.kind.path)
        uses = {row["id"]: row for row in states}
        page.rows[:] = [row | uses.get(row["id"], {}) for row in page.rows]
    return show_rows(form, page)


def declared(kind: Kind, **members: Any) -> Form:
    """Add the list and the form of a resource whose members have labels. `defaults` are the values of an empty form."""
    usual: Row = {
        "name": kind.path,
        "plural": kind.plural,
        "noun": kind.noun,
        "from_form": partial(from_form, kind, members.pop("defaults", kind.defaults())),
        "from_row": partial(from_row, kind),
        "changes": partial(changes, kind),
        "read": kind.read,
        "add": kind.create,
        "change": kind.change,
        "delete": kind.delete,
        "show_list": _show_list,
    }
    return Form(kind=kind, **(usual | members)).register()


def show_rows(form: Form, page: Page, **values: Any) -> str:
    """Render the list of a resource."""
    return render_template(f"console/{form.plural}.html", page=page, form=form, **(values | form.choices()))


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
