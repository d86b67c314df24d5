"""The templates draw what this module computes. A plot is stretched to the width of the page, so
its labels are not part of it. Coordinates are from 0 to WIDTH and from 0 to HEIGHT."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.zones import start_of_day
from linkmgr.features.statistics.periods import Range, as_rollups

WIDTH, HEIGHT = 1000, 200
SPARK_WIDTH, SPARK_HEIGHT = 120, 28
SPARK_DAYS = 28
MAX_X_TICKS = 8
FEW = 20  # clicks; fewer have no percentages, and bars instead of lines
_MAX_STEPS = 4
_STEPS = [factor * 10**power // 10 for power in range(20) for factor in (10, 20, 25, 50)]
_WEEK = 7  # days

# By unit, from many ticks to few: the buckets that get a tick.
_X_TICKS: dict[str, tuple[Callable[[datetime], bool], ...]] = {
    "minute": (lambda at: at.minute % 5 == 0,),
    "hour": (lambda at: at.hour % 3 == 0, lambda at: at.hour % 6 == 0, lambda at: at.hour == 0),
    "day": (lambda at: True, lambda at: at.weekday() == 0, lambda at: at.day == 1),
    "week": (lambda at: at.day <= _WEEK, lambda at: at.day <= _WEEK and at.month % 3 == 1),
    "month": (lambda at: True, lambda at: at.month % 2 == 1),
}
_FULL_LABELS = {"minute": "%H:%M", "hour": "%b %-d, %H:%M", "day": "%a, %b %-d", "month": "%B %Y"}


class Bucket(NamedTuple):
    start: datetime
    clicks: int
    previous: int  # or the visitors, if the chart shows them


def y_ticks(maximum: int) -> list[int]:
    step = next(step for step in _STEPS if maximum <= _MAX_STEPS * step)
    return list(range(0, max(1, maximum) + step, step))


def tick_label(at: datetime, unit: str) -> str:
    if unit == "month":
        return f"{at:%b %Y}" if at.month == 1 else f"{at:%b}"
    return f"{at:%H:%M}" if unit == "minute" or (unit == "hour" and at.hour) else f"{at:%b %-d}"


def x_ticks(starts: list[datetime], unit: str) -> list[tuple[int, str]]:
    for has_tick in _X_TICKS[unit]:
        ticks = [(number, tick_label(at, unit)) for number, at in enumerate(starts) if has_tick(at)]
        if len(ticks) <= MAX_X_TICKS:
            return ticks
    every = -(-len(ticks) // MAX_X_TICKS)
    return ticks[::every]


def full_label(at: datetime, unit: str) -> str:
    if unit == "week":
        return f"{at:%b %-d} to {at + timedelta(days=6 - at.weekday()):%b %-d}"
    return at.strftime(_FULL_LABELS[unit])


def count(number: int, noun: str = "click") -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def title(buckets: list[Bucket], period: str, noun: str = "click", also: str = "") -> str:
    total, before = sum(bucket.clicks for bucket in buckets), sum(bucket.previous for bucket in buckets)
    sentence = f"{count(total, noun)}{also} in {period}"
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
) -> Row:
    """Return the chart of clicks for the macro `chart`. If it is current, the last bucket is not
    complete. `sentence` is another title. The second line is the time `before`, the `visitors`, or
    missing."""
    ticks = y_ticks(max(max(bucket.clicks, bucket.previous) for bucket in buckets))
    top, step = ticks[-1], WIDTH / len(buckets)

    def points(numbers: list[int]) -> list[tuple[float, float]]:
        return [
            ((place + 0.5) * step, HEIGHT - number / top * HEIGHT) for place, number in enumerate(numbers)
        ]

    line, total = points([bucket.clicks for bucket in buckets]), sum(bucket.clicks for bucket in buckets)
    partial = len(buckets) - 1 if is_current else None
    before = sum(bucket.previous for bucket in buckets)
    marks = [
        bucket._asdict()
        | {"x": x, "y": y, "label": full_label(bucket.start, unit), "is_partial": number == partial}
        for number, ((x, y), bucket) in enumerate(zip(line, buckets, strict=True))
    ]
    return {
        "title": sentence or title(buckets, period, noun),
        "shape": "bars" if total < FEW else "line",
        "unit": unit,
        "noun": noun,
        "total": total,
        "second": second,
        "marks": marks,
        "step": step,
        "line": _path(line[:partial]),
        "partial": _path(line[-2:]) if is_current else "",  # leads to the current bucket
        "area": f"{_path(line)}L{line[-1][0]:.1f} {HEIGHT}L{line[0][0]:.1f} {HEIGHT}Z",
        "before": before,
        "previous": _path(points([bucket.previous for bucket in buckets])) if before and total >= FEW else "",
        "y_ticks": [(HEIGHT - tick / top * HEIGHT, f"{tick:,}") for tick in reversed(ticks)],
        # in percent of the width
        "x_ticks": [
            ((at + 0.5) / len(buckets) * 100, label)
            for at, label in x_ticks([b.start for b in buckets], unit)
        ],
    }


def sparkline(clicks: list[int]) -> str:
    top, step = max(clicks, default=0), SPARK_WIDTH / max(1, len(clicks) - 1)
    if not top:
        return ""
    height = SPARK_HEIGHT - 4  # room for the width of the line
    return _path([(number * step, 2 + height - value / top * height) for number, value in enumerate(clicks)])


def spark_days(zone: ZoneInfo) -> dict[str, str]:
    today = datetime.now(zone).date()
    edges = [start_of_day(today - timedelta(days=number), zone) for number in range(SPARK_DAYS - 1, -2, -1)]
    return as_rollups(Range(zone, edges[0], edges.pop(), None), edges, date.min)


def add_spark(row: Row, counts: dict[str, int]) -> None:
    row["recent"] = sum(counts.values())
    row["spark"] = sparkline([counts.get(str(number), 0) for number in range(1, SPARK_DAYS + 1)])
