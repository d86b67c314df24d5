"""The period of a page, and the numbers of one or many targets in it: the chart, and the tables with bars."""

from datetime import UTC, datetime, timedelta

from flask import g

from linkmgr.db.statements import Row
from linkmgr.fields.base import query_choice
from linkmgr.fields.countries import NAMES
from linkmgr.fields.periods import Range, parse_range, parse_zone
from linkmgr.fields.periods import buckets as buckets_of
from linkmgr.pages.console import charts, frame
from linkmgr.repository import overviews

SPARK_DAYS = 30
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
PERIODS = {
    "24h": ("the last 24 hours", ("hour",)),
    "7d": ("the last 7 days", ("day", "hour")),
    "30d": ("the last 30 days", ("day", "week")),
    "90d": ("the last 90 days", ("day", "week", "month")),
    "12mo": ("the last 12 months", ("month", "week")),
}
DEFAULT = "30d"


def spark_days() -> list[str]:
    """Return the UTC days of a sparkline."""
    today = datetime.now(UTC).date()
    return [(today - timedelta(days=number)).isoformat() for number in range(SPARK_DAYS - 1, -1, -1)]


def add_spark(row: Row, days: list[str], counts: dict[str, int]) -> None:
    """Add the number of recent visits and the path of the sparkline to a row of a list."""
    row["recent"] = sum(counts.values())
    row["spark"] = charts.sparkline([counts.get(day, 0) for day in days])


def numbers(*, target_id: int | None = None, campaign_id: int | None = None, noun: str = "click") -> Row:
    """Count the visits of a link or QR code, or of the links of a campaign, in the period of the query."""
    period = query_choice("period", tuple(PERIODS)) or DEFAULT
    name, units = PERIODS[period]
    unit = query_choice("by", ("hour", "day", "week", "month")) or units[0]
    if unit not in units:
        unit = units[0]
    span = parse_range(parse_zone("UTC"), datetime.now(UTC), since=None, until=None, period=period)
    assert span.since
    edges = _edges(span, period, unit)
    rows = overviews.of_targets(
        g.user_id,
        target_id=target_id,
        campaign_id=campaign_id,
        edges=f"{{{','.join(edge.isoformat() for edge in edges)}}}",
        previous=edges[0].isoformat(),
        since=span.since.isoformat(),
        until=span.until.isoformat(),
        limit=_TOP,
    )
    number = len(edges) // 2
    counts = {int(row["label"]): row["clicks"] for row in rows if not row["dimension"]}
    buckets = [
        charts.Bucket(start, counts.get(number + place, 0), counts.get(place, 0))
        for place, start in enumerate(edges[number:], 1)
    ]
    total = sum(bucket.clicks for bucket in buckets)
    return {
        "chart": charts.chart(buckets, unit=unit, period=name, noun=noun),
        "total": total,
        "tables": frame.tables(rows, total, _DIMENSIONS, _label),
        "period": period,
        "periods": PERIODS,
        "unit": unit,
        "units": units,
    }


def _edges(span: Range, period: str, unit: str) -> list[datetime]:
    """Return the starts of the buckets of the period before, and those of the period itself."""
    assert span.since
    current = [max(bucket.start, span.since) for bucket in buckets_of(span, unit)]
    if unit == "month" and period == "12mo":
        return [start.replace(year=start.year - 1) for start in current] + current
    length = span.since - span.since.replace(year=span.since.year - 1) if period == "12mo" else span.until - span.since
    return [start - length for start in current] + current


def _label(row: Row) -> tuple[str, str]:
    label = row["label"] or "Unknown"
    code = _CODES.get(label) if row["dimension"] == "country" else None
    return f"{label} ({code})" if code else label, ""
