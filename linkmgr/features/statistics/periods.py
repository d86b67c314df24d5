"""Periods and buckets of statistics. SQL compares UTC times only."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.zones import parse_time, start_of_day

UNITS = ("hour", "day", "week", "month")
PERIODS = (
    "24h", "7d", "28d", "30d", "90d", "12mo", "week", "last_week", "mtd", "last_month", "ytd", "all",
)  # fmt: skip
DEFAULT_PERIOD = "30d"
MAX_HOURLY_DAYS = 100
MAX_DAYS = 10_000
# Rollups are by quarter of an hour. All time zones differ from UTC by a multiple of it.
QUARTER = timedelta(minutes=15)
_DAY = timedelta(days=1)
_DECEMBER = 12


@dataclass(frozen=True)
class Range:
    """The times from `since` up to, but not including, `until`. `since` is None for all visits that
    there are."""

    zone: ZoneInfo
    since: datetime | None
    until: datetime
    period: str | None


@dataclass(frozen=True)
class Bucket:
    start: datetime
    label: str


# --- the parameters `timezone`, `from`, `to` and `period`


def parse_range(
    zone: ZoneInfo, now: datetime, *, since: str | None, until: str | None, period: str | None
) -> Range:
    if since is None:
        if until is not None:
            raise invalid("to must be sent with from", "required", field="from")
        return _of_period(zone, now, period or DEFAULT_PERIOD)
    if period is not None:
        raise invalid("period and from exclude each other: send one of them")
    end = _parse_time("to", until, zone) if until else start_of_day(now.astimezone(zone).date() + _DAY, zone)
    return checked(Range(zone, _parse_time("from", since, zone), end, None))


def checked(span: Range) -> Range:
    assert span.since
    if span.since >= span.until:
        raise invalid("from must be before to")
    if span.until - span.since > MAX_DAYS * _DAY:
        raise invalid(f"from and to must be at most {MAX_DAYS} days apart")
    return span


def _parse_time(name: str, text: str, zone: ZoneInfo) -> datetime:
    at = parse_time(name, text, zone)
    if at.timestamp() % QUARTER.total_seconds():
        raise invalid(f"{name} must be a full quarter of an hour, such as 09:30")
    return at


def _of_period(zone: ZoneInfo, now: datetime, period: str) -> Range:
    today = now.astimezone(zone).date()
    tomorrow = start_of_day(today + _DAY, zone)
    match period:
        case "24h":
            hour = _start_of_hour(now, zone)
            return Range(zone, hour - timedelta(hours=23), hour + timedelta(hours=1), period)
        case "all":
            return Range(zone, None, tomorrow, period)
        case "12mo":
            first = date(today.year - (today.month < _DECEMBER), today.month % 12 + 1, 1)
        case "week":
            first = _first_day(today, "week")
        case "mtd":
            first = today.replace(day=1)
        case "this_week" | "last_week" | "this_month" | "last_month":
            return _calendar(zone, today, period)
        case "ytd":
            first = today.replace(month=1, day=1)
        case days:
            first = today - timedelta(days=int(days.removesuffix("d")) - 1)
    return Range(zone, start_of_day(first, zone), tomorrow, period)


def _calendar(zone: ZoneInfo, today: date, period: str) -> Range:
    which, _, unit = period.partition("_")
    first = _first_day(today, unit)
    after = _first_day(first + timedelta(days=7 if unit == "week" else 31), unit)
    if which == "last":
        first, after = _first_day(first - _DAY, unit), first
    return Range(zone, start_of_day(first, zone), start_of_day(after, zone), period)


# --- buckets


def _hour(at: datetime, zone: ZoneInfo) -> tuple[date, int, timedelta | None]:
    local = at.astimezone(zone)
    return local.date(), local.hour, local.utcoffset()


def _start_of_hour(at: datetime, zone: ZoneInfo) -> datetime:
    """Return the first quarter of the local hour. An hour that a change of the clock cuts begins
    with the change."""
    start = at - timedelta(seconds=at.timestamp() % QUARTER.total_seconds())
    while _hour(start - QUARTER, zone) == _hour(start, zone):
        start -= QUARTER
    return start


def _hours(span: Range) -> Iterator[Bucket]:
    assert span.since
    at, previous = _start_of_hour(span.since, span.zone), None
    while at < span.until:
        if (hour := _hour(at, span.zone)) != previous:
            yield Bucket(at, at.astimezone(span.zone).isoformat())
        at, previous = at + QUARTER, hour


def _first_day(day: date, unit: str) -> date:
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case _:
            return day


def _days(span: Range, unit: str) -> Iterator[Bucket]:
    assert span.since
    step = {"day": 1, "week": 7, "month": 31}[unit]
    day, previous = _first_day(span.since.astimezone(span.zone).date(), unit), None
    while (start := start_of_day(day, span.zone)) < span.until:
        if start != previous:  # a zone that crosses the date line skips a day
            yield Bucket(start, day.isoformat())
        day, previous = _first_day(day + timedelta(days=step), unit), start


def buckets(span: Range, unit: str | None) -> list[Bucket]:
    assert span.since
    if unit is None:
        return [Bucket(span.since, "")]
    if unit == "hour":
        if span.until - span.since > MAX_HOURLY_DAYS * _DAY:
            raise invalid(
                f"time:hour allows a range of at most {MAX_HOURLY_DAYS} days: use time:day, or narrow it",
                field="by",
            )
        return list(_hours(span))
    periods = list(_days(span, unit))
    if len(periods) > MAX_DAYS:
        raise invalid(
            f"time:day allows a range that touches at most {MAX_DAYS} days: use time:week, or narrow it",
            field="by",
        )
    return periods


def compared(span: Range, unit: str | None, now: datetime) -> tuple[list[datetime], list[datetime]]:
    """Return the starts of the buckets of a range, and those of the same elapsed part of the time
    before with its end, as local times.

    The difference of two times of a zone is that of their clocks, so that a day before is the same
    time of the day.
    """
    assert span.since
    zone, since, until = span.zone, span.since.astimezone(span.zone), span.until.astimezone(span.zone)
    starts = [max(bucket.start.astimezone(zone), since) for bucket in buckets(span, unit)]
    elapsed = min(
        until, (now - timedelta(seconds=now.timestamp() % QUARTER.total_seconds())).astimezone(zone)
    )
    match span.period:
        case "12mo":
            first = since.replace(year=since.year - 1)
        case "this_month" | "last_month":
            first = (since - _DAY).replace(day=1)
        case _:
            first = since - (until - since)
    begun = [start for start in starts if start < elapsed]
    if span.period == "12mo" and unit == "month":
        before = [start.replace(year=start.year - 1) for start in begun]
    else:
        before = [min(first + (start - since), since) for start in begun]
    end = min(before[-1] + (elapsed - begun[-1]), since) if begun else first
    return starts, [*before, end]


def as_array(values: Iterable[datetime | date]) -> str:
    return f"{{{','.join(value.isoformat() for value in values)}}}"


# --- UTC days


def _utc_day_of(at: datetime, zone: ZoneInfo, days_before: date) -> date:
    """Return the first UTC day that begins at or after a time. Before `days_before`, where only UTC
    days are stored, return the first day by its local date instead, so that each UTC day is counted
    as the local day of its date."""
    day = at.astimezone(zone).date()
    if day < days_before:
        return day if start_of_day(day, zone) == at else day + _DAY
    day = at.date()
    return day if at.time() == time() else day + _DAY


def _cuts(edges: list[datetime], since: datetime, until: datetime, days_before: date) -> list[datetime]:
    inner = {edge for edge in (*edges, since, until) if since <= edge <= until and edge.time() != time()}
    return [edge for edge in sorted(inner) if edge.date() >= days_before]


def as_rollups(span: Range, edges: list[datetime], days_before: date) -> dict[str, str]:
    """Return the parameters of a statement on rollups, in UTC: the ends of a range, the edges of
    its buckets, those times that divide UTC days as `cuts`, and these days as `split`. Rollups
    before `days_before` are those of whole UTC days, so earlier times become the start of their UTC
    day."""
    assert span.since
    first = datetime.combine(days_before, time(), UTC)
    cuts = _cuts(edges, span.since, span.until, days_before)

    def rounded(at: datetime) -> datetime:
        return at if at >= first else datetime.combine(_utc_day_of(at, span.zone, days_before), time(), UTC)

    return {
        "edges": as_array(map(rounded, edges)),
        "since": rounded(span.since).isoformat(),
        "until": rounded(span.until).isoformat(),
        "cuts": as_array(cuts),
        "split": as_array(dict.fromkeys(datetime.combine(cut.date(), time(), UTC) for cut in cuts)),
    }
