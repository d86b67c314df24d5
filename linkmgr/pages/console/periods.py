"""The period of a page, and the numbers of one or many targets in it: the chart, and the tables with bars."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from flask import g, url_for

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields.countries import NAMES
from linkmgr.fields.periods import (
    MAX_DAYS,
    UNITS,
    Range,
    as_rollups,
    checked,
    compared,
    parse_range,
    start_of_day,
)
from linkmgr.fields.query import query_choice, query_text
from linkmgr.pages import charts
from linkmgr.repository import console_numbers
from linkmgr.repository.visits import DETAILED_DAYS

_TOP = 8
_CODES = {names[0]: code for code, names in NAMES.items()}
DIMENSIONS = {
    "country": "Countries",
    "city": "Cities",
    "referrer": "Referrers",
    "browser": "Browsers",
    "os": "Systems",
    "device": "Devices",
    "language": "Languages",
}
# By period: its label, its name in a sentence, and the units of its chart, the first of which is the default.
PERIODS = {
    "24h": ("24h", "the last 24 hours", ("hour",)),
    "7d": ("7d", "the last 7 days", ("day", "hour")),
    "28d": ("28d", "the last 28 days", ("day", "week")),
    "90d": ("90d", "the last 90 days", ("day", "week", "month")),
    "12mo": ("12mo", "the last 12 months", ("month", "week")),
    "week": ("This week", "the current week", ("day", "hour")),
    "last-week": ("Last week", "the previous week", ("day", "hour")),
    "month": ("This month", "the current month", ("day", "week")),
    "last-month": ("Last month", "the previous month", ("day", "week")),
}
DEFAULT = "28d"
_FIRST = date(2000, 1, 1)  # of a custom period
# By unit: the least and the greatest number of days of a custom period that is shown by it.
_CUSTOM_UNITS = {"day": (3, 120), "hour": (1, 7), "week": (21, 800), "month": (90, MAX_DAYS)}


class Period(NamedTuple):
    """The period of the query: its times, its name, the members of the query that select it, the units that its chart
    can have and the one that it has, and the last day that can be chosen."""

    span: Range
    name: str
    query: dict[str, str]
    units: tuple[str, ...]
    unit: str
    today: str

    @property
    def all(self) -> dict[str, tuple[str, str, tuple[str, ...]]]:
        return PERIODS


def _parse_date(name: str) -> date | None:
    text = query_text(name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise AppError("invalid", problems=f"{name} must be a date such as 2026-11-21") from None


def _custom(today: date) -> tuple[Range, str, dict[str, str], tuple[str, ...]] | None:
    """Return the range from the day `from` up to and including the day `to`, in either order, its name, its query and
    its units, or None."""
    begin, end = _parse_date("from"), _parse_date("to")
    if not (begin or end):
        return None
    first, last = sorted(max(_FIRST, min(day, today)) for day in (begin or end or today, end or today))
    span = checked(Range(g.zone, start_of_day(first, g.zone), start_of_day(last + timedelta(days=1), g.zone), None))
    days = (last - first).days + 1
    units = tuple(unit for unit, (least, most) in _CUSTOM_UNITS.items() if least <= days <= most)
    name = f"{first:%b} {first.day}" + (f", {first.year}" if first.year != last.year else "")
    query = {"from": first.isoformat(), "to": last.isoformat()}
    return span, f"the period {name} to {last:%b} {last.day}, {last.year}", query, units


def requested(now: datetime) -> Period:
    """Return the period of the query."""
    today = now.astimezone(g.zone).date()
    chosen = _custom(today)
    if chosen is None:
        period = query_choice("period", tuple(PERIODS)) or DEFAULT
        _, name, units = PERIODS[period]
        chosen = parse_range(g.zone, now, since=None, until=None, period=period), name, {"period": period}, units
    unit = query_choice("by", UNITS)
    return Period(*chosen, unit if unit in chosen[-1] else chosen[-1][0], today.isoformat())


def count(
    span: Range, unit: str, now: datetime, **selection: Any
) -> tuple[list[Row], list[charts.Bucket], dict[str, str]]:
    """Count the visits in a range and in the time before. Return the rows of `console_numbers.overview`, the buckets of
    the chart, and the parameters of the range."""
    starts, before = compared(span, unit, now)
    days_before = now.date() - timedelta(days=DETAILED_DAYS)
    edges = [edge.astimezone(UTC) for edge in (*before, *starts)]
    labels = as_rollups(span, [], days_before)
    around = as_rollups(replace(span, since=edges[0]), edges, days_before)
    rows = console_numbers.overview(g.user_id, buckets=around, labels=labels, **selection)
    return rows, charts.buckets(rows, starts, before), labels


def numbers(kind: str, row_id: int) -> Row:
    """Count the visits of a link, a QR code, a campaign or a channel in the period of the query."""
    now, noun = datetime.now(UTC), "scan" if kind == "qr" else "click"
    period = requested(now)
    span, unit = period.span, period.unit
    selected: Row = {kind: row_id} | period.query
    rows, buckets, _ = count(span, unit, now, kind=kind, row_id=row_id, dimensions=list(DIMENSIONS), limit=_TOP)
    total = sum(bucket.clicks for bucket in buckets)
    drawn = [bucket for bucket in buckets if bucket.start <= now]
    has_cities = any(row["dimension"] == "city" and row["label"] not in ("", "Unknown") for row in rows)
    dimensions = {key: heading for key, heading in DIMENSIONS.items() if key != "city" or has_cities}
    return {
        "chart": charts.chart(drawn, unit=unit, period=period.name, noun=noun, is_current=span.until > now),
        "total": total,
        "totals": {row["label"]: row["clicks"] for row in rows if row["dimension"] == "total"},
        "tables": charts.tables(rows, total, dimensions, partial(named, selected)),
        "more": {heading: statistics_url({"dimension": key} | selected) for key, heading in dimensions.items()},
        "periods": period,
    }


def label(dimension: str, text: str) -> str:
    """Return a label as pages show it."""
    code = _CODES.get(text) if dimension == "country" else None
    return f"{text} ({code})" if code else text or "Unknown"


def named(query: Row, row: Row) -> tuple[str, str]:
    """Return the label of a row, and the URL of the statistics that are filtered by it."""
    name, text = row["dimension"], row["label"]
    return label(name, text), statistics_url({"dimension": name, name: text} | query) if text else ""


def statistics_url(query: Row) -> str:
    return url_for("console.statistics", **query)
