"""The variants of a link: shares, stability, and what is stored of them."""

from collections import Counter
from hashlib import blake2b
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database.statements import Row
from linkmgr.visits import choice, counting
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.shortlinks import Make, add
from tests.support.targets import FIREFOX, IPHONE

WEIGHTS = {"A": 50, "B": 30, "C": 20}


def of(**weights: int) -> list[dict[str, Any]]:
    return [{"name": name, "url": f"https://example.com/{name}", "weight": n} for name, n in weights.items()]


def test_of_100_000_visitors_each_variant_gets_its_share_within_one_percent(app: Flask) -> None:
    with app.app_context():
        visitors = (f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(100_000))
        digests = (counting.visitor_of(17, address, FIREFOX, 0) for address in visitors)
        counts = Counter(choice.chosen_variant(of(**WEIGHTS), digest)["name"] for digest in digests)
    assert all(abs(counts[name] / 1000 - weight) < 1 for name, weight in WEIGHTS.items()), counts


@pytest.mark.parametrize(
    ("before", "after", "moves", "into"),
    [
        (of(A=50, B=30, C=20), of(C=20, A=50, B=30), 0, ""),
        (of(A=1, B=1), of(A=50, B=50), 0, ""),
        (of(A=50, B=50), of(A=60, B=40), 10, "A"),
        (of(A=50, B=50), of(B=40, A=60), 10, "A"),
        (of(A=1, B=1), of(A=1, C=1, B=1), 33.3, "C"),
        (of(A=1, B=1, C=1), of(C=1, B=1), 33.3, "BC"),
        (of(A=50, B=30, C=20), of(A=50, B=30, C=40), 13.3, "C"),
        (of(A=50, B=30, C=20), of(A=50, B=30, C=20)[::-1] + of(D=1), 1, "D"),
    ],
)
def test_another_order_moves_nobody_and_other_weights_move_as_few_as_they_can(
    before: list[Row], after: list[Row], moves: float, into: str
) -> None:
    digests = [blake2b(b"%d" % n, digest_size=16).hexdigest() for n in range(20_000)]
    pairs = [[choice.chosen_variant(rows, digest)["name"] for rows in (before, after)]
             for digest in digests]  # fmt: skip
    moved = [new for old, new in pairs if old != new]
    assert set(moved) == set(into)
    assert len(moved) / 200 == pytest.approx(moves, abs=1)


def test_a_visitor_keeps_a_variant_which_is_a_dimension_and_comes_after_other_targets(short: Make, sql: Sql) -> None:
    link = short(variants=of(A=1, B=1), devicetarget={"iphone": "https://example.com/phone"})
    addresses = [f"192.0.2.{n}" for n in range(20)]
    first = [link.redirect_target(address=address) for address in addresses]
    assert first == [link.redirect_target(address=address, Sec_GPC="1") for address in addresses]
    assert set(first) == {"https://example.com/A", "https://example.com/B"}
    assert link.redirect_target(agent=IPHONE) == "https://example.com/phone"
    link.wait_for_clicks(41)
    stored = sql(
        "SELECT visit_label(v, 'variant') AS variant, count(*) FROM visits v WHERE tracked_id = %(id)s GROUP BY 1",
        id=link.id,
    )
    expected = {name: 2 * sum(target.endswith(name) for target in first) for name in "AB"} | {"Unknown": 1}
    assert {row["variant"]: row["count"] for row in stored} == expected


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (of(A=1), "variants must have 2 to 8 variants, or none."),
        (of(**dict.fromkeys("ABCDEFGHI", 1)), "variants must have at most 8 variants."),
        (
            [*of(A=1), of(B=1)[0] | {"name": " a "}],
            "variants must have different names, in either case, and none that is Unknown or Other.",
        ),
        (
            [*of(A=1), of(B=1)[0] | {"name": " -b "}],
            "variants number 2: name must not begin with -, which excludes a label in filters of statistics.",
        ),
        (of(A=1, other=1), "variants must have different names, in either case, and none that is Unknown or Other."),
        (of(A=1, B=101), "variants number 2: weight must be an integer from 1 to 100."),
        ([*of(A=1), "B"], "variants number 2 must be an object with name, url and weight."),
        ({}, "variants must be an array of objects with name, url and weight."),
    ],
)
def test_variants_that_are_no_experiment_are_refused(alice: Client, sent: Any, message: str) -> None:
    answer = alice.post("/api/url/add", {"url": "https://example.com", "variants": sent})
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)


def test_an_update_of_the_variants_replaces_them_and_an_empty_array_ends_them(alice: Client) -> None:
    link = add(alice, variants=[{"name": "A", "url": "https://EXAMPLE.com/a"}, *of(B=3)])
    path, own = f"/api/url/{link['id']}", {"name": "A", "url": "https://example.com/a", "weight": 1}
    assert alice.get(path).get_json()["details"]["variants"] == [own, *of(B=3)]
    assert alice.put(f"{path}/update", {"variants": of(B=1, C=2)}).get_json()["details"]["variants"] == of(B=1, C=2)
    assert alice.put(f"{path}/update", {"variants": []}).get_json()["details"]["variants"] == []
    answer = alice.put(f"{path}/update", {"variants": [*of(B=1), own | {"url": "http://localhost/x"}]})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
