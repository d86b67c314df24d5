"""The visits of a link or a QR code, one by one: /api/url/:id/visits and /api/qr/:id/visits."""

import csv
import io
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from flask import Flask

from linkmgr.visits.dimensions import BY_NAME
from tests.conftest import BASE_URL, Client
from tests.support import factories, geoip
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.schemas import execute
from tests.support.targets import IPHONE, Target
from tests.support.visited import Store, Visited

NOW = datetime.now(UTC).replace(microsecond=0)
ADD: dict[str, Callable[[Sql, int], int]] = {"url": factories.link, "qr": factories.qr}
COLUMNS = ["time", *BY_NAME, "bot"]


@pytest.fixture(params=ADD)
def path(request: pytest.FixtureRequest, sql: Sql, alice: Client) -> tuple[str, int]:
    """The path of a list of visits, and the id in it."""
    tracked_id = ADD[request.param](sql, alice.id)
    return f"/api/{request.param}/{tracked_id}/visits", tracked_id


def pages(client: Client, path: str, limit: int, query: str = "") -> list[list[dict[str, Any]]]:
    found, after = [], ""
    while True:
        answer = client.get(f"{path}?limit={limit}{query}{after}")
        assert answer.status_code == 200
        data = answer.get_json()["data"]
        assert data["perpage"] == limit
        found.append(data["visits"])
        if "next" not in data:
            return found
        after = f"&after={data['next']}"


def test_a_visit_is_listed_with_its_properties(target: Target, alice: Client) -> None:
    target.visit(agent=IPHONE, address=geoip.PERU, Referer="https://t.co/abc")
    [visit] = alice.get(f"/api/qr/{target.id}/visits").get_json()["data"]["visits"]
    assert list(visit) == [*COLUMNS, "country_code"]
    assert datetime.now(UTC) - datetime.fromisoformat(visit["time"] + "Z") < timedelta(minutes=1)
    expected = {
        "country": "Peru",
        "country_code": "PE",
        "referrer": "t.co",
        "browser": "Mobile Safari",
        "os": "iOS",
        "bot": False,
    }
    assert {name: visit[name] for name in expected} == expected


def test_without_visits_the_list_is_empty(alice: Client, path: tuple[str, int]) -> None:
    assert alice.get(path[0]).get_json()["data"] == {"perpage": 15, "visits": []}


@pytest.mark.parametrize("bots", ["only", "exclude"])
@pytest.mark.parametrize("limit", [1, 3, 8, 1000])
def test_each_visit_is_on_exactly_one_page_even_at_the_same_time(
    *, alice: Client, store: Store, path: tuple[str, int], limit: int, bots: str
) -> None:
    times = [NOW] * 3 + [NOW - timedelta(microseconds=1)] + [NOW - timedelta(days=40)] * 4
    visits = [Visited(path[1], at, browser=f"B{number}", bot=bots == "only") for number, at in enumerate(times)]
    store([*visits[::-1], *(visit._replace(bot=not visit.bot) for visit in visits)])
    found = [visit for page in pages(alice, path[0], limit, f"&bots={bots}") for visit in page]
    assert Counter(visit["browser"] for visit in found) == Counter(visit.browser for visit in visits)
    assert [visit["time"] for visit in found] == sorted((visit["time"] for visit in found), reverse=True)


def test_visits_that_are_completely_alike_are_listed_as_often_as_they_are(
    alice: Client, store: Store, path: tuple[str, int]
) -> None:
    store([Visited(path[1], NOW)] * 5)
    assert [len(page) for page in pages(alice, path[0], 2)] == [2, 2, 1]


def test_a_new_visit_does_not_move_the_following_pages(alice: Client, store: Store, path: tuple[str, int]) -> None:
    store([Visited(path[1], NOW - timedelta(minutes=number), browser=f"B{number}") for number in range(4)])
    data = alice.get(f"{path[0]}?limit=2").get_json()["data"]
    store([Visited(path[1], NOW + timedelta(seconds=1), browser="new")])
    following = alice.get(f"{path[0]}?limit=2&after={data['next']}").get_json()["data"]
    assert [visit["browser"] for visit in following["visits"]] == ["B2", "B3"]


