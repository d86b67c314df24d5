"""Links: the list, the forms, and the page of one link."""

from datetime import UTC, datetime
from typing import Any

from flask import Response, g, render_template

from linkmgr.api import urls as api
from linkmgr.db.statements import Row
from linkmgr.fields.base import page_number, query_choice, query_text
from linkmgr.fields.urls import MAX_URL
from linkmgr.pages import qr as qr_page
from linkmgr.pages import signed_in
from linkmgr.pages.console import link_form, periods
from linkmgr.pages.console.forms import Form
from linkmgr.pages.console.frame import bp
from linkmgr.qr import image as qr_image
from linkmgr.qr.cache import image_cache
from linkmgr.repository import overviews, url_details, urls, visit_list
from linkmgr.settings import settings

PER_PAGE = 15
MAX_CHOICES = 200  # of a kind, in the form
_LATEST = 10


# --- the list


@bp.get("/links")
def links() -> str:
    """Show one page of the list. Statements: the list with its total, and states and clicks of its links."""
    q, order = query_text("q", MAX_URL), query_choice("order", ("date", "click")) or "date"
    paging: Any = {"limit": PER_PAGE, "number": page_number(), "after": None}
    if q or order == "click":
        page = urls.search(g.user_id, q=q, by_clicks=order == "click", **paging)
    else:
        page = urls.index(g.user_id, **paging)
    days = periods.spark_days()
    ids = [row["id"] for row in page.rows]
    states = {row["id"]: row for row in overviews.of_links(g.user_id, ids, since=days[0])} if ids else {}
    for row in page.rows:
        row["state"] = states.get(row["id"], {"type": "direct", "public": True})
        periods.add_spark(row, days, row["state"].get("days", {}))
    return render_template("console/links.html", page=page, q=q or "", order=order, base_url=settings().base_url)


# --- the page of a link


@bp.get("/links/<id:row_id>")
def link(row_id: int) -> str:
    """Show a link. Statements: the link, its numbers, and its latest visits."""
    record = url_details.read_current(g.user_id, row_id)
    visits = visit_list.index(g.user_id, row_id, what="link", limit=_LATEST, after=None, bots=[False])
    return render_template(
        "console/link.html",
        link=record,
        is_expired=bool(record["expiry"]) and signed_in.parse_utc(record["expiry"]) <= datetime.now(UTC),
        visits=visits.rows,
        numbers_of=periods.numbers(target_id=row_id),
    )


@bp.get("/links/<id:row_id>/qr")
def link_qr(row_id: int) -> Response:
    """Draw the QR code of the short URL, which on a branded domain has another host than this page."""
    record = url_details.read(g.user_id, row_id)
    form, size = qr_page.requested_format(), qr_page.requested_size(query_text("size"))
    spec = qr_image.image_spec(record["shorturl"], "rgb(0,0,0)", "rgb(255,255,255)", None, form=form, max_pixels=size)
    response = qr_page.image_response(spec, image_cache().get(spec.tag) or qr_page.render(spec, None))
    if query_text("download"):
        response.headers["Content-Disposition"] = f'attachment; filename="{record["alias"]}.{form}"'
    return response


# --- its form


def _choices() -> Row:
    """Return the rows that a link can refer to, by kind."""
    rows = overviews.choices(g.user_id, limit=MAX_CHOICES)
    kinds = ("domain", "campaign", "channel", "pixel", "splash", "overlay")
    return {
        "choices": {kind: [row for row in rows if row["kind"] == kind] for kind in kinds},
        "pairs": link_form.PAIRS,
        "base_url": settings().base_url,
    }


FORM = Form(
    name="link",
    plural="links",
    noun="link",
    blueprint="urls",
    id_name="link_id",
    new=api.NewLink,
    changed=api.LinkChanges,
    from_form=link_form.from_form,
    from_row=link_form.from_link,
    read=url_details.read_current,
    add=api.create,
    change=api.change,
    delete=urls.delete,
    labels=link_form.LABELS,
    fields=link_form.FIELDS,
    changes=link_form.changes,
    check=link_form.half_filled,
    choices=_choices,
    after="link",
).register()
