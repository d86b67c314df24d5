"""Pagination, tested once for every list."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from linkmgr.core.fields.query import PAGING
from tests.conftest import Client
from tests.support import factories
from tests.support.explain import index_conditions
from tests.support.factories import Sql
from tests.support.lists import LISTS, List
from tests.support.operations import CALLS, Call

PAGED = [call for call in CALLS if PAGING.items() <= call.operation.query.items()]
URLS = next(call for call in CALLS if call.path == "/api/urls")
over_lists = pytest.mark.parametrize("call", PAGED, ids=str)

Filled = Callable[[Call, int], "Listed"]


class Listed:
    """A list of alice. `ids` are those of its rows, newest first."""

    def __init__(self, client: Client, path: str, of: List, sql: Sql) -> None:
        self.client, self.path, self.of, self.sql = client, path, of, sql
        self.ids: list[int] = []

    def add(self, number: int = 1) -> None:
        for _ in range(number):
            row_id = self.of.make(self.sql, self.client.id)
            if self.of.table == "channel_items":
                assert self.client.post(f"{self.path}/assign/links/{row_id}").status_code == 200
            self.ids.insert(0, row_id)

    def cursor(self, row_id: int) -> int:
        """Return the cursor behind a row: its id, or on a channel that of its assignment."""
        if self.of.table != "channel_items":
            return row_id
        [item] = self.sql("SELECT id FROM channel_items WHERE link_id = %(id)s", id=row_id)
        return int(item["id"])

    def delete(self, row_id: int) -> None:
        self.sql(f"DELETE FROM {self.of.table} WHERE {self.of.id} = %(id)s RETURNING 1", id=self.cursor(row_id))
        self.ids.remove(row_id)

    def ask(self, query: str = "") -> dict[str, Any]:
        answer = self.client.get(self.path + query)
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.get_json()["data"]
        data["ids"] = [record["id"] for record in data.pop(self.of.key)]
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
            **({"next": str(self.cursor(ids[-1]))} if following else {}),
        }


@pytest.fixture
def filled(alice: Client, bob: Client, sql: Sql) -> Filled:
    """Fill a list of alice. Bob has one row more in his own."""

    def fill(call: Call, length: int) -> Listed:
        lists = [
            Listed(
                client, call.path_of([factories.ALL[what](sql, client.id) for what in call.rows]), LISTS[call.path], sql
            )
            for client in (alice, bob)
        ]
        for listed, rows in zip(lists, (length, 1), strict=True):
            listed.add(rows)
        return lists[0]

    return fill


@over_lists
def test_pages_have_the_newest_rows_first_and_true_totals(filled: Filled, call: Call) -> None:
    listed = filled(call, 0)
    assert listed.ask() == listed.page([], perpage=15, current=1, following=0, last=1)
    listed.add(17)
    assert listed.ask() == listed.page(listed.ids[:15], perpage=15, current=1, following=2, last=2)
    assert listed.ask("?page=2") == listed.page(listed.ids[15:], perpage=15, current=2, following=0, last=2)
    assert listed.ask("?limit=&page=") == listed.ask()
    assert listed.ask("?page=2&limit=5") == listed.page(listed.ids[5:10], perpage=5, current=2, following=3, last=4)
    assert listed.ask("?limit=17") == listed.page(listed.ids, perpage=17, current=1, following=0, last=1)
    assert listed.ask("?limit=9&page=3") == listed.page([], perpage=9, current=3, following=0, last=2)
    furthest = 10**18 - 1
    for limit in (1000, 1001, 10**30):  # at most 1000
        assert listed.ask(f"?limit={limit}&page={furthest}") == listed.page(
            [], perpage=1000, current=furthest, following=0, last=1
        )


@pytest.mark.parametrize("member", ["limit", "page", "after"])
def test_only_integers_from_1_are_accepted(filled: Filled, member: str) -> None:
    listed = filled(URLS, 1)
    values = ["0", "00", "-1", "+1", "abc", "1.5", "1e3", "0x1", "٣", "1_0", "%201", "1%0A", "%00", "007"]
    for value in values:
        answer = listed.client.get(f"{listed.path}?{member}={value}")
        assert answer.status_code == 400, value
        assert answer.get_json()["message"] == f"{member} must be an integer of at least 1."


REFUSED = {
    **{f"{member}=0": f"{member} must be an integer of at least 1." for member in ("limit", "page", "after")},
    f"page={10**18}": f"page must be at most {10**18 - 1}.",
    f"page={'9' * 3000}": f"page must be at most {10**18 - 1}.",
    "limit=1&limit=abc": "limit must not be repeated in the query.",
    "page=1&page=2": "page must not be repeated in the query.",
    "after=1&after=2": "after must not be repeated in the query.",
    f"after={2**63}": f"after must be at most {2**63 - 1}.",
    f"after={'1' + '0' * 19}": f"after must be at most {2**63 - 1}.",
    f"after={'9' * 3000}": f"after must be at most {2**63 - 1}.",
    "after=1&page=2": "after and page exclude each other. Send only one of them.",
}


@over_lists
def test_a_page_beyond_every_list_and_a_repeated_parameter_are_rejected(filled: Filled, call: Call) -> None:
    listed = filled(call, 0)
    for query, message in REFUSED.items() if call is URLS else [*REFUSED.items()][:1]:
        answer = listed.client.get(f"{listed.path}?{query}")
        assert (answer.status_code, answer.get_json()["message"]) == (400, message)


# --- the cursor

over_cursors = pytest.mark.parametrize(
    ("call", "query"), [*((call, "") for call in PAGED), (URLS, "&q=example.com")], ids=str
)


@over_cursors
def test_by_cursor_each_row_is_listed_once_while_others_are_added_and_deleted(
    filled: Filled, call: Call, query: str
) -> None:
    listed = filled(call, 10)
    first = listed.ask(f"?limit=3{query}")
    seen, cursor = first["ids"], first["next"]
    assert cursor == str(listed.cursor(listed.ids[2]))
    listed.add()
    listed.delete(seen[0])
    listed.delete(seen[2])  # the row that the cursor names
    listed.delete(listed.ids[-2])  # not listed yet
    while cursor:
        data = listed.ask(f"?limit=3&after={cursor}{query}")
        seen += data.pop("ids")
        cursor = data.pop("next", None)
        assert data == {"result": len(listed.ids), "perpage": 3, "maxpage": 3}
        listed.add()
        listed.delete(listed.ids[0])
    assert seen[3:] == listed.ids[2:]


@over_cursors
def test_a_cursor_on_the_last_page_or_beyond_either_end_names_no_next(filled: Filled, call: Call, query: str) -> None:
    listed = filled(call, 4)
    second = listed.ask(f"?limit=2&after={listed.cursor(listed.ids[1])}{query}")
    assert second == {"result": 4, "perpage": 2, "maxpage": 2, "ids": listed.ids[2:]}
    assert "next" not in listed.ask(f"?limit=2&page=2{query}")
    assert listed.ask(f"?after=1{query}") == {"result": 4, "perpage": 15, "maxpage": 1, "ids": []}
    for page in ("", "&page=", "&page=1"):
        assert listed.ask(f"?after={2**63 - 1}{page}{query}") == {
            "result": 4, "perpage": 15, "maxpage": 1, "ids": listed.ids
        }  # fmt: skip
    assert listed.ask(f"?after={query}") == listed.page(listed.ids, perpage=15, current=1, following=0, last=1)


def test_the_most_clicked_links_have_pages_only(filled: Filled) -> None:
    listed = filled(URLS, 3)
    assert listed.ask("?order=click&limit=2") | {"next": 0} == listed.page(
        listed.ids[:2], perpage=2, current=1, following=2, last=2
    ) | {"next": 0}
    assert "next" not in listed.ask("?order=click&limit=2")
    answer = listed.client.get("/api/urls?order=click&after=5")
    assert (answer.status_code, answer.get_json()["message"]) == (
        400,
        "after requires order=date. Use page to list links by clicks.",
    )
    assert listed.ask("?order=date&after=1")["ids"] == []


def test_a_short_url_is_found_behind_a_cursor_too(filled: Filled) -> None:
    listed = filled(URLS, 2)
    [link, _] = listed.client.get("/api/urls").get_json()["data"]["urls"]
    for after, ids in ((link["id"] + 1, [link["id"]]), (link["id"], [])):
        data = listed.ask(f"?short={link['shorturl']}&after={after}")
        assert data.items() >= {"result": 1, "perpage": 15, "maxpage": 1, "ids": ids}.items()
        assert "currentpage" not in data


@over_lists
def test_a_cursor_is_a_condition_of_the_index(
    filled: Filled, call: Call, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = filled(call, 3)
    cursor = listed.cursor(listed.ids[1])
    conditions = index_conditions(monkeypatch, dsn, lambda: listed.ask(f"?after={cursor}"))
    conditions = [re.sub(r"'(\d+)'::bigint", r"\1", condition) for condition in conditions]  # as numbers of events are
    assert [condition for condition in conditions if condition.endswith(f" AND ({listed.of.id} < {cursor}))")]
