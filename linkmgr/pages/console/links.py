"""Links: the list, the forms, and the page of one link."""

from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response as AnyResponse

from linkmgr.api import urls as api
from linkmgr.db import transaction
from linkmgr.db.statements import Row
from linkmgr.fields.base import page_number, query_choice, query_text
from linkmgr.fields.countries import NAMES
from linkmgr.fields.periods import Range, parse_range, parse_zone
from linkmgr.fields.periods import buckets as buckets_of
from linkmgr.fields.urls import MAX_URL
from linkmgr.pages import qr as qr_page
from linkmgr.pages.console import charts, forms, frame
from linkmgr.pages.console.frame import bp
from linkmgr.qr import image as qr_image
from linkmgr.qr.cache import image_cache
from linkmgr.repository import overviews, url_details, urls, versions, visit_list
from linkmgr.settings import settings
from linkmgr.web.errors import AppError

PER_PAGE = 15
MAX_CHOICES = 200  # of a kind, in the form
_SPARK_DAYS = 30
_LATEST = 10
_TOP = 8
_CODES = {names[0]: code for code, names in NAMES.items()}
_DIMENSIONS = {
    "country": "Countries",
    "referrer": "Referrers",
    "browser": "Browsers",
    "os": "Systems",
    "device": "Devices",
    "language": "Languages",
}
# By period: its name, and the units of its chart, the first of which is the default.
_PERIODS = {
    "24h": ("the last 24 hours", ("hour",)),
    "7d": ("the last 7 days", ("day", "hour")),
    "30d": ("the last 30 days", ("day", "week")),
    "90d": ("the last 90 days", ("day", "week", "month")),
    "12mo": ("the last 12 months", ("month", "week")),
}
DEFAULT_PERIOD = "30d"


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
    today = datetime.now(UTC).date()
    days = [(today - timedelta(days=number)).isoformat() for number in range(_SPARK_DAYS - 1, -1, -1)]
    ids = [row["id"] for row in page.rows]
    states = {row["id"]: row for row in overviews.of_links(g.user_id, ids, since=days[0])} if ids else {}
    for row in page.rows:
        row["state"] = states.get(row["id"], {"type": "direct", "public": True})
        counts = row["state"].get("days", {})
        row["recent"] = sum(counts.values())
        row["spark"] = charts.sparkline([counts.get(day, 0) for day in days])
    return render_template("console/links.html", page=page, q=q or "", order=order, base_url=settings().base_url)


# --- the page of a link


def _edges(span: Range, period: str, unit: str) -> list[datetime]:
    """Return the starts of the buckets of the period before, and those of the period itself."""
    assert span.since
    current = [max(bucket.start, span.since) for bucket in buckets_of(span, unit)]
    if unit == "month" and period == "12mo":
        return [start.replace(year=start.year - 1) for start in current] + current
    length = span.since - span.since.replace(year=span.since.year - 1) if period == "12mo" else span.until - span.since
    return [start - length for start in current] + current


def _numbers(link_id: int, period: str, unit: str) -> Row:
    name = _PERIODS[period][0]
    span = parse_range(parse_zone("UTC"), datetime.now(UTC), since=None, until=None, period=period)
    assert span.since
    edges = _edges(span, period, unit)
    number = len(edges) // 2
    rows = overviews.of_link(
        g.user_id,
        link_id,
        edges=f"{{{','.join(edge.isoformat() for edge in edges)}}}",
        previous=edges[0].isoformat(),
        since=span.since.isoformat(),
        until=span.until.isoformat(),
        limit=_TOP,
    )
    counts = {int(row["label"]): row["clicks"] for row in rows if not row["dimension"]}
    buckets = [
        charts.Bucket(start, counts.get(number + place, 0), counts.get(place, 0))
        for place, start in enumerate(edges[number:], 1)
    ]
    total = sum(bucket.clicks for bucket in buckets)
    return {
        "chart": charts.chart(buckets, unit=unit, period=name),
        "total": total,
        "tables": frame.tables(rows, total, _DIMENSIONS, _name),
    }


def _name(row: Row) -> tuple[str, str]:
    label = row["label"] or "Unknown"
    code = _CODES.get(label) if row["dimension"] == "country" else None
    return f"{label} ({code})" if code else label, ""


