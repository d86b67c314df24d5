"""Charts as SVG: lines with area, bars and sparklines; and tables with bars.

The templates draw what this module computes. A plot is stretched to the width of the page, so its labels are not part
of it. Coordinates are from 0 to WIDTH and from 0 to HEIGHT.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from linkmgr.db.statements import Row
from linkmgr.fields.periods import Range, as_rollups, start_of_day

WIDTH, HEIGHT = 1000, 200
SPARK_WIDTH, SPARK_HEIGHT = 120, 28
SPARK_DAYS = 28
MAX_X_TICKS = 8
FEW = 20  # clicks; fewer have no percentages, and bars instead of a line
_MAX_STEPS = 4
_STEPS = (1, 2, 2.5, 5, 10)
_WEEK = 7  # days

# By unit, from many ticks to few: the buckets that get a tick.
_X_TICKS: dict[str, tuple[Callable[[datetime], bool], ...]] = {
    "minute": (lambda at: at.minute % 5 == 0,),
    "hour": (lambda at: at.hour % 3 == 0, lambda at: at.hour % 6 == 0, lambda at: at.hour == 0),
    "day": (lambda at: True, lambda at: at.weekday() == 0, lambda at: at.day == 1),
    "week": (lambda at: at.day <= _WEEK, lambda at: at.day <= _WEEK and at.month % 3 == 1),
    "month": (lambda at: True, lambda at: at.month % 2 == 1),
}


class Bucket(NamedTuple):
    """The clicks of a unit of time, and of the same unit in the period before."""

    start: datetime
    clicks: int
    previous: int  # or the visitors, if the chart shows them


class Mark(NamedTuple):
    """A point or a bar, with the texts of its tooltip and of its row in the table."""

    x: float
    y: float
    label: str
    clicks: int
    previous: int
    is_partial: bool


class Chart(NamedTuple):
    title: str
    kind: str
    unit: str
    marks: list[Mark]
    step: float  # the width of a bucket
    line: str
    partial: str  # the part of the line that leads to the current bucket
    area: str
    previous: str
    y_ticks: list[tuple[float, str]]  # from the top down
    x_ticks: list[tuple[float, str]]  # in percent of the width
    noun: str  # of one visit
    second: str  # what the second line shows: "before", "visitors" or ""


def buckets(rows: list[Row], starts: list[datetime], before: list[datetime]) -> list[Bucket]:
    """Return the buckets of `periods.compared`, whose numbers the rows without a dimension have."""
    counts = {int(row["label"]): row["clicks"] for row in rows if not row["dimension"]}
    counts[len(before)] = 0  # after the elapsed part
    return [
        Bucket(start, counts.get(len(before) + number, 0), counts.get(min(number, len(before)), 0))
        for number, start in enumerate(starts, 1)
    ]


def y_ticks(maximum: int) -> list[int]:
    """Return at most five round numbers, from 0 to at least the maximum."""
    size = 1
    while True:
        for factor in _STEPS:
            step = factor * size
            if step == int(step) and maximum <= _MAX_STEPS * step:
                count = max(1, -(-maximum // int(step)))
                return [int(step) * number for number in range(count + 1)]
        size *= 10


def tick_label(at: datetime, unit: str) -> str:
    if unit == "month":
        return f"{at:%b %Y}" if at.month == 1 else f"{at:%b}"
    if unit == "minute" or (unit == "hour" and at.hour):
        return f"{at:%H:%M}"
    return f"{at:%b} {at.day}"


def x_ticks(starts: list[datetime], unit: str) -> list[tuple[int, str]]:
    """Return the numbers of the buckets with a tick, at most eight, and their labels."""
    for has_tick in _X_TICKS[unit]:
        ticks = [(number, tick_label(at, unit)) for number, at in enumerate(starts) if has_tick(at)]
        if len(ticks) <= MAX_X_TICKS:
            return ticks
    every = -(-len(ticks) // MAX_X_TICKS)
    return ticks[::every]


def full_label(at: datetime, unit: str) -> str:
    match unit:
        case "minute":
            return f"{at:%H:%M}"
        case "hour":
            return f"{at:%b} {at.day}, {at:%H:%M}"
        case "week":
            end = at + timedelta(days=6 - at.weekday())
            return f"{at:%b} {at.day} to {end:%b} {end.day}"
        case "month":
            return f"{at:%B %Y}"
        case _:
            return f"{at:%a}, {at:%b} {at.day}"


def count(number: int, noun: str = "click") -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def title(buckets: list[Bucket], period: str, noun: str = "click") -> str:
    """Return the sentence that a chart shows. Few clicks have no percentage."""
    total, before = sum(bucket.clicks for bucket in buckets), sum(bucket.previous for bucket in buckets)
    sentence = f"{count(total, noun)} in {period}"
    if not before:
        return sentence
    if min(total, before) < FEW:
        return f"{sentence}, {before:,} before"
    change = round((total - before) / before * 100)
    if change == 0:
        return f"{sentence}, as many as before"
    return f"{sentence}, {abs(change):,} % {'more' if change > 0 else 'fewer'} than before"


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""


def chart(
    buckets: list[Bucket],
    *,
    unit: str,
    period: str,
    noun: str = "click",
    is_current: bool = True,
    sentence: str = "",
    second: str = "before",
) -> Chart:
    """Return the chart of clicks. If it is current, the last bucket is not complete. `sentence` is another title."""
    ticks = y_ticks(max(max(bucket.clicks, bucket.previous) for bucket in buckets))
    top, step = ticks[-1], WIDTH / len(buckets)

    def point(number: int, clicks: int) -> tuple[float, float]:
        return (number + 0.5) * step, HEIGHT - clicks / top * HEIGHT

    points = [point(number, bucket.clicks) for number, bucket in enumerate(buckets)]
    partial = len(buckets) - 1 if is_current else None
    marks = [
        Mark(x, y, full_label(bucket.start, unit), bucket.clicks, bucket.previous, number == partial)
        for number, ((x, y), bucket) in enumerate(zip(points, buckets, strict=True))
    ]
    has_previous = any(bucket.previous for bucket in buckets)
    return Chart(
        sentence or title(buckets, period, noun),
        "bars" if sum(bucket.clicks for bucket in buckets) < FEW else "line",
        unit,
        marks,
        step,
        _path(points[:partial]),
        _path(points[-2:]) if is_current else "",
        f"{_path(points)}L{points[-1][0]:.1f} {HEIGHT}L{points[0][0]:.1f} {HEIGHT}Z",
        _path([point(number, bucket.previous) for number, bucket in enumerate(buckets)]) if has_previous else "",
        [(HEIGHT - tick / top * HEIGHT, f"{tick:,}") for tick in reversed(ticks)],
        [((number + 0.5) / len(buckets) * 100, label) for number, label in x_ticks([b.start for b in buckets], unit)],
        noun,
        second,
    )


def sparkline(clicks: list[int]) -> str:
    """Return the path of a sparkline, or "" without clicks."""
    top, step = max(clicks, default=0), SPARK_WIDTH / max(1, len(clicks) - 1)
    if not top:
        return ""
    height = SPARK_HEIGHT - 4  # room for the width of the line
    return _path([(number * step, 2 + height - value / top * height) for number, value in enumerate(clicks)])


def spark_days(zone: ZoneInfo) -> dict[str, str]:
    """Return the days of a sparkline in a time zone as the parameters of a statement."""
    today = datetime.now(zone).date()
    edges = [start_of_day(today - timedelta(days=number), zone) for number in range(SPARK_DAYS - 1, -2, -1)]
    return as_rollups(Range(zone, edges[0], edges.pop(), None), edges, date.min)


def add_spark(row: Row, counts: dict[str, int]) -> None:
    """Add the number of recent visits and the path of the sparkline to a row of a list. `counts` has the visits by the
    number of the day, from 1."""
    row["recent"] = sum(counts.values())
    row["spark"] = sparkline([counts.get(str(number), 0) for number in range(1, SPARK_DAYS + 1)])


class Bar(NamedTuple):
    """A row of a table with bars."""

    label: str
    clicks: int
    width: float  # in percent of the largest
    share: str
    url: str


def tables(
    rows: list[Row], total: int, headings: dict[str, str], name: Callable[[Row], tuple[str, str]]
) -> dict[str, list[Bar]]:
    """Return a table of the rows of each dimension, by heading. `name` returns the label and the URL of a row. Few
    clicks have no shares."""
    made: dict[str, list[Bar]] = {heading: [] for heading in headings.values()}
    for row in rows:  # those of a dimension begin with the largest
        if row["dimension"] in headings:
            table, clicks = made[headings[row["dimension"]]], row["clicks"]
            label, url = name(row)
            width = clicks / (table[0].clicks if table else clicks) * 100
            table.append(Bar(label, clicks, width, f"{clicks / total * 100:.0f} %" if total >= FEW else "", url))
    return made
