"""Statistics of the account, or of a link, a QR code, a campaign, a channel or a domain, by one or
two dimensions and filtered by their labels. Everything is in the query."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from flask import g, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import charts, periods
from linkmgr.console.frame import Chip, bp
from linkmgr.console.signed_in import in_zone, zoned
from linkmgr.core.database.paging import Page
from linkmgr.core.database.statements import Row
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.query import page_number, query_choice, query_id, query_text
from linkmgr.core.web import csv, streams
from linkmgr.features.exports import handlers as export
from linkmgr.features.statistics import results, visit_list
from linkmgr.features.statistics.label_filters import Filter
from linkmgr.features.statistics.periods import buckets
from linkmgr.features.statistics.query import CONVERSIONS, MAX_ROWS, OF_CONVERSIONS, Query, Selection
from linkmgr.features.statistics.selection import Owner
from linkmgr.features.statistics.visit_list import VisitPage
from linkmgr.repository import plans
from linkmgr.visits.dimensions import BY_NAME, OF_ROWS, TARGET, TITLES

PER_PAGE, MAX_LABELS = 50, 1000
_MAX_TEXT = 255
# By parameter that selects a row: the endpoint of its page.
_PAGES = {
    "link": "console.link",
    "qr": "console.qr",
    "campaign": "console.campaign",
    "channel": "console.channel",
}
_DOMAIN, _SHORT = "domain", "short URL"
MOST = "-clicks"
_ORDERS = (MOST, "clicks", "-change", "change")
_TOO_OLD = (
    "Your plan keeps single visits for a shorter time than this period. Choose a later period, or "
    "remove a filter."
)


class PageQuery(NamedTuple):
    """The query: the ids of what is selected, by subject, or the host of a domain; the filters, the
    dimensions, the times, and the order."""

    selected: Row
    filters: dict[str, str]
    dimensions: list[str]
    period: periods.Period
    order: str

    @property
    def noun(self) -> str:
        return periods.noun_of(next((name for name in (*_PAGES, _DOMAIN) if name in self.selected), ""))

    @property
    def chosen(self) -> Row:
        return self.selected | self.filters

    @property
    def members(self) -> Row:
        return self.chosen | dict(zip(("dimension", "second"), self.dimensions, strict=False))

    @property
    def query(self) -> Row:
        order = {} if self.order == MOST else {"order": self.order}
        return self.members | self.period.query | {"by": self.period.unit} | order

    @property
    def all_dimensions(self) -> dict[str, str]:
        is_one = not self.selected.keys().isdisjoint(("link", "qr"))
        return TITLES | {
            name: title for name, title in OF_ROWS.items() if not is_one and name not in self.selected
        }

    def without(self, *names: str) -> str:
        return url_for(
            "console.statistics", **{name: text for name, text in self.query.items() if name not in names}
        )

    def narrowed(self, key: str, **chosen: Any) -> str:
        """Return the URL with a label of a dimension chosen, by the other dimension or the next
        one."""
        others = [name for name in self.dimensions if name != key]
        following = (
            TARGET if key in OF_ROWS and key != TARGET else periods.next_dimension([*self.filters, key])
        )
        dimensions = {"dimension": others[0] if others else following, "second": None}
        return url_for("console.statistics", **(self.query | dimensions | chosen))

    def labeled(self, row: Row, names: dict[tuple[str, str], Row]) -> Row:
        """Return the row with its labels as text, in `cells` as pages show them, with the URLs that
        choose them, the text that is `searched`, and its change."""
        texts, cells = {}, []
        for key in self.dimensions:
            value, name, link = row[key], names.get((key, str(row[key]))), None
            text, url = str(value), self.narrowed(key, **{key: value})
            if key in OF_ROWS and value is None:
                text, url = f"No {key}", ""
            elif key == TARGET:
                named = periods.named_row(text, name)
                link, texts[_SHORT] = named.get("link"), named.get("link", {}).get("shorturl")
                is_chosen = name and not name.get("in_bin")
                url = self.narrowed(key, **{"link" if link else "qr": value}) if is_chosen else named["url"]
                text = named["label"]
            elif key in OF_ROWS and key != _DOMAIN:
                text, url = (name["name"], url) if name else (f"deleted, id {value}", "")
            texts[key] = periods.label(key, text)
            cells.append((texts[key], url if text else "", link))
        others = {"cells": cells, "searched": " ".join(filter(None, texts.values())).lower()}
        return row | texts | others | {"change": row["clicks"] - row.get("before", 0)}

    def columns(self, report: results.Report) -> Row:
        """Return the figures of a report as columns of a file, as the page names them."""
        others = [name for name in ("visitors", *CONVERSIONS, "before") if name in report.columns]
        return {f"{self.noun}s": "clicks"} | {
            name: name for name in others if report.totals.get(name, 0) is not None
        }


def _read_query() -> PageQuery:
    selected: Row = {subject: int(query_id(subject) or 0) for subject in _PAGES if subject in request.args}
    if host := query_text(_DOMAIN, _MAX_TEXT):
        selected[_DOMAIN] = host
    of_conversions = OF_CONVERSIONS if has_feature("conversions") else ()
    filters = {name: text for name in (*BY_NAME, *of_conversions) if (text := query_text(name, _MAX_TEXT))}
    first, second = query_choice("dimension", (*BY_NAME, *OF_ROWS)), query_choice("second", tuple(BY_NAME))
    dimensions = list(dict.fromkeys(filter(None, [first or "country", second])))
    order = query_choice("order", _ORDERS) or MOST
    return PageQuery(selected, filters, dimensions, periods.requested(), order)


def _count(selection: PageQuery, *, over_time_too: bool) -> tuple[dict[str, str], list[results.Report]]:
    """Return the names of what is selected, and the reports of the labels and over time, with the
    time before. The latter is missing if the clicks of the whole account are counted."""
    ids = [selection.selected[subject] for subject in ("link", "qr") if subject in selection.selected] or None
    others = (selection.selected.get(subject) for subject in ("campaign", "channel", _DOMAIN))
    filters = {name: Filter([text.lower()], None, text) for name, text in selection.filters.items()}
    shared: Any = {
        "metrics": ["clicks", "visitors"],
        "selection": Selection(ids, *others),
        "range": selection.period.span,
        "filters": filters,
        "bots": "exclude",
    }
    unit, before = selection.period.unit, selection.period.before
    over_time = Query(by=[f"time:{unit}"], order="time", limit=MAX_ROWS, before=before(unit), **shared)
    limit = MAX_ROWS if query_text("format") == "csv" else MAX_LABELS
    has_conversions = has_feature("conversions") and g.account["used"].get("conversions")
    metrics = [*shared.pop("metrics"), *(CONVERSIONS if has_conversions else ())]
    by_label = Query(
        metrics, by=selection.dimensions, order="-clicks", limit=limit, before=before(), **shared
    )
    is_of_account = not (selection.selected or filters or selection.dimensions[1:] or over_time_too)
    return results.reports(
        Owner(g.user_id, links=g.account["used"].get("links", 0)),
        [by_label] if is_of_account else [by_label, over_time],
    )


def _chart(selection: PageQuery, over_time: list[results.Report]) -> Row:
    period, noun = selection.period, selection.noun
    if not over_time:
        return periods.count(period, dimensions=["kind"], limit=MAX_LABELS)[1]
    [report] = over_time
    visitors = report.totals.get("visitors")
    is_compared = "before" in report.columns
    second = "before" if is_compared else "" if visitors is None else "visitors"
    drawn = [
        charts.Bucket(bucket.start.astimezone(g.zone), row["clicks"], row.get(second, 0))
        for bucket, row in zip(buckets(period.span, period.unit), report.rows, strict=True)
    ]
    also = "" if visitors is None else f", {charts.count(visitors, 'unique visitor')}"
    clicks = charts.count(report.totals["clicks"], noun)
    sentence = (
        charts.title(drawn, period.name, noun, also) if is_compared else f"{clicks}{also} in {period.name}"
    )
    url = url_for("console.statistics", **(selection.query | periods.TIMES_CSV))
    return period.chart(drawn, noun, sentence=sentence, second=second) | {"csv": url}


@bp.get("/statistics")
def statistics() -> ResponseReturnValue:
    selection, searched = _read_query(), query_text("q", _MAX_TEXT) or ""
    values: Row = {"asked": selection, "searched": searched, "most": MAX_LABELS, "most_of_file": MAX_ROWS}
    values |= {"dimensions": TITLES | OF_ROWS, "seconds": list(TITLES)}
    is_csv, is_by_time = query_text("format") == "csv", query_text("table") == "time"
    try:
        names, (by_label, *over_time) = _count(selection, over_time_too=is_csv and is_by_time)
    except AppError as error:
        if error.code != "invalid":
            raise
        chips = _chips(selection, {})
        return render_template("console/statistics.html", problem=_TOO_OLD, chips=chips, **values), 400
    if is_csv and is_by_time:
        return _times_csv(selection, over_time[0])
    has_change = "before" in by_label.columns
    rows = [
        selection.labeled(row, by_label.names)
        for row in by_label.rows
        if row["clicks"] or row.get("before") or row.get("conversions")
    ]
    rows = [row for row in rows if searched.lower() in row["searched"]]
    rows = periods.by_clicks(rows, selection.order)
    if is_csv:
        headings = {key: key for key in selection.dimensions}
        headings |= ({_SHORT: _SHORT} if TARGET in headings else {}) | selection.columns(by_label)
        headings |= {"change": "change"} if has_change else {}
        if by_label.meta["truncated"]:
            end = f"Only the {MAX_ROWS:,} with the most {selection.noun}s are in this file."
            rows.append({selection.dimensions[0]: end})
        return _csv("-".join(selection.dimensions), headings, rows)
    number, subject = page_number(), next((name for name in _PAGES if name in selection.selected), "")
    return render_template(
        "console/statistics.html",
        name=names.get("ids" if subject in ("link", "qr") else subject, ""),
        back=url_for(_PAGES[subject], row_id=selection.selected[subject], **selection.period.kept)
        if subject
        else "",
        chips=_chips(selection, names),
        chart=_chart(selection, over_time),
        total=by_label.totals["clicks"],
        page=Page(rows[(number - 1) * PER_PAGE : number * PER_PAGE], len(rows), PER_PAGE, number, None),
        largest=max((row["clicks"] for row in rows), default=0) or 1,
        has_change=has_change,
        has_visitors=by_label.totals.get("visitors") is not None,
        has_conversions=bool(by_label.totals.get("conversions")),
        currencies=by_label.currencies,
        has_value=by_label.totals.get("value") is not None,
        is_cut=by_label.meta["truncated"],
        **values,
    )


def _visits_csv(what: str, row_id: int) -> ResponseReturnValue:
    """Send all visits of people, the last one first."""
    plans.require_exports(g.user_id)
    read = partial(visit_list.index, g.user_id, row_id, what=what, limit=BATCH, bots=[False])
    first = read(after=None)  # raises not_found
    time = {zoned("time"): lambda visit: in_zone(visit["time"][: len("2026-11-21 09:30:00")])}
    columns = time | export.columns(tuple(BY_NAME))
    return streams.export("statistics-visits", columns, _visits(read, first), "csv")


def _visits(read: Callable[..., VisitPage], page: VisitPage) -> Iterator[list[Row]]:
    yield page.rows
    while page.next:
        at, _, skip = page.next.rpartition("-")
        page = read(after=(at, int(skip)))
        yield page.rows


bp.add_url_rule("/links/<id:row_id>/visits.csv", "link_visits", partial(_visits_csv, "link"))
bp.add_url_rule("/qrs/<id:row_id>/visits.csv", "qr_visits", partial(_visits_csv, "QR code"))


def _times_csv(selection: PageQuery, report: results.Report) -> ResponseReturnValue:
    period = selection.period
    rows = [
        row
        for bucket, row in zip(buckets(period.span, period.unit), report.rows, strict=True)
        if bucket.start <= period.now
    ]
    return _csv(period.unit, {zoned("time"): "time"} | selection.columns(report), rows)


def _csv(name: str, headings: Row, rows: list[Row]) -> ResponseReturnValue:
    """Send a file with columns of rows, by their headings."""
    lines = ({heading: row.get(key) for heading, key in headings.items()} for row in rows)
    disposition = f'attachment; filename="statistics-{name}.csv"'
    return csv.respond([*headings], lines, **{"Content-Disposition": disposition})


def _chips(selection: PageQuery, names: dict[str, str]) -> list[Chip]:
    names = names | {subject: names["ids"] for subject in ("link", "qr") if "ids" in names}
    return [
        Chip(f"{subject.capitalize()}: {names.get(subject, value)}", selection.without(subject))
        for subject, value in selection.selected.items()
    ] + [
        Chip(f"{TITLES.get(key, key.capitalize())}: {periods.label(key, text)}", selection.without(key))
        for key, text in selection.filters.items()
    ]
