"""Ticks, sentences and paths of charts."""

from datetime import UTC, datetime, timedelta

import pytest

from linkmgr.console import charts
from linkmgr.console.charts import Bucket

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
STEPS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}


@pytest.mark.parametrize(
    ("maximum", "ticks"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (5, [0, 2, 4, 6]),
        (10, [0, 5, 10]),
        (85, [0, 25, 50, 75, 100]),
        (101, [0, 50, 100, 150]),
        (1204, [0, 500, 1000, 1500]),
        (9_999_999, [0, 2_500_000, 5_000_000, 7_500_000, 10_000_000]),
    ],
)
def test_y_ticks_are_at_most_five_round_numbers_from_zero(maximum: int, ticks: list[int]) -> None:
    assert charts.y_ticks(maximum) == ticks


@pytest.mark.parametrize(
    ("unit", "number", "labels"),
    [
        ("hour", 24, ["Mar 2", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"]),
        ("hour", 168, ["Mar 2", "Mar 3", "Mar 4", "Mar 5", "Mar 6", "Mar 7", "Mar 8"]),
        ("day", 7, ["Mar 2", "Mar 3", "Mar 4", "Mar 5", "Mar 6", "Mar 7", "Mar 8"]),
        ("day", 30, ["Mar 2", "Mar 9", "Mar 16", "Mar 23", "Mar 30"]),
        ("day", 90, ["Apr 1", "May 1"]),
        ("week", 13, ["Mar 2", "Apr 6", "May 4"]),
        ("week", 52, ["Apr 6", "Jul 6", "Oct 5", "Jan 4"]),
    ],
)
def test_x_ticks_are_at_natural_times(unit: str, number: int, labels: list[str]) -> None:
    starts = [START + place * STEPS[unit] for place in range(number)]
    assert [label for _, label in charts.x_ticks(starts, unit)] == labels


def test_months_have_at_most_eight_ticks_and_name_the_year_in_january() -> None:
    months = [datetime(2025 + (month > 11), month % 12 + 1, 1, tzinfo=UTC) for month in range(9, 21)]
    assert [label for _, label in charts.x_ticks(months, "month")] == ["Nov", "Jan 2026", "Mar", "May", "Jul", "Sep"]


@pytest.mark.parametrize(
    ("clicks", "before", "sentence"),
    [
        (0, 0, "0 clicks in the last day"),
        (1, 0, "1 click in the last day"),
        (19, 40, "19 clicks in the last day, 40 before"),
        (1204, 1075, "1,204 clicks in the last day, 12 % more than before"),
        (50, 100, "50 clicks in the last day, 50 % fewer than before"),
        (1000, 1001, "1,000 clicks in the last day, as many as before"),
    ],
)
def test_the_title_is_a_sentence_without_percentages_of_few_clicks(clicks: int, before: int, sentence: str) -> None:
    assert charts.title([Bucket(START, clicks, before)], "the last day") == sentence


def test_few_clicks_are_bars_and_more_are_a_line_whose_last_part_is_not_complete() -> None:
    buckets = [Bucket(START + timedelta(days=day), clicks, 0) for day, clicks in enumerate((10, 5, 4))]
    assert charts.chart(buckets, unit="day", period="")["shape"] == "bars"
    chart = charts.chart([*buckets, Bucket(START + timedelta(days=3), 1, 0)], unit="day", period="")
    assert chart["shape"] == "line"
    assert (chart["line"], chart["partial"]) == ("M125.0 0.0L375.0 100.0L625.0 120.0", "M625.0 120.0L875.0 180.0")
    assert chart["previous"] == ""
    assert [mark["is_partial"] for mark in chart["marks"]] == [False, False, False, True]
    assert chart["y_ticks"] == [(0.0, "10"), (100.0, "5"), (200.0, "0")]


def test_a_sparkline_without_clicks_is_nothing() -> None:
    assert charts.sparkline([0, 0]) == charts.sparkline([]) == ""
    assert charts.sparkline([0, 4, 2]) == "M0.0 26.0L60.0 2.0L120.0 14.0"
