"""Periods of the console, and the same elapsed part of the time before each."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from linkmgr.console.periods import Period
from linkmgr.features.statistics.periods import compared, parse_range

ZONE = ZoneInfo("Europe/Berlin")
WEDNESDAY = "2026-11-18T11:26"


@pytest.mark.parametrize(
    ("period", "unit", "now", "since", "number", "before", "end"),
    [
        ("24h", "hour", WEDNESDAY, "2026-11-17T12:00", 24, "2026-11-16T12:00", "2026-11-17T11:15"),
        ("7d", "day", WEDNESDAY, "2026-11-12T00:00", 7, "2026-11-05T00:00", "2026-11-11T11:15"),
        ("28d", "day", WEDNESDAY, "2026-10-22T00:00", 28, "2026-09-24T00:00", "2026-10-21T11:15"),
        ("this_week", "day", WEDNESDAY, "2026-11-16T00:00", 7, "2026-11-09T00:00", "2026-11-11T11:15"),
        ("last_week", "day", WEDNESDAY, "2026-11-09T00:00", 7, "2026-11-02T00:00", "2026-11-09T00:00"),
        ("this_month", "day", WEDNESDAY, "2026-11-01T00:00", 30, "2026-10-01T00:00", "2026-10-18T11:15"),
        ("last_month", "day", WEDNESDAY, "2026-10-01T00:00", 31, "2026-09-01T00:00", "2026-10-01T00:00"),
        ("12mo", "month", WEDNESDAY, "2025-12-01T00:00", 12, "2024-12-01T00:00", "2025-11-18T11:15"),
        # The month before is shorter, and longer.
        ("this_month", "day", "2026-03-31T12:00", "2026-03-01T00:00", 31, "2026-02-01T00:00", "2026-03-01T00:00"),
        ("last_month", "day", "2026-03-05T12:00", "2026-02-01T00:00", 28, "2026-01-01T00:00", "2026-01-29T00:00"),
        # Nothing has elapsed.
        ("this_week", "day", "2026-11-16T00:05", "2026-11-16T00:00", 7, "2026-11-09T00:00", "2026-11-09T00:00"),
    ],
)
def test_a_period_is_compared_with_the_same_elapsed_part_of_the_time_before(
    *, period: str, unit: str, now: str, since: str, number: int, before: str, end: str
) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=ZONE)
    starts, edges = compared(parse_range(ZONE, at, since=None, until=None, period=period), unit, at)
    assert (f"{starts[0]:%Y-%m-%dT%H:%M}", len(starts)) == (since, number)
    assert (f"{edges[0]:%Y-%m-%dT%H:%M}", f"{edges[-1]:%Y-%m-%dT%H:%M}") == (before, end)
    assert len(edges) == 1 + len([start for start in starts if start < at.replace(minute=at.minute // 15 * 15)])
    assert edges == sorted(edges)


def test_a_period_that_has_just_begun_is_compared_with_nothing() -> None:
    at = datetime.fromisoformat("2026-11-16T00:05").replace(tzinfo=ZONE)
    period = Period(parse_range(ZONE, at, since=None, until=None, period="this_week"), "week", {}, [], "day", at)
    assert period.with_before()["edges"] == "{2026-11-08T23:00:00+00:00,2026-11-15T23:00:00+00:00}"
