"""The period of a page, and the numbers in it: the chart, and the tables with bars."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import NamedTuple

from flask import g, url_for

from linkmgr.console import charts, overview, signed_in
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import query_choice, query_text
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.fields.urls import link_name
from linkmgr.core.fields.zones import start_of_day
from linkmgr.features.statistics.periods import (
    MAX_DAYS,
    UNITS,
    Range,
    as_rollups,
    checked,
    compared,
    parse_range,
)
from linkmgr.visits.dimensions import BY_NAME, DIMENSIONS, SCAN, UNKNOWN
from linkmgr.visits.store import DETAILED_DAYS

_TOP = 8
# By period: its label, and its name in a sentence.
PERIODS = {
    "24h": ("24h", "the last 24 hours"),
    "7d": ("7d", "the last 7 days"),
    "28d": ("28d", "the last 28 days"),
    "90d": ("90d", "the last 90 days"),
    "12mo": ("12mo", "the last 12 months"),
    "week": ("This week", "the current week"),
    "last_week": ("Last week", "the previous week"),
    "mtd": ("This month", "the current month"),
    "last_month": ("Last month", "the previous month"),
}
DEFAULT = "28d"
# Periods that the API has too, without a switch, and names that were in URLs before
_OTHERS = {"30d": "the last 30 days", "ytd": "the current year"}
_FORMER = {"month": "mtd", "last-week": "last_week", "last-month": "last_month"}
# Those with the days to come, so that their charts have one unit from the first day on
_WHOLE = {"week": "this_week", "mtd": "this_month"}
TIMES_CSV = {"table": "time", "format": "csv"}  # of statistics: the figures of the chart
_FIRST = date(2000, 1, 1)  # of a custom period
# By unit: the least and the greatest number of days of a period that is shown by it, first by the
# first of them, but 12 months by month.
_UNITS = {"day": (3, 120), "hour": (1, 7), "week": (21, 800), "month": (90, MAX_DAYS)}


class Period(NamedTuple):
    """The period of the query: its times, its name, the members of the query that select it, the
    units that its chart can have and the one that it has, and the current time."""

    span: Range
    name: str
    query: dict[str, str]
    units: list[str]
    unit: str
    now: datetime

    @property
    def all(self) -> dict[str, tuple[str, str]]:
        return PERIODS

    @property
    def kept(self) -> Row:
        """The query for the pages of rows: nothing by default."""
        return {} if self.query == {"period": DEFAULT} else self.query

    def before(self, unit: str | None = None) -> tuple[datetime, ...]:
        """Return the starts of the buckets of the time before, and its end."""
        return tuple(at.astimezone(UTC) for at in compared(self.span, unit, self.now)[1])

    @property
    def days_before(self) -> date:
        """Return the first day with rollups by quarters of an hour."""
        return self.now.date() - timedelta(days=DETAILED_DAYS)

    def times(self) -> dict[str, str]:
        return as_rollups(self.span, [], self.days_before)

    def with_before(self) -> dict[str, str]:
        """Return the parameters of the range with the time before, which ends at the first of both
        edges."""
        edges = self.before()  # of a period that has just begun, the end alone
        since, end = edges[0], edges[-1]
        assert self.span.since
        return as_rollups(replace(self.span, since=since), [end, self.span.since], self.days_before)

    @property
    def today(self) -> str:
        return self.now.astimezone(g.zone).date().isoformat()

    def chart(self, buckets: list[charts.Bucket], noun: str, **others: str) -> Row:
        chart = charts.chart(
            [bucket for bucket in buckets if bucket.start <= self.now],
            unit=self.unit,
            period=self.name,
            noun=noun,
            is_current=self.span.until > self.now,
            **others,
        )
        since = g.account["uncounted_since"]
        if since and signed_in.parse_utc(since) < self.span.until:
            chart["title"] += f", counted until {signed_in.exact(since)}"
        return chart


def parse_date(name: str) -> date | None:
    text = query_text(name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise AppError("invalid", problems=f"{name} must be a date such as 2026-11-21") from None


def _custom(now: datetime) -> Period | None:
    begin, end, today = parse_date("from"), parse_date("to"), now.astimezone(g.zone).date()
    if not (begin or end):
        return None
    first, last = sorted(max(_FIRST, min(day, today)) for day in (begin or end or today, end or today))
    # A day less, because the clocks may change in between
    first = max(first, last - timedelta(days=MAX_DAYS - 2))
    span = checked(
        Range(g.zone, start_of_day(first, g.zone), start_of_day(last + timedelta(days=1), g.zone), None)
    )
    name = f"{first:%b %-d}" + (f", {first.year}" if first.year != last.year else "")
    query = {"from": first.isoformat(), "to": last.isoformat()}
    return _period(span, f"the period {name} to {last:%b %-d, %Y}", query, now)


def named(period: str, now: datetime, first: datetime | None = None) -> Period:
    """Return a period. All time begins with the day of the `first` visit."""
    period = _FORMER.get(period, period)
    span = parse_range(g.zone, now, since=None, until=None, period=_WHOLE.get(period, period))
    if not span.since:
        begin = max(first or now, now - timedelta(days=MAX_DAYS - 2))
        span = replace(span, since=start_of_day(begin.astimezone(g.zone).date(), g.zone))
    name = "all time" if period == "all" else _OTHERS.get(period) or PERIODS[period][1]
    return _period(span, name, {"period": period}, now)


def _period(span: Range, name: str, query: dict[str, str], now: datetime) -> Period:
    assert span.since
    days = round((span.until - span.since) / timedelta(days=1))
    units = [unit for unit, (least, most) in _UNITS.items() if least <= days <= most]
    return Period(span, name, query, units, "month" if span.period == "12mo" else units[0], now)


def requested() -> Period:
    now, unit = datetime.now(UTC), query_choice("by", UNITS)
    period = _custom(now) or named(query_choice("period", (*PERIODS, *_OTHERS, *_FORMER)) or DEFAULT, now)
    return period._replace(unit=unit) if unit in period.units else period


# --- the numbers


def count(
    period: Period, *, subject: str = "", row_id: int = 0, dimensions: Iterable[str] = (), limit: int = 1
) -> tuple[list[Row], Row, dict[str, str]]:
    """Count the visits of the account, or of a row, in a period and in the time before. `subject`
    is "link", "qr", "campaign" or "channel". Return the rows of `console_numbers.overview`, the
    chart, and the parameters of the range."""
    starts, before = compared(period.span, period.unit, period.now)
    edges = [edge.astimezone(UTC) for edge in (*before, *starts)]
    labels = period.with_before()
    rows = overview.overview(
        g.user_id,
        subject=subject,
        row_id=row_id,
        dimensions=list(dimensions),
        limit=limit,
        buckets=as_rollups(replace(period.span, since=edges[0]), edges, period.days_before),
        labels=labels,
    )
    counts = {int(row["label"]): row["clicks"] for row in rows if not row["dimension"]}
    counts[len(before)] = 0  # after the elapsed part
    first = next((row["clicks"] for row in rows if row["dimension"] == "first"), period.now.timestamp())
    is_comparable = edges[0].timestamp() >= first
    if not is_comparable:
        rows = [row | {"before": None} for row in rows]
    buckets = [
        charts.Bucket(
            start,
            counts.get(len(before) + number, 0),
            counts.get(min(number, len(before)), 0) if is_comparable else 0,
        )
        for number, start in enumerate(starts, 1)
    ]
    chart = period.chart(buckets, noun_of(subject), second="before" if is_comparable else "")
    scans = sum(row["clicks"] for row in rows if (row["dimension"], row["label"]) == ("kind", SCAN))
    selected: Row = ({subject: row_id} if subject else {}) | period.query | {"by": period.unit}
    csv = url_for("console.statistics", **(selected | TIMES_CSV))
    return rows, chart | {"parts": _parts(chart, scans), "csv": csv}, labels


def _parts(chart: Row, scans: int) -> str:
    if chart["noun"] == "visit":
        return (
            f"{charts.count(chart['total'] - scans)} and {charts.count(scans, 'scan')}"
            if chart["total"]
            else ""
        )
    return f"of which {charts.count(scans, 'scan')}" if chart["noun"] == "click" and scans else ""


def numbers(subject: str, row_id: int) -> Row:
    period = requested()
    selected: Row = {subject: row_id} | period.query
    rows, chart, _ = count(period, subject=subject, row_id=row_id, dimensions=BY_NAME, limit=_TOP)
    label_counts = Counter(row["dimension"] for row in rows if row["label"] not in ("", UNKNOWN))
    headings = {d.name: d.title for d in DIMENSIONS if label_counts[d.name] >= d.least}
    return {
        "chart": chart,
        "totals": {row["label"]: row["clicks"] for row in rows if row["dimension"] == "total"},
        "tables": tables(rows, headings, partial(labeled, selected), selected),
        "period": period,
    }


def tables(
    rows: list[Row], headings: dict[str, str], label_of: Callable[[Row], Row], query: Row
) -> list[Row]:
    """Return a table with bars of each dimension, and the URL of its statistics. The rows of a
    dimension begin with the largest; `label_of` adds their labels and URLs."""
    return [
        {
            "heading": heading,
            "rows": [row | label_of(row) for row in rows if row["dimension"] == dimension],
            "more": url_for("console.statistics", dimension=dimension, **query),
            "csv": url_for("console.statistics", dimension=dimension, format="csv", **query),
            "lost": url_for("console.statistics", dimension=dimension, order="change", **query),
        }
        for dimension, heading in headings.items()
    ]


def by_clicks(rows: list[Row], order: str) -> list[Row]:
    """Sort rows by their clicks or, by "change", by those more than before. A minus puts the
    largest first."""

    def value(row: Row) -> int:
        return int(row["clicks"] - (row.get("before") or 0) if order.endswith("change") else row["clicks"])

    return sorted(rows, key=value, reverse=order.startswith("-"))


def noun_of(subject: str) -> str:
    return {"qr": "scan", "channel": "visit", "": "visit"}.get(subject, "click")


def label(dimension: str, text: str) -> str:
    return BY_NAME[dimension].labels.displayed(text) if dimension in BY_NAME else text or UNKNOWN


def next_dimension(names: Iterable[str]) -> str:
    """Return the dimension by which the visits with labels in the others are shown: the one behind
    the last of them."""
    order = [d.name for d in DIMENSIONS if not d.least] * 2
    chosen = [order.index(name) for name in names if name in order]
    return next((name for name in order[max(chosen, default=-1) + 1 :] if name not in names), order[0])


def labeled(query: Row, row: Row) -> Row:
    """Return the label of a row, and the URL of the statistics that it filters."""
    name, text = row["dimension"], row["label"]
    url = (
        url_for("console.statistics", dimension=next_dimension([name]), **{name: text}, **query)
        if text
        else ""
    )
    return {"label": label(name, text), "url": url}


def named_row(row_id: str, named: Row | None) -> Row:
    """Return the label of a link or a QR code, its URL, and the `link` for the macro
    `link_lines`."""
    if not named:
        return {"label": f"A deleted link or QR code, id {row_id}", "url": ""}
    if named["noun"] != "link":
        page = url_for("console.qrs_bin") if named.get("in_bin") else url_for("console.qr", row_id=row_id)
        suffix = ", in the bin" if named.get("in_bin") else ""
        return {"label": f"QR code {named['name']}{suffix}", "url": page}
    shorturl = short_url(named["domain"], named["alias"])
    url = url_for("console.links_bin") if named.get("in_bin") else url_for("console.link", row_id=row_id)
    return {
        "label": link_name(named["title"], named["url"]),
        "url": url,
        "link": named | {"shorturl": shorturl},
    }
