"""Links: the page of one link, and the forms. Its list is link_list.py."""

from datetime import UTC, datetime

from flask import Response, g, render_template

from linkmgr.api import urls as api
from linkmgr.db.statements import Row
from linkmgr.fields.query import query_text
from linkmgr.pages import qr as qr_page
from linkmgr.pages import signed_in
from linkmgr.pages.console import link_form, periods, resources
from linkmgr.pages.console.frame import bp
from linkmgr.pages.console.link_list import MAX_CHOICES
from linkmgr.qr import image as qr_image
from linkmgr.qr.cache import image_cache
from linkmgr.repository import overviews, url_details, urls, visit_list
from linkmgr.settings import settings

_LATEST = 10


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


def _choices() -> Row:
    """Return the rows that a link can refer to, by kind."""
    rows = overviews.choices(g.user_id, limit=MAX_CHOICES)
    kinds = ("domain", "campaign", "channel", "pixel", "splash", "overlay")
    return {
        "choices": {kind: [row for row in rows if row["kind"] == kind] for kind in kinds},
        "pairs": link_form.PAIRS,
        "base_url": settings().base_url,
    }


FORM = resources.form(
    urls, api.NewLink, api.LinkChanges,
    name="link",
    from_form=link_form.from_form,
    from_row=link_form.from_link,
    read=url_details.read_current,
    add=api.create,
    change=api.change,
    labels=link_form.LABELS,
    fields=link_form.FIELDS,
    changes=link_form.changes,
    check=link_form.half_filled,
    choices=_choices,
    after="link",
)  # fmt: skip
