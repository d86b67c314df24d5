"""Links: the list, the forms, and the page of one link."""

from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, g, render_template

from linkmgr.api import urls as api
from linkmgr.db.statements import Row
from linkmgr.fields.base import page_number, query_choice, query_text
from linkmgr.fields.countries import NAMES
from linkmgr.fields.periods import Range, parse_range, parse_zone
from linkmgr.fields.periods import buckets as buckets_of
from linkmgr.fields.urls import MAX_URL
from linkmgr.pages import qr as qr_page
from linkmgr.pages.console import charts, frame, link_form
from linkmgr.pages.console.forms import Form
from linkmgr.pages.console.frame import bp
from linkmgr.qr import image as qr_image
from linkmgr.qr.cache import image_cache
from linkmgr.repository import overviews, url_details, urls, visit_list
from linkmgr.settings import settings

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


@bp.get("/links/<id:row_id>")
def link(row_id: int) -> str:
    """Show a link. Statements: the link, its numbers, and its latest visits."""
    record = url_details.read_current(g.user_id, row_id)
    period = query_choice("period", tuple(_PERIODS)) or DEFAULT_PERIOD
    units = _PERIODS[period][1]
    unit = query_choice("by", ("hour", "day", "week", "month")) or units[0]
    if unit not in units:
        unit = units[0]
    visits = visit_list.index(g.user_id, row_id, what="link", limit=_LATEST, after=None, bots=[False])
    return render_template(
        "console/link.html",
        link=record,
        is_expired=bool(record["expiry"]) and frame.parse_utc(record["expiry"]) <= datetime.now(UTC),
        visits=visits.rows,
        period=period,
        periods=_PERIODS,
        unit=unit,
        units=units,
        **_numbers(row_id, period, unit),
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
