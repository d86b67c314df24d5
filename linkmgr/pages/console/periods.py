"""The period of a page, and the numbers of one or many targets in it: the chart, and the tables with bars."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from flask import g

from linkmgr.db.statements import Row
from linkmgr.fields.countries import NAMES
from linkmgr.fields.periods import (
    MAX_DAYS,
    UNITS,
    Range,
    as_days,
    checked,
    compared,
    parse_range,
    start_of_day,
)
from linkmgr.fields.query import query_choice, query_text
from linkmgr.pages import charts
from linkmgr.repository import target_overview
from linkmgr.repository.rollups import DETAILED_DAYS
from linkmgr.web.errors import AppError

_TOP = 8
_CODES = {names[0]: code for code, names in NAMES.items()}
_DIMENSIONS = {
    "country": "Countries",
    "city": "Cities",
    "referrer": "Referrers",
    "browser": "Browsers",
    "os": "Systems",
    "device": "Devices",
    "language": "Languages",
}
# By period: its name, and the units of its chart, the first of which is the default.
PERIODS = {
    "24h": ("the last 24 hours", ("hour",)),
    "7d": ("the last 7 days", ("day", "hour")),
    "30d": ("the last 30 days", ("day", "week")),
    "90d": ("the last 90 days", ("day", "week", "month")),
    "12mo": ("the last 12 months", ("month", "week")),
}
DEFAULT = "30d"
_FIRST = date(2000, 1, 1)  # of a custom period
# By unit: the least and the greatest number of days of a custom period that is shown by it.
_CUSTOM_UNITS = {"day": (3, 120), "hour": (1, 7), "week": (21, 800), "month": (90, MAX_DAYS)}


class Period(NamedTuple):
    """The period of the query: its times, its name, the members of the query that select it, and the units of its
    chart, the first of which is the default."""

    span: Range
    name: str
    query: dict[str, str]
    units: tuple[str, ...]


def _parse_date(name: str) -> date | None:
    text = query_text(name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise AppError("invalid", problems=f"{name} must be a date such as 2026-11-21") from None


def _custom(today: date) -> Period | None:
    """Return the period from the day `from` up to and including the day `to`, in either order, or None."""
    begin, end = _parse_date("from"), _parse_date("to")
    if not (begin or end):
        return None
    first, last = sorted(max(_FIRST, min(day, today)) for day in (begin or end or today, end or today))
    span = checked(Range(g.zone, start_of_day(first, g.zone), start_of_day(last + timedelta(days=1), g.zone), None))
    days = (last - first).days + 1
    units = tuple(unit for unit, (least, most) in _CUSTOM_UNITS.items() if least <= days <= most)
    name = f"{first:%b} {first.day}" + (f", {first.year}" if first.year != last.year else "")
    query = {"from": first.isoformat(), "to": last.isoformat()}
    return Period(span, f"the period {name} to {last:%b} {last.day}, {last.year}", query, units)


def _period(now: datetime) -> Period:
    if custom := _custom(now.astimezone(g.zone).date()):
        return custom
    period = query_choice("period", tuple(PERIODS)) or DEFAULT
    span = parse_range(g.zone, now, since=None, until=None, period=period)
    return Period(span, PERIODS[period][0], {"period": period}, PERIODS[period][1])


def numbers(*, target_id: int | None = None, campaign_id: int | None = None, noun: str = "click") -> Row:
    """Count the visits of a link or QR code, or of the links of a campaign, in the period of the query."""
    now = datetime.now(UTC)
    span, name, query, units = _period(now)
    unit = query_choice("by", UNITS)
    if unit not in units:
        unit = units[0]
    assert span.since
    edges = [edge.astimezone(UTC) for edge in compared(span, unit)]
    days_before = now.date() - timedelta(days=DETAILED_DAYS)
    days, label_days = as_days(replace(span, since=edges[0]), edges, days_before), as_days(span, [], days_before)
    rows = target_overview.read(
        g.user_id,
        target_id=target_id,
        campaign_id=campaign_id,
        limit=_TOP,
        edges=days["edges"],
        day_edges=days["day_edges"],
        days_before=days_before.isoformat(),
        previous=days["since"],
        previous_day=days["since_day"],
        since=label_days["since"],
        since_day=label_days["since_day"],
        until=days["until"],
        until_day=days["until_day"],
        split=days["split"],
        label_split=label_days["split"],
    )
    number = len(edges) // 2
    counts = {int(row["label"]): row["clicks"] for row in rows if not row["dimension"]}
    buckets = [
        charts.Bucket(start.astimezone(g.zone), counts.get(number + place, 0), counts.get(place, 0))
        for place, start in enumerate(edges[number:], 1)
    ]
    total = sum(bucket.clicks for bucket in buckets)
    drawn = [bucket for bucket in buckets if bucket.start <= now]
    chart = charts.chart(drawn, unit=unit, period=name, noun=noun, is_current=span.until > now)
    has_cities = any(row["dimension"] == "city" and row["label"] not in ("", "Unknown") for row in rows)
    dimensions = {key: heading for key, heading in _DIMENSIONS.items() if key != "city" or has_cities}
    return {
        # The sentence compares whole periods, whatever the unit, although hours to come are not drawn.
        "chart": chart._replace(title=charts.title(buckets, name, noun)),
        "total": total,
        "tables": charts.tables(rows, total, dimensions, _label),
        "period": query.get("period"),
        "periods": PERIODS,
        "name": name,
        "query": query,
        "unit": unit,
        "units": units,
        "today": now.astimezone(g.zone).date().isoformat(),
    }


def _label(row: Row) -> tuple[str, str]:
    label = row["label"] or "Unknown"
    code = _CODES.get(label) if row["dimension"] == "country" else None
    return f"{label} ({code})" if code else label, ""
