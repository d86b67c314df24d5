"""20,000 visits with known labels and 2,000 conversions by all three ways: statistics agree with a count in Python."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import combinations
from random import Random
from typing import Any

import pytest
from flask import Flask

from linkmgr.features.conversions import clicks, pages, reports
from linkmgr.features.conversions import repository as conversions
from linkmgr.visits.dimensions import BY_NAME
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.slow

VISITS, REPORTS, LINKS = 20_000, 2000, 20
LABELS: dict[str, tuple[str, ...]] = {
    "country": ("Germany", "Peru", "Unknown"), "city": ("Berlin", "Unknown"), "referrer": ("t.co", "news.example.com"),
    "browser": ("Firefox", "Chrome"), "os": ("Linux", "iOS"), "device": ("desktop", "phone"),
    "language": ("German", "Unknown"), "utm_source": ("letter", "ads", "Unknown"), "utm_medium": ("email", "Unknown"),
    "utm_campaign": ("summer", "Unknown"), "variant": ("A", "B", "Unknown"), "rule": ("1", "Unknown"),
    "kind": ("click", "scan"),
}  # fmt: skip
EVENTS, CURRENCIES = ("sale", "lead"), ("EUR", "USD")
DIMENSIONS = (*BY_NAME, "event", "currency", "target")


def of(visit: Visited, report: dict[str, Any], name: str) -> Any:
    return {"target": visit.tracked_id, **visit._asdict(), **report}[name]


def test_conversions_are_counted_by_each_pair_of_dimensions(app: Flask, alice: Client, sql: Sql, store: Store) -> None:
    rng, now = Random(5), datetime.now(UTC).replace(microsecond=0)  # noqa: S311
    made: Any = Visited
    links = [factories.link(sql, alice.id) for _ in range(LINKS)]
    visits = [
        made(
            rng.choice(links), now - timedelta(minutes=30 + number), b"visitor %d" % number,
            **{name: rng.choice(labels) for name, labels in LABELS.items()},
        )
        for number in range(VISITS)
    ]  # fmt: skip
    store(visits)
    sold: list[tuple[Visited, dict[str, Any]]] = [
        (
            visit,
            {"event": rng.choice(EVENTS), "currency": rng.choice(CURRENCIES), "value": rng.randrange(1, 9999) / 100},
        )
        for visit in rng.sample(visits, REPORTS)
    ]
    alice.put("/api/conversions/setup", {"page_value": 1000})
    with app.app_context():
        ids = [clicks.click_id(visit.tracked_id, visit.at.timestamp()) for visit, _ in sold]
        # A third each: by a key with a click id, by a page, and by a visitor who is recognized
        for start in range(0, REPORTS // 3, 1000):
            batch = [{"click": ids[n]} | sold[n][1] for n in range(start, REPORTS // 3)]
            answer = alice.post("/api/conversions/batch", {"conversions": batch}).get_json()
            assert answer["counted"] == len(batch)
        for n in range(REPORTS // 3, REPORTS * 2 // 3):
            report = reports.of_page(
                sold[n][1] | {"value": f"{sold[n][1]['value']:.2f}".replace(".", ",")}, clicks.read(ids[n])
            )
            assert conversions.add(alice.id, [report], by_page=True)[0]["result"] == "counted"
        for n in range(REPORTS * 2 // 3, REPORTS):
            visit, report = sold[n]
            row = report | {"link": visit.tracked_id, "visitors": [visit.visitor.hex()], "order_id": "", "problem": ""}
            assert conversions.add(alice.id, [row | {"source": "key"}])[0]["result"] == "counted"
    assert pages.RATE  # of addresses, which the functions below the routes do not know

    for first, second in [("event", "currency"), *combinations(DIMENSIONS, 2)]:
        expected: Counter[tuple[Any, ...]] = Counter()
        values: defaultdict[tuple[Any, ...], float] = defaultdict(float)
        for visit, report in sold:
            key = of(visit, report, first), of(visit, report, second)
            expected[key] += 1
            values[key] += report["value"]
        query = f"metrics=conversions,value&by={first},{second}&period=30d&limit=1000"
        answer = alice.get(f"/api/stats?{query}").get_json()
        data = answer["data"]
        assert {(row[first], row[second]): row["conversions"] for row in data["rows"]} == expected, (first, second)
        assert data["totals"]["value"] is None, "of several currencies"
        assert answer["meta"]["value_null_because"]
        if "currency" in (first, second):
            found = {(row[first], row[second]): row["value"] for row in data["rows"]}
            assert found == pytest.approx(values), (first, second)

    countries = Counter(visit.country for visit, _ in sold)
    for limit in (1, 3):
        data = alice.get(f"/api/stats?metrics=conversions&by=country&period=30d&limit={limit}").get_json()["data"]
        most = sorted(countries.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        assert [(row["country"], row["conversions"]) for row in data["rows"]] == most
    data = alice.get("/api/stats?metrics=clicks,conversions,rate&by=country&period=30d&bots=only").get_json()["data"]
    assert {row["conversions"] for row in [*data["rows"], data["totals"]]} == {0}

    of_visits = Counter(visit.utm_source for visit in visits)
    sales = Counter(visit.utm_source for visit, report in sold if report["event"] == "sale")
    rows = alice.get("/api/stats?metrics=clicks,conversions,rate&by=utm_source&event=sale&period=30d").get_json()[
        "data"
    ]["rows"]
    assert {row["utm_source"]: (row["clicks"], row["conversions"]) for row in rows} == {
        name: (number, sales[name]) for name, number in of_visits.items()
    }
    assert {row["utm_source"]: row["rate"] for row in rows} == pytest.approx(
        {name: sales[name] / number for name, number in of_visits.items()}, abs=1e-6
    )
    euros = sum(report["value"] for visit, report in sold if report["currency"] == "EUR" and visit.country == "Peru")
    totals = alice.get("/api/stats?metrics=value&currency=EUR&country=Peru&period=30d").get_json()["data"]["totals"]
    assert totals["value"] == pytest.approx(euros)
    sql("DELETE FROM visits")
    kept = alice.get("/api/stats?metrics=conversions&by=country,device&period=30d").get_json()["data"]["totals"]
    assert kept == {"conversions": REPORTS}