def test_bots_are_listed_only_on_request(alice: Client, store: Store, path: tuple[str, int]) -> None:
    store([Visited(path[1], NOW), Visited(path[1], NOW, bot=True)])
    found = {bots: pages(alice, path[0], 10, f"&bots={bots}")[0] for bots in ("exclude", "include", "only")}
    assert {bots: sorted(visit["bot"] for visit in visits) for bots, visits in found.items()} == {
        "exclude": [False], "include": [False, True], "only": [True]
    }  # fmt: skip


@pytest.mark.parametrize(("bots", "is_bot"), [("only", True), ("exclude", False)])
def test_few_visits_of_a_kind_among_many_of_the_other_are_found_without_reading_these(
    *, alice: Client, store: Store, sql: Sql, dsn: str, monkeypatch: pytest.MonkeyPatch, bots: str, is_bot: bool
) -> None:
    link = factories.link(sql, alice.id)
    store(
        [
            Visited(link, NOW - timedelta(minutes=5 * number), bot=(number % 1500 == 0) == is_bot)
            for number in range(3000)
        ]
    )
    execute(dsn, "VACUUM ANALYZE visits")
    call = partial(alice.get, f"/api/url/{link}/visits?bots={bots}")
    assert len(call().get_json()["data"]["visits"]) == 2
    assert max(rows_read(monkeypatch, dsn, call)) < 1000


def test_csv_has_the_same_visits_and_names_the_next_page(alice: Client, store: Store, path: tuple[str, int]) -> None:
    store([Visited(path[1], NOW, browser="=cmd", referrer='a"b'), Visited(path[1], NOW - timedelta(days=1))])
    answer = alice.get(f"{path[0]}?limit=1&bots=include", headers={"Accept": "text/csv"})
    labels = ["Germany", "Berlin", 'a"b', "'=cmd", "Linux", "desktop", "German", *["Unknown"] * 4, "click"]
    columns, cells = csv.reader(io.StringIO(answer.text, newline=""))
    assert columns == COLUMNS
    assert cells[: len(labels) + 1] == [f"{NOW:%Y-%m-%d %H:%M:%S}", *labels]
    assert cells[-1] == "false"
    url, relation = answer.headers["Link"].split("; ")
    assert relation == 'rel="next"'
    following = alice.get(url.strip("<>").removeprefix(BASE_URL), headers={"Accept": "text/csv"})
    assert "Link" not in following.headers
    assert [row[4] for row in csv.reader(io.StringIO(following.text, newline=""))] == ["browser", "Firefox"]


def test_a_link_is_no_qr_code(alice: Client, sql: Sql) -> None:
    link, code = factories.link(sql, alice.id), factories.qr(sql, alice.id)
    assert alice.get(f"/api/qr/{link}/visits").get_json()["message"] == "There is no QR code with this id."
    assert alice.get(f"/api/url/{code}/visits").get_json()["message"] == "There is no link with this id."


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("after=x", "after must be the 'next' of the previous page."),
        ("after=20261341T000000.000000-1", "after must be the 'next'"),
        ("after=20261101T000000.000000-99999999999", "after must be the 'next'"),
        ("limit=0", "limit must be an integer of at least 1."),
        ("page=2", "page is not a parameter of this operation; these are: after, limit, bots."),
        ("bots=no", "bots must be one of exclude, include, only."),
    ],
)
def test_an_invalid_query_is_refused(alice: Client, path: tuple[str, int], query: str, message: str) -> None:
    answer = alice.get(f"{path[0]}?{query}")
    assert answer.status_code == 400
    assert message in answer.get_json()["message"]


def test_a_limit_above_1000_means_1000(app: Flask, alice: Client, path: tuple[str, int]) -> None:
    assert alice.get(f"{path[0]}?limit=5000").get_json()["data"]["perpage"] == 1000
