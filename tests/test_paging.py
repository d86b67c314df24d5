"""Pagination, tested once for every list."""

from collections.abc import Callable
from typing import Any

import pytest

from linkmgr.openapi.model import PAGING
from tests import factories
from tests.conftest import Client
from tests.factories import Sql
from tests.operations import CALLS, Call

# The lists, each with the member that holds its rows and the kind of its rows.
LISTS = {
    "/api/domains": ("domains", factories.domain),
    "/api/splash": ("splash", factories.splash),
    "/api/overlay": ("cta", factories.overlay),
    "/api/overlay/{overlay_id}/answers": ("answers", factories.answer),
    "/api/bio": ("bios", factories.bio),
    "/api/pixels": ("pixels", factories.pixel),
    "/api/qr": ("qrs", factories.qr),
    "/api/campaigns": ("campaigns", factories.campaign),
    "/api/urls": ("urls", factories.link),
    "/api/channels": ("channels", factories.channel),
    "/api/channel/{channel_id}": ("items", factories.link),
}
over_lists = pytest.mark.parametrize("call", [call for call in CALLS if PAGING[0] in call.operation.query], ids=str)

Filled = Callable[[Call, int], "Listed"]


class Listed:
    """A list of alice and its ids, newest first."""

    def __init__(self, client: Client, path: str, key: str, ids: list[int]) -> None:
        self.client, self.path, self.key, self.ids = client, path, key, ids

    def ask(self, query: str = "") -> dict[str, Any]:
        answer = self.client.get(self.path + query)
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.get_json()["data"]
        data["ids"] = [record["id"] for record in data.pop(self.key)]
        return data

    def page(self, ids: list[int], *, perpage: int, current: int, following: int, last: int) -> dict[str, Any]:
        """Return the expected response."""
        return {
            "result": len(self.ids),
            "perpage": perpage,
            "currentpage": current,
            "nextpage": following,
            "maxpage": last,
            "ids": ids,
        }


@pytest.fixture
def filled(alice: Client, bob: Client, sql: Sql) -> Filled:
    """Fill a list of alice. Bob has one row more in his own."""

    def fill(call: Call, length: int) -> Listed:
        key, make = LISTS[call.path]
        paths = {}
        for client in (alice, bob):
            paths[client] = call.path_of([factories.ALL[what](sql, client.id) for what in call.rows])
        ids = [make(sql, alice.id) for _ in range(length)]
        make(sql, bob.id)
        if call.rows == ["channel"]:
            for each in ids:
                assert alice.post(f"{paths[alice]}/assign/links/{each}").status_code == 200
        return Listed(alice, paths[alice], key, ids[::-1])

    return fill


@over_lists
def test_a_list_returns_its_rows_in_the_documented_member(call: Call) -> None:
    assert call.path in LISTS


@over_lists
def test_an_empty_list_has_one_page(filled: Filled, call: Call) -> None:
    listed = filled(call, 0)
    assert listed.ask() == listed.page([], perpage=15, current=1, following=0, last=1)


@over_lists
def test_a_page_has_15_the_newest_first_and_names_the_next(filled: Filled, call: Call) -> None:
    listed = filled(call, 17)
    assert listed.ask() == listed.page(listed.ids[:15], perpage=15, current=1, following=2, last=2)
    assert listed.ask("?page=2") == listed.page(listed.ids[15:], perpage=15, current=2, following=0, last=2)
    assert listed.ask("?limit=&page=") == listed.ask()
    assert listed.ask("?page=2&limit=5") == listed.page(listed.ids[5:10], perpage=5, current=2, following=3, last=4)
    assert listed.ask("?limit=17") == listed.page(listed.ids, perpage=17, current=1, following=0, last=1)


@over_lists
def test_a_page_past_the_end_is_empty_with_true_totals(filled: Filled, call: Call) -> None:
    listed = filled(call, 3)
    assert listed.ask("?limit=2&page=3") == listed.page([], perpage=2, current=3, following=0, last=2)
    furthest = 10**18 - 1
    assert listed.ask(f"?limit=1000&page={furthest}") == listed.page(
        [], perpage=1000, current=furthest, following=0, last=1
    )


@over_lists
def test_a_limit_above_1000_is_reduced_to_1000(filled: Filled, call: Call) -> None:
    listed = filled(call, 1)
    for limit in (1000, 1001, 10**17, 10**30):
        assert listed.ask(f"?limit={limit}")["perpage"] == 1000


@pytest.mark.parametrize("member", ["limit", "page"])
@over_lists
def test_only_integers_from_1_are_accepted(filled: Filled, call: Call, member: str) -> None:
    listed = filled(call, 1)
    for value in (
        "0",
        "00",
        "-1",
        "+1",
        "abc",
        "1.5",
        "1e3",
        "0x1",
        "٣",
        "1_0",
        "%201",
        "1%0A",
        "%00",
        "007",
    ):
        answer = listed.client.get(f"{listed.path}?{member}={value}")
        assert answer.status_code == 400, value
        assert answer.get_json()["message"] == f"{member} must be an integer of at least 1."


@over_lists
def test_a_page_beyond_every_list_and_a_repeated_parameter_are_rejected(filled: Filled, call: Call) -> None:
    listed = filled(call, 1)
    for query, message in {
        f"page={10**18}": f"page must be at most {10**18 - 1}.",
        f"page={'9' * 3000}": f"page must be at most {10**18 - 1}.",
        "limit=1&limit=abc": "limit must not be repeated in the query.",
        "page=1&page=2": "page must not be repeated in the query.",
    }.items():
        answer = listed.client.get(f"{listed.path}?{query}")
        assert (answer.status_code, answer.get_json()["message"]) == (400, message)
