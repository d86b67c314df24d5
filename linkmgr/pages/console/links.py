"""Links: the page of one link, and the forms. Its list is link_list.py."""

from datetime import UTC, datetime

from flask import Response, g, render_template

from linkmgr.db.statements import Row
from linkmgr.fields.query import query_text
from linkmgr.pages import qr as qr_page
from linkmgr.pages import signed_in
from linkmgr.pages.console import link_form, periods
from linkmgr.pages.console.forms import Form
from linkmgr.pages.console.frame import bp
from linkmgr.repository import console_queries, url_records, urls, visit_list
from linkmgr.resources.urls import Link
from linkmgr.settings import settings

_LATEST = 10


@bp.get("/links/<id:row_id>")
def link(row_id: int) -> str:
    """Show a link. Statements: the link, its numbers, and its latest visits."""
    record = url_records.read_named(g.user_id, row_id)
    visits = visit_list.index(g.user_id, row_id, what="link", limit=_LATEST, after=None, bots=[False])
    return render_template(
        "console/link.html",
        form=FORM,
        base_url=settings().base_url,
        row=record,
        is_expired=bool(record["expiry"]) and signed_in.parse_utc(record["expiry"]) <= datetime.now(UTC),
        visits=visits.rows,
        numbers_of=periods.numbers("link", row_id),
    )


@bp.get("/links/<id:row_id>/qr")
def link_qr(row_id: int) -> Response:
    """Draw the QR code of the short URL, which on a branded domain has another host than this page."""
    record = url_records.read(g.user_id, row_id)
    response = qr_page.of_url(record["shorturl"], query_text("size"))
    if query_text("download"):
        name = f"qr-{record['alias']}.{qr_page.requested_format()}"
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _options() -> dict[str, dict[str, str]]:
    """Return the rows that a link can refer to, and fixed values, by member."""
    named, own = console_queries.choices(g.user_id), settings().base_url
    return {
        "domain": {own: own} | {name: name for name in named["domain"].values()},
        "campaign": {"": "None"} | named["campaign"],
        "channel": named["channel"],
        "pixels": named["pixel"],
        "type": {"direct": "Directly", "frame": "In a frame", "splash": "After a plain splash page"}
        | {row_id: f"After the splash page {name}" for row_id, name in named["splash"].items()}
        | {f"overlay-{row_id}": f"Below the overlay {name}" for row_id, name in named["overlay"].items()},
        "status": {"public": "Public", "private": "Private"},
    }


def _add(user_id: int, members: Row) -> Row:
    link_form.warn_expired(members)
    return Link.create(user_id, members)


def _change(user_id: int, link_id: int, members: Row) -> None:
    link_form.warn_expired(members)
    Link.change(user_id, link_id, members)


FORM = Form(
    Link,
    name="link",
    plural="links",
    has_list=False,
    read=url_records.read_current,
    add=_add,
    change=_change,
    delete=urls.delete,
    fields=link_form.FIELDS,
    check=link_form.check,
    options=_options,
    choices=lambda: link_form.choices() | {"base_url": settings().base_url},
    after="link",
    unique=("custom", "password"),
    consequence="Visitors of {shorturl} will see a page that says it does not exist.",
)
