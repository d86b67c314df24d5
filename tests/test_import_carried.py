"""Tests, splits, frames and the like of other services, which become members of links."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import Client
from tests.support.imported import Import, counts, details
from tests.support.reading import SALE, only

OTHER = "https://example.com/other"
DUB = {"id": "link_1", "domain": "dub.sh", "key": "a", "url": SALE, "shortLink": "https://dub.sh/a"}
TEST = [{"url": SALE, "percentage": 30}, {"url": OTHER, "percentage": 70.0}]


def at(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%S.000Z}"


def dub(**members: Any) -> bytes:
    return json.dumps([DUB | members]).encode()


@pytest.mark.parametrize("ends", [None, 7])
@pytest.mark.parametrize("starts", [None, -7])
def test_a_running_test_of_dub_becomes_variants(
    alice: Client, run_import: Import, starts: int | None, ends: int | None
) -> None:
    times = {"testStartedAt": starts and at(starts), "testCompletedAt": ends and at(ends)}
    assert counts(run_import(alice, dub(testVariants=TEST, **times))) == ("done", 1, 1, 0, 0, 0)
    assert details(alice, "a")["variants"] == [
        {"name": "Variant 1", "url": SALE, "weight": 30},
        {"name": "Variant 2", "url": OTHER, "weight": 70},
    ]


def test_a_test_of_dub_that_has_ended_is_no_reason_to_fail() -> None:
    row = only(dub(testVariants=TEST, testStartedAt=at(-30), testCompletedAt=at(-7)))
    assert (row.problem, row.members["url"], "variants" in row.members) == (None, SALE, False)
    assert only(dub(testVariants=None, testStartedAt=None, testCompletedAt=None)).problem is None


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"testVariants": TEST, "testStartedAt": "2099-01-01T00:00:00Z"},
         "has a test that begins on 2099-01-01 00:00:00, and would begin now. Leave the row out, or empty its column"),
        ({"testVariants": [{"url": SALE, "percentage": 33.3}]}, "has a 'testVariants' whose percentages are not int"),
        ({"testVariants": [{"url": SALE}]}, "has a 'testVariants' whose percentages are not integers from 1 to 100."),
        ({"testVariants": "soon"}, "has a 'testVariants' that is no JSON array of objects."),
        ({"testVariants": TEST, "testCompletedAt": "soon"}, "has a time of a test in an unknown format: 'soon'."),
    ],
)  # fmt: skip
def test_a_test_that_variants_cannot_be_fails_its_link(members: dict[str, Any], problem: str) -> None:
    assert (only(dub(**members)).problem or "").startswith(f"Row 1 {problem}")


def test_a_column_that_the_user_ignores_becomes_nothing() -> None:
    row = only(dub(testVariants=TEST), mapping={"testVariants": None})
    assert (row.problem, "variants" in row.members) == (None, False)
