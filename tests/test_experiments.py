"""Experiments: a test at which one may look at any time, and variants that are themselves and not their names."""

import random
from bisect import bisect
from collections import Counter
from itertools import accumulate
from math import comb
from typing import Any

import pytest
from flask import Flask

from linkmgr.features.conversions import repository, results
from linkmgr.features.conversions.experiments import HORIZON, Arm, boundary, find_winner, judge
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support.archives import archive, export
from tests.support.factories import Sql
from tests.support.imported import Import
from tests.support.shortlinks import Short
from tests.support.targets import FIREFOX, wait_until

LOOK = 20  # visitors between two looks


def binomial(number: int, rate: float) -> list[float]:
    """Return the probabilities of at most 0, 1, 2 ... conversions of a number of visitors."""
    return [*accumulate(comb(number, k) * rate**k * (1 - rate) ** (number - k) for k in range(number))]


def winners(*rates: float, visitors: int, shares: tuple[int, ...] = (), runs: int = 1000) -> Counter[str | None]:
    """Return how often each variant wins while visitors come, with a look every LOOK of them."""
    rng = random.Random(2026)  # noqa: S311
    shares = shares or (LOOK // len(rates),) * len(rates)
    chances = [binomial(share, rate) for share, rate in zip(shares, rates, strict=True)]
    found: Counter[str | None] = Counter()
    for _ in range(runs):
        arms = [Arm(name, 0, 0) for name in "ABC"[: len(rates)]]
        for _ in range(visitors // sum(shares)):
            arms = [
                Arm(arm.name, arm.visitors + share, arm.converted + bisect(chance, rng.random()))
                for arm, share, chance in zip(arms, shares, chances, strict=True)
            ]
            if winner := find_winner(arms):
                found[winner] += 1
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rates", "shares", "runs"), [((0.1, 0.1), (), 1000), ((0.02, 0.02), (18, 2), 300), ((0.1, 0.1, 0.1), (), 300)]
)
def test_looking_every_20_visitors_makes_at_most_5_percent_winners(
    rates: tuple[float, ...], shares: tuple[int, ...], runs: int
) -> None:
    assert winners(*rates, visitors=20_000, shares=shares, runs=runs).total() <= 0.05 * runs


@pytest.mark.slow
def test_10_against_12_percent_are_told_apart_by_4000_visitors_each() -> None:
    found = winners(0.1, 0.12, visitors=2 * HORIZON)
    assert found["B"] >= 750, found
    assert found["A"] <= 10, found


def test_the_boundary_is_lowest_at_the_horizon_and_higher_for_more_variants() -> None:
    assert boundary(1) == pytest.approx(2.16, abs=0.01)
    assert 3.5 < boundary(0.3) < 4.5
    assert 3.3 < boundary(1.001) < boundary(10) < 4
    assert boundary(1, pairs=3) > boundary(1)


@pytest.mark.parametrize(
    ("arms", "state", "winner"),
    [([(0, 0), (0, 0)], "too_few", None), ([(100, 10), (100, 12)], "too_few", None),
     ([(4000, 400), (4000, 480)], "winner", "B"), ([(5000, 500), (5000, 510)], "no_difference", None),
     ([(300, 30), (300, 90)], "winner", "B"), ([(5, 0), (5, 5)], "too_few", None),
     ([(4000, 400), (4000, 400), (4000, 520)], "winner", "C"), ([(8000, 0), (8000, 0)], "no_difference", None)],
)  # fmt: skip
def test_a_verdict_says_one_of_three(arms: list[tuple[int, int]], state: str, winner: str | None) -> None:
    verdict = judge([Arm(name, *numbers) for name, numbers in zip("ABC", arms, strict=False)])
    assert (verdict.state, verdict.winner) == (state, winner)
    assert (verdict.missing > 0) == (state == "too_few")
    if winner:
        assert verdict.low is not None
        assert verdict.high is not None
        assert verdict.difference is not None
        assert 0 < verdict.low < verdict.difference < verdict.high


def test_the_visitors_that_are_missing_come_in_the_shares_of_the_variants() -> None:
    assert judge([Arm("A", 500, 50), Arm("B", 500, 50)]).missing == 7000
    few = judge([Arm("A", 900, 90), Arm("B", 100, 10)]).missing
    assert judge([Arm("A", 900 + few * 9 // 10, 90), Arm("B", 100 + few // 10 + 1, 10)]).state == "no_difference"


def variants(a: str, b: str, *weights: int) -> list[dict[str, Any]]:
    urls = zip("AB", (a, b), weights or (1, 1), strict=True)
    return [{"name": name, "url": f"https://example.com/{url}", "weight": weight} for name, url, weight in urls]


class Experiment(Short):
    """A link of the API, whose variants begin experiments."""

    def __init__(self, app: Flask, sql: Sql, client: Client) -> None:
        self.app, self.sql, self.client = app, sql, client
        body = {"url": "https://example.com/", "variants": variants("a", "b"), "clickid": True}
        self.id = client.add("/api/url/add", body)
        self.path = "/" + client.get(f"/api/url/{self.id}").get_json()["details"]["alias"]

    def change(self, sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.client.put(f"/api/url/{self.id}/update", {"variants": sent})
        return self.experiments

    @property
    def experiments(self) -> list[dict[str, Any]]:
        data: dict[str, Any] = self.client.get(f"/api/url/{self.id}/conversions").get_json()["data"]
        return list(data["experiments"])

    def convert(self, number: int) -> None:
        """Let visitors come, of whom each buys twice."""
        for visitor in range(number):
            target = self.ask(address=f"192.0.2.{visitor}", agent=FIREFOX).headers["Location"]
            for order in "12":
                sent = {
                    "click": target.partition("lm_click=")[2],
                    "order": f"{target[-9:]}{order}",
                    "value": 2,
                    "currency": "EUR",
                }
                assert self.client.post("/api/conversions", sent).get_json()["result"] == "counted"


def figures(experiment: dict[str, Any], name: str) -> int:
    return sum(int(variant[name]) for variant in experiment["variants"])


@pytest.fixture
def experiment(located: Flask, sql: Sql, alice: Client) -> Experiment:
    return Experiment(located, sql, alice)


def test_another_target_or_share_begins_an_experiment_and_the_old_one_stays(experiment: Experiment) -> None:
    experiment.convert(5)
    experiment.wait_for_clicks(5)
    [first] = experiment.experiments
    names = ("visits", "visitors", "conversions", "converted")
    assert [figures(first, name) for name in names] == [5, 5, 10, 5]
    assert sum(variant["values"][0]["value"] for variant in first["variants"] if variant["values"]) == 20
    assert len(experiment.change(variants("a", "b", 7, 7))) == 1  # the same shares
    assert len(experiment.change(variants("a", "b", 1, 2))) == 2
    second, old = experiment.change(variants("a", "b", 1, 2))
    assert (old["ended"] is not None, second["ended"], figures(second, "visitors")) == (True, None, 0)
    experiment.convert(5)
    experiment.wait_for_clicks(10)
    third, second, old = experiment.change(variants("a", "other", 1, 2))
    assert [figures(row, "visitors") for row in (third, second, old)] == [0, 5, 5]
    assert [figures(row, "conversions") for row in (third, second, old)] == [0, 10, 10]
    assert len(experiment.change([])) == 3  # it has ended, and keeps its table
    assert len(experiment.change(variants("a", "other", 1, 2))) == 3  # Undo
    assert experiment.experiments[0]["ended"] is None


def test_an_import_of_the_account_restores_experiments(
    experiment: Experiment, alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    experiment.convert(5)
    experiment.wait_for_clicks(5)
    experiment.change(variants("a", "b", 1, 2))
    experiment.convert(7)  # five of them were here before
    experiment.wait_for_clicks(12)
    stopped = alice.add("/api/url/add", {"url": "https://example.com/", "variants": variants("a", "b")})
    alice.put(f"/api/url/{stopped}/update", {"variants": []})
    assert run_import(bob, export(alice))["state"] == "done"
    copied = [link["id"] for link in bob.get("/api/urls?sort=asc").get_json()["data"]["urls"]]
    for old, new in zip((experiment.id, stopped), copied, strict=True):
        first, second = (client.get(f"/api/url/{row}/conversions").get_json()["data"]["experiments"]
                         for client, row in ((alice, old), (bob, new)))  # fmt: skip
        assert first == second
    [running, _] = bob.get(f"/api/url/{copied[0]}/conversions").get_json()["data"]["experiments"]
    assert [figures(running, name) for name in ("visitors", "conversions")] == [7, 14]
    bob.put(f"/api/url/{copied[0]}/update", {"variants": variants("a", "other")})
    assert len(bob.get(f"/api/url/{copied[0]}/conversions").get_json()["data"]["experiments"]) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 0},
        {"number": "1"},
        {"started": "yesterday"},
        {"started": "2026-13-01T00:00:00+00:00"},
        {"ended": "2026-11-01T00:00:00+00:00"},
        {"variants": []},
        {"variants": variants("a", "other")},
        {"variants": [{"name": "A"}]},
        {"variants": None},
    ],
)
def test_invented_experiments_of_an_account_begin_anew(
    alice: Client, run_import: Import, changed: dict[str, Any]
) -> None:
    made = variants("a", "b")
    ran = {"number": 3, "started": "2026-11-01T00:00:00+00:00", "ended": None, "variants": made}
    link = {"id": 1, "url": "https://example.com/", "alias": "", "custom": "", "variants": made}
    histories: list[Any] = [[ran | changed], [ran, ran], [[]], ran, "x", [ran | {"variants": made * 2000}]]
    for history in histories:
        assert run_import(alice, archive(links=[link | {"experiments": history}]))["made"] == 1
        [newest, *_] = alice.get("/api/urls").get_json()["data"]["urls"]
        data = alice.get(f"/api/url/{newest['id']}/conversions").get_json()["data"]
        assert [row["number"] for row in data["experiments"]] == [1]


def test_a_visit_that_is_stored_late_counts_for_the_experiment_of_its_time(experiment: Experiment) -> None:
    experiment.ask(agent=FIREFOX)
    experiment.change(variants("new", "newer"))
    experiment.wait_for_clicks(1)
    assert [figures(row, "visitors") for row in experiment.experiments] == [0, 1]


def test_a_visitor_counts_once_after_the_digest_is_deleted(
    app: Flask, experiment: Experiment, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.convert(2)
    experiment.ask(address="192.0.2.0", agent=FIREFOX)
    experiment.wait_for_clicks(3)
    sql(
        """
        WITH again AS (SELECT * FROM conversions ORDER BY id LIMIT 1)
        INSERT INTO conversions (user_id, tracked_id, click, event, source, labels, visitor)
        SELECT user_id, tracked_id, click + interval '1 ms', 'lead', 'key', labels, visitor FROM again
        RETURNING 1
        """
    )
    before = experiment.experiments
    monkeypatch.setattr(repository, "VISITOR_DAYS", 0)
    monkeypatch.setattr(purge, "MAX_ROWS", 1)
    with app.app_context():
        assert repository.forget_visitors(1) in (2, 3), "all of one visitor"
        assert experiment.experiments == before
        assert repository.forget_visitors(1) in (2, 3)
        assert repository.forget_visitors(1) == 0
        sql("UPDATE conversions SET visitor = substring(sha256(visitor) FOR 7) RETURNING 1")
        purge.purge()
    assert experiment.experiments == before
    assert figures(before[0], "converted") == 2
    assert sql("SELECT FROM conversions WHERE octet_length(visitor) <> 8") == []


def test_the_first_verdict_with_a_winner_stays(
    app: Flask, experiment: Experiment, sql: Sql, executed: list[str]
) -> None:
    experiment.convert(1)
    experiment.wait_for_clicks(1)
    [first] = experiment.experiments
    name = next(row["name"] for row in first["variants"] if row["visitors"])
    other = "AB".replace(name, "")
    counts = f'{{"1": {{"{name}": 400, "{other}": 400}}}}'
    sql("UPDATE totals SET experiments = %(counts)s RETURNING 1", counts=counts)
    assert experiment.experiments[0]["verdict"]["state"] == "too_few"
    with app.app_context():
        results.look()
    sql(
        """
        INSERT INTO conversions (user_id, tracked_id, click, event, source, labels)
        SELECT user_id, tracked_id + n / 101, click + n * interval '1 ms', 'sale', 'key', labels  -- most of other links
          FROM (SELECT * FROM conversions LIMIT 1) one, generate_series(1, 1500) n
        RETURNING 1
        """
    )
    with app.app_context():
        results.look()  # nobody has opened the page
        results.look()
    wait_until(lambda: "1 decided" in sql("SELECT experiments FROM totals")[0]["experiments"])
    experiment.convert(1)
    executed.clear()
    with app.app_context():
        results.look()
    assert [text for text in executed if "link_conversions" in text] == []  # which takes long for many
    of_event = experiment.client.get(f"/api/url/{experiment.id}/conversions?event=nothing").get_json()["data"]
    assert of_event["experiments"][0]["verdict"]["winner"] is None
    sql("DELETE FROM conversions")
    verdict = experiment.experiments[0]["verdict"]
    assert (verdict["state"], verdict["winner"], verdict["decided"] is not None) == ("winner", name, True)