@bp.get("/links/<id:link_id>")
def link(link_id: int) -> str:
    """Show a link. Statements: the link, its numbers, and its latest visits."""
    record = url_details.read_current(g.user_id, link_id)
    period = query_choice("period", tuple(_PERIODS)) or DEFAULT_PERIOD
    units = _PERIODS[period][1]
    unit = query_choice("by", ("hour", "day", "week", "month")) or units[0]
    if unit not in units:
        unit = units[0]
    visits = visit_list.index(g.user_id, link_id, what="link", limit=_LATEST, after=None, bots=[False])
    return render_template(
        "console/link.html",
        link=record,
        is_expired=bool(record["expiry"]) and frame.parse_utc(record["expiry"]) <= datetime.now(UTC),
        visits=visits.rows,
        period=period,
        periods=_PERIODS,
        unit=unit,
        units=units,
        **_numbers(link_id, period, unit),
    )


@bp.get("/links/<id:link_id>/qr")
def link_qr(link_id: int) -> Response:
    """Draw the QR code of the short URL, which on a branded domain has another host than this page."""
    record = url_details.read(g.user_id, link_id)
    form, size = qr_page.requested_format(), qr_page.requested_size(query_text("size"))
    spec = qr_image.image_spec(record["shorturl"], "rgb(0,0,0)", "rgb(255,255,255)", None, form=form, max_pixels=size)
    response = qr_page.image_response(spec, image_cache().get(spec.tag) or qr_page.render(spec, None))
    if query_text("download"):
        response.headers["Content-Disposition"] = f'attachment; filename="{record["alias"]}.{form}"'
    return response


# --- forms


def _form(
    record: Row, *, link: Row | None = None, messages: dict[str, str] | None = None, stored: Row | None = None
) -> str:
    """Render the form. `stored` is what is stored now, if it has changed since the form was opened."""
    choices = overviews.choices(g.user_id, limit=MAX_CHOICES)
    return render_template(
        "console/link_form.html",
        record=record,
        link=link,
        problems=messages or {},
        stored=stored,
        labels=forms.LABELS,
        pairs=forms.PAIRS,
        base_url=settings().base_url,
        choices={
            kind: [row for row in choices if row["kind"] == kind]
            for kind in ("domain", "campaign", "channel", "pixel", "splash", "overlay")
        },
    )


@bp.get("/links/new")
def link_new() -> str:
    """Show the empty form. Statement: the rows that a link can refer to."""
    return _form(forms.from_form(request.args))


@bp.post("/links/new")
def link_add() -> ResponseReturnValue:
    added: Row = {}
    record = forms.from_form(request.form)
    messages = forms.submit(api.NewLink, record, lambda new: added.update(api.create(g.user_id, new)))
    if messages:
        return _form(record, messages=messages), 400
    flash("Link created.", "success")
    return redirect(url_for("console.link", link_id=added["id"]), code=303)


@bp.get("/links/<id:link_id>/edit")
def link_edit(link_id: int) -> str:
    """Show the form of a link. Statements: the link, and the rows that it can refer to."""
    record = url_details.read_current(g.user_id, link_id)
    return _form(forms.from_link(record), link=record)


def _change(link_id: int, version: str, changes: Row) -> None:
    """Change the link if it still has the version that the form was opened with, as If-Match does."""

    def check() -> None:
        if versions.lock(g.user_id, "urls", {"link_id": link_id}) not in (version, None):
            raise AppError("changed_meanwhile")

    with transaction.lazily(check) as writes:
        api.change(g.user_id, link_id, changes)
        writes.commit()


@bp.post("/links/<id:link_id>/edit")
def link_save(link_id: int) -> ResponseReturnValue:
    stored = url_details.read_current(g.user_id, link_id)
    record = forms.from_form(request.form)
    version = request.form.get("version", "")
    changes = forms.changes(record, forms.from_link(stored), remove_password=bool(request.form.get("password.remove")))
    try:
        messages = {}
        if version != stored["version"]:
            raise AppError("changed_meanwhile")
        if changes:
            messages = forms.submit(api.LinkChanges, changes, lambda loaded: _change(link_id, version, loaded))
    except AppError as error:
        if error.code != "changed_meanwhile":
            raise
        stored = url_details.read_current(g.user_id, link_id)
        return _form(record, link=stored, stored=forms.from_link(stored)), 412
    if messages:
        return _form(record, link=stored, messages=messages), 400
    flash("Changes saved.", "success")
    return redirect(url_for("console.link", link_id=link_id), code=303)


@bp.get("/links/<id:link_id>/delete")
def link_delete(link_id: int) -> str:
    """Ask whether to delete the link, for browsers that do not open the dialog."""
    return render_template("console/link_delete.html", link=url_details.read_current(g.user_id, link_id))


@bp.post("/links/<id:link_id>/delete")
def link_delete_now(link_id: int) -> AnyResponse:
    urls.delete(g.user_id, link_id)
    flash("Link deleted.", "success")
    return redirect(url_for("console.links"), code=303)
