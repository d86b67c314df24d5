"""A model-based test: /api/stats agrees with a plain list of visits, in all time zones, before and after folding."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st

from linkmgr.repository import purge
from linkmgr.visits.dimensions import BY_NAME
from linkmgr.visits.store import DETAILED_DAYS
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.rollups import DIFFERENCES
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.slow

ZONES = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Kolkata", "UTC")
QUARTER, HOUR, DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
TODAY = NOW.replace(hour=0)
FIRST_DAY = (TODAY - DETAILED_DAYS * DAY).date()  # with rollups by quarter of an hour
FIRST_VISIT = TODAY - 800 * DAY
WORDS = {
    "country": ("Germany", "Peru", "Unknown"),
    "city": ("Berlin", "Lima", "Unknown"),
    "referrer": ("t.co", "Direct, email and other"),
    "browser": ("Firefox", "Unknown"),
    "os": ("Linux", "iOS", "Unknown"),
    "device": ("desktop", "Unknown"),
    "language": ("German", "Unknown"),
    "utm_source": ("letter", "Unknown"),
    "utm_medium": ("email", "Unknown"),
    "utm_campaign": ("summer", "Unknown"),
    "variant": ("A", "Unknown"),
    "rule": ("1", "Unknown"),
    "kind": ("click", "scan"),
}


def _changes(name: str) -> Iterator[datetime]:
    """Return the times since the first visit at which the clocks of a zone change."""
    zone, at = ZoneInfo(name), FIRST_VISIT
    while at < NOW - 3 * DAY:
        if at.astimezone(zone).utcoffset() != (at + DAY).astimezone(zone).utcoffset():
            while at.astimezone(zone).utcoffset() == (at + QUARTER).astimezone(zone).utcoffset():
                at += QUARTER
            yield at + QUARTER
            at += QUARTER
        at += DAY


# Around these times, errors are likely: changes of clocks, the first day that is not folded, and now.
POINTS = [*(change for name in ZONES for change in _changes(name)), TODAY - DETAILED_DAYS * DAY, NOW - DAY]


def _visits(targets: list[int]) -> list[Visited]:
    random = Random(1)  # noqa: S311 - reproducible
    found = []
    for _ in range(600):
        at = random.choice(POINTS) + timedelta(seconds=random.choice([0, 1, *range(-100_000, 100_000, 77)]))
        if random.random() < 0.2:
            at = datetime.combine(at.date(), time(), UTC)
        target = random.choice(targets)
        labels = {name: random.choice(words) for name, words in WORDS.items()}
        if random.random() < 0.2:
            labels = dict.fromkeys(WORDS, "Unknown")
        visitor = f"{target} {random.randrange(6)}".encode() if random.random() < 0.9 else b""
        found.append(Visited(target, min(at, NOW), visitor, bot=random.random() < 0.1, **labels))
    return found


@dataclass(frozen=True)
class Asked:
    """A query in terms of the model."""

    by: list[str]
    metrics: list[str]
    since: datetime
    until: datetime
    zone: ZoneInfo
    targets: list[int] | None
    filters: dict[str, list[str]]
    bots: str

    @property
    def unit(self) -> str | None:
        return next((name[5:] for name in self.by if name.startswith("time:")), None)

    @property
    def dimensions(self) -> list[str]:
        return [name for name in self.by if not name.startswith("time:")]

    def query(self) -> dict[str, str]:
        values = {name: ",".join(f'"{value}"' for value in found) for name, found in self.filters.items()}
        selected = {"ids": ",".join(map(str, self.targets))} if self.targets else {}
        return {
            "by": ",".join(self.by),
            "metrics": ",".join(self.metrics),
            "from": self.since.isoformat().replace("+00:00", "Z"),
            "to": self.until.isoformat().replace("+00:00", "Z"),
            "timezone": self.zone.key,
            "bots": self.bots,
            "limit": "10000",
            **selected,
            **values,
        }

    # --- the expected answer

    def period(self, at: datetime) -> str:
        """Return the time in the row of a visit."""
        local = at.astimezone(self.zone)
        match self.unit:
            case "hour":
                start = local.astimezone(UTC) - timedelta(minutes=local.minute % 15, seconds=local.second)
                while (start - QUARTER).astimezone(self.zone).strftime("%d %H %z") == local.strftime("%d %H %z"):
                    start -= QUARTER
                return start.astimezone(self.zone).isoformat()
            case "day":
                return local.date().isoformat()
            case "week":
                return (local.date() - timedelta(days=local.weekday())).isoformat()
            case "month":
                return local.date().replace(day=1).isoformat()
            case _:
                return ""

    def periods(self) -> list[str]:
        step = QUARTER if self.unit == "hour" else 6 * HOUR
        times = [self.since + number * step for number in range((self.until - self.since) // step + 1)]
        return list(dict.fromkeys(self.period(at) for at in [*times, self.until - QUARTER] if at < self.until))

    def is_counted(self, visit: Visited) -> bool:
        for name, words in self.filters.items():
            included = [word.lower() for word in words if not word.startswith("-")]
            excluded = [word[1:].lower() for word in words if word.startswith("-")]
            label = getattr(visit, name).lower()
            if (included and label not in included) or label in excluded:
                return False
        is_of_kind = {"include": True, "exclude": not visit.bot, "only": visit.bot}[self.bots]
        return is_of_kind and (self.targets is None or visit.tracked_id in self.targets)

    def source(self) -> str:
        return "visits" if "visitors" in self.metrics or len({*self.dimensions, *self.filters}) > 1 else "rollups"

    def time_of(self, visit: Visited) -> datetime:
        """Return the time at which a visit is counted. In days that are folded or will be, it is the start of the local
        day."""
        if self.source() == "visits" or visit.at.date() >= FIRST_DAY:
            return visit.at
        return datetime.combine(visit.at.date(), time(), self.zone).astimezone(UTC)

    def expected(self, visits: list[Visited]) -> tuple[dict[Any, tuple[int, int]], tuple[int, int]]:
        """Return the clicks and visitors by time and labels, and in total."""
        groups: dict[Any, list[Visited]] = {}
        everything = []
        for visit in visits:
            at = self.time_of(visit)
            if self.is_counted(visit) and self.since <= at < self.until:
                labels = tuple(
                    visit.tracked_id if name == "target" else getattr(visit, name) for name in self.dimensions
                )
                groups.setdefault((self.period(at), *labels), []).append(visit)
                everything.append(visit)
        labels_found = {key[1:] for key in groups} if self.dimensions else {()}
        rows = {
            (period, *labels): groups.get((period, *labels), []) for period in self.periods() for labels in labels_found
        }
        assert set(groups) <= set(rows)
        return {key: numbers(found) for key, found in rows.items()}, numbers(everything)


def numbers(visits: list[Visited]) -> tuple[int, int]:
    return len(visits), len({visit.visitor for visit in visits} - {b""})


def offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


# --- queries


@st.composite
def ranges(draw: st.DrawFn, zone: ZoneInfo, unit: str | None) -> tuple[datetime, datetime]:
    """Draw a range around one of the points, often with local midnights as its ends."""
    changes = [point for point in POINTS if offset(point, zone) != offset(point - QUARTER, zone)]
    point = draw(st.sampled_from(changes if unit == "hour" and changes else POINTS))
    length = draw(st.integers(1, 5 if unit == "hour" else 80)) * DAY
    since = point - draw(st.integers(0, 6 * 96)) * QUARTER
    if draw(st.booleans()):
        local: date = since.astimezone(zone).date()
        since = datetime.combine(local, time(), zone).astimezone(UTC)
        until = datetime.combine(local + length, time(), zone).astimezone(UTC)
        return since, until
    return since, since + length + draw(st.integers(0, 95)) * QUARTER


@st.composite
def queries(draw: st.DrawFn) -> Callable[[list[int]], Asked]:
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    unit = draw(st.sampled_from([None, "hour", "hour", "day", "week", "month"]))
    names = st.sampled_from([*BY_NAME, "target"])
    dimensions = draw(st.lists(names, unique=True, max_size=1 if unit else 2, min_size=0 if unit else 1))
    since, until = draw(ranges(zone, unit))
    filtered = draw(st.lists(st.sampled_from([*BY_NAME]), unique=True, max_size=2))
    filters = {
        name: draw(st.lists(st.sampled_from([sign + word for word in WORDS[name] for sign in ("", "-")]), min_size=1))
        for name in filtered
    }
    by = draw(st.permutations([*([f"time:{unit}"] if unit else []), *dimensions]))
    metrics = draw(st.sampled_from([["clicks"], ["clicks", "visitors"]]))
    chosen = draw(st.none() | st.lists(st.integers(0, 2), unique=True, min_size=1))
    bots = draw(st.sampled_from(["exclude", "exclude", "include", "only"]))
    return lambda targets: Asked(
        by, metrics, since, until, zone,
        None if chosen is None else [targets[index] for index in chosen], filters, bots,
    )  # fmt: skip


@pytest.mark.parametrize(("batches", "folded"), [(1, False), (3, True)])
def test_the_statistics_agree_with_a_list_of_visits(
    *, app: Flask, alice: Client, sql: Sql, store: Store, batches: int, folded: bool
) -> None:
    targets = [factories.link(sql, alice.id), factories.link(sql, alice.id), factories.qr(sql, alice.id)]
    visits = _visits(targets)
    for start in range(batches):
        store(visits[start::batches])
    assert sql(DIFFERENCES) == []
    if folded:
        with app.app_context():
            purge.purge()

    @settings(max_examples=100)
    @given(make=queries())
    def agree(make: Callable[[list[int]], Asked]) -> None:
        asked = make(targets)
        answer = alice.get("/api/stats", query_string=asked.query())
        assert answer.status_code == 200, answer.text
        found = answer.get_json()
        assert found["meta"]["source"] == asked.source()
        rows, totals = asked.expected(visits)
        width = len(asked.metrics)
        assert {
            (row.get("time", ""), *(row[name] for name in asked.dimensions)): tuple(row[name] for name in asked.metrics)
            for row in found["data"]["rows"]
        } == {key: counted[:width] for key, counted in rows.items()}
        assert len(found["data"]["rows"]) == len(rows)
        assert tuple(found["data"]["totals"].values()) == totals[:width]

    agree()
