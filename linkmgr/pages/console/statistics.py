"""Statistics of the account, a link, a QR code, a campaign or a channel, by one or two dimensions and filtered by their
labels. Everything is in the query."""

from typing import Any, NamedTuple

from flask import g, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.db.statements import Page, Row
from linkmgr.errors import AppError
from linkmgr.fields.dimensions import BY_NAME, TITLES
from linkmgr.fields.label_filters import Filter
from linkmgr.fields.periods import buckets
from linkmgr.fields.query import page_number, query_choice, query_id, query_text
from linkmgr.fields.stats import MAX_ROWS, Query, Selection
from linkmgr.pages import charts
from linkmgr.pages.console import periods
from linkmgr.pages.console.frame import Chip, bp
from linkmgr.repository.stats_scope import Owner
from linkmgr.visits import stats
from linkmgr.web import csv

PER_PAGE, MAX_LABELS = 50, 1000
_MAX_TEXT = 255
# By parameter that selects a row: the endpoint of its page.
_PAGES = {"link": "console.link", "qr": "console.qr", "campaign": "console.campaign", "channel": "console.channel"}
_TARGETS = {"target": "Links and QR codes"}  # a dimension, unless one of them is selected
_TOO_OLD = (
    "Your plan keeps single visits for a shorter time than this period. Choose a later period, or remove a filter."
)


class PageQuery(NamedTuple):
    subject: str
    row_id: int
    filters: dict[str, str]
    dimensions: list[str]
    period: periods.Period

    @property
    def members(self) -> Row:
        selected = {self.subject: self.row_id} if self.subject else {}
        return selected | self.filters | dict(zip(("dimension", "second"), self.dimensions, strict=False))

    @property
    def query(self) -> Row:
        return self.members | self.period.query | {"by": self.period.unit}

    @property
    def all_dimensions(self) -> dict[str, str]:
        return TITLES if self.subject in ("link", "qr") else TITLES | _TARGETS

    def without(self, *names: str, **added: int) -> str:
        kept: Row = {name: value for name, value in self.query.items() if name not in names}
        return url_for("console.statistics", **(kept | added))

    def with_name(self, row: Row, names: dict[str, Row]) -> Row:
        if "target" not in row:
            return row
        target = names.get(str(row["target"]))
        if not target:
            return row | {"target": f"deleted, id {row['target']}"}
        subject = "link" if target["noun"] == "link" else "qr"
        url = self.without(self.subject, "dimension", "second", **{subject: row["target"]})
        return row | {"target": target["name"], "url": url}


def _read_query() -> PageQuery:
    subject = next((name for name in _PAGES if name in request.args), "")
    filters = {name: text for name in BY_NAME if (text := query_text(name, _MAX_TEXT))}
    first, second = query_choice("dimension", (*BY_NAME, *_TARGETS)), query_choice("second", tuple(BY_NAME))
    dimensions = list(dict.fromkeys(filter(None, [first or "country", second])))
    return PageQuery(subject, int(query_id(subject) or 0) if subject else 0, filters, dimensions, periods.requested())


def _count(selection: PageQuery) -> tuple[str, list[stats.Report]]:
    """Return the name of what is selected, and the reports of the labels and over time. The latter is missing if the
    clicks of the whole account are counted, which are compared with the time before."""
    ids = [selection.row_id] if selection.subject in ("link", "qr") else None
    campaign, channel = (
        selection.row_id if selection.subject == subject else None for subject in ("campaign", "channel")
    )
    filters = {name: Filter([text.lower()], None, text) for name, text in selection.filters.items()}
    shared: Any = {
        "metrics": ["clicks", "visitors"],
        "selection": Selection(ids, campaign, channel, None),
        "range": selection.period.span,
        "filters": filters,
        "bots": "exclude",
    }
    over_time = Query(by=[f"time:{selection.period.unit}"], order="time", limit=MAX_ROWS, **shared)
    by_label = Query(by=selection.dimensions, order="-clicks", limit=MAX_LABELS, **shared)
    is_compared = not (selection.subject or filters or selection.dimensions[1:])
    return stats.reports(Owner(g.user_id), [by_label] if is_compared else [by_label, over_time])


def _chart(selection: PageQuery, over_time: list[stats.Report]) -> Row:
    period, noun = selection.period, periods.noun_of(selection.subject)
    if not over_time:
        return periods.count(period, dimensions=["kind"], limit=MAX_LABELS)[1]
    [report] = over_time
    visitors = report.totals.get("visitors")
    drawn = [
        charts.Bucket(bucket.start.astimezone(g.zone), row["clicks"], row.get("visitors") or 0)
        for bucket, row in zip(buckets(period.span, period.unit), report.rows, strict=True)
    ]
    clicks = charts.count(report.totals["clicks"], noun)
    counted = clicks if visitors is None else f"{clicks}, {charts.count(visitors, 'unique visitor')}"
    second = "" if visitors is None else "visitors"
    return period.chart(drawn, noun, sentence=f"{counted} in {period.name}", second=second)


@bp.get("/statistics")
def statistics() -> ResponseReturnValue:
    selection, searched = _read_query(), query_text("q", _MAX_TEXT) or ""
    values: Row = {"asked": selection, "searched": searched, "most": MAX_LABELS}
    values |= {"dimensions": TITLES | _TARGETS, "label_of": periods.label}
    try:
        name, (by_label, *over_time) = _count(selection)
    except AppError as error:
        if error.code != "invalid":
            raise
        chips = _chips(selection, "Selected")
        return render_template("console/statistics.html", problem=_TOO_OLD, chips=chips, **values), 400
    rows = [selection.with_name(row, by_label.names) for row in by_label.rows]
    rows = [row for row in rows if any(searched.lower() in row[key].lower() for key in selection.dimensions)]
    if query_text("format") == "csv":
        disposition = f'attachment; filename="statistics-{"-".join(selection.dimensions)}.csv"'
        return csv.respond(by_label.columns, rows, **{"Content-Disposition": disposition})
    number = page_number()
    return render_template(
        "console/statistics.html",
        name=name,
        back=url_for(_PAGES[selection.subject], row_id=selection.row_id) if selection.subject else "",
        chips=_chips(selection, name),
        chart=_chart(selection, over_time),
        total=by_label.totals["clicks"],
        page=Page(rows[(number - 1) * PER_PAGE : number * PER_PAGE], len(rows), PER_PAGE, number, None),
        largest=rows[0]["clicks"] if rows else 1,
        has_visitors=by_label.totals.get("visitors") is not None,
        is_cut=by_label.meta["truncated"],
        **values,
    )


def _chips(selection: PageQuery, name: str) -> list[Chip]:
    selected = [Chip(name, selection.without(selection.subject))] if selection.subject else []
    return selected + [
        Chip(f"{TITLES[key]}: {periods.label(key, text)}", selection.without(key))
        for key, text in selection.filters.items()
    ]
