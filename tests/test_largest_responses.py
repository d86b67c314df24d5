"""No response is longer than a page of a list may be, unless it has a slot of the pool. A page that ends at its bytes
says where the list goes on."""

from collections.abc import Iterator
from typing import Any

import pytest

from linkmgr.core.web.streams import LARGE
from linkmgr.schemas.links import Link
from tests.conftest import Client
from tests.support import factories, largest
from tests.support.factories import Sql
from tests.support.operations import READS, Call
from tests.support.schemas import execute
from tests.support.slots import full
from tests.support.worlds import World

pytestmark = pytest.mark.slow
STATS = "ids={link}&by=utm_source,utm_campaign&metrics=clicks,visitors&limit=10000"
QUERIES = {"GET /api/stats": STATS, "GET /api/stats.csv": STATS}
BEYOND = {"GET /api/stats", "GET /api/stats.csv", "GET /api/reports"}  # that are no lists with pages, and not streamed
CUT = {"/api/urls", "/api/channels", "/api/domains", "/api/events", "/api/url/{link_id}/visits"} | {
    "/api/overlay/{overlay_id}/answers", "/api/webhook/{webhook_id}/deliveries"
}  # fmt: skip
LISTS = [call for call in READS if {"limit", "after"} <= call.operation.query.keys() and not call.operation.file]


@pytest.fixture
def filled(world: World, sql: Sql, dsn: str) -> World:
    parents = {name: world.id(name, "administrator") for name in factories.ALL}
    largest.fill(sql, world.clients["administrator"].id, parents)
    execute(dsn, "ANALYZE")
    return world


def path_of(world: World, call: Call, **query: object) -> str:
    stated = QUERIES.get(str(call), "limit=1000" if "limit" in call.operation.query else "")
    sent = [stated.format(link=world.id("link", "administrator")), *(f"{name}={query[name]}" for name in query)]
    return f"{call.path_of(world.ids(call, 'administrator'))}?{'&'.join(sent)}"


def the_largest_response_of_each_operation_is_bounded_or_has_a_place(filled: World) -> None:
    """All places are taken, so what needs one is refused."""
    admin, refused = filled.clients["administrator"], set()
    for call in READS:
        with full(filled.app):
            answer = admin.get(path_of(filled, call))
        if answer.status_code == 503:
            assert answer.get_json()["code"] in call.operation.errors, call
            refused.add(str(call))
        else:
            assert answer.status_code == 200, (call, answer.text)
            assert len(answer.data) <= LARGE, call
            assert "Content-Length" in answer.headers, f"{call} is streamed without a slot"
    assert refused > BEYOND


def a_large_response_keeps_its_place_until_it_is_sent(filled: World) -> None:
    admin, path = filled.clients["administrator"], "/api/reports"
    with admin.get(path) as answer:
        assert (answer.status_code, len(answer.data) > LARGE) == (200, True)
        assert admin.get(path).get_json()["code"] == "own_export_busy"
    with admin.get(path) as answer:
        assert answer.status_code == 200


def rows_of(data: dict[str, Any]) -> list[Any]:
    [rows] = [value for value in data.values() if isinstance(value, list)]
    return rows


def pages(world: World, call: Call) -> Iterator[dict[str, Any]]:
    """Yield the pages of a list by cursor. The last one of events has no rows."""
    query: dict[str, Any] = {}
    while True:
        data = world.clients["administrator"].get(path_of(world, call, **query)).get_json()["data"]
        yield data
        if "next" not in data or not rows_of(data):
            return
        query = {"after": data["next"]}


def each_row_of_a_list_is_on_one_page_although_these_end_at_their_bytes(filled: World) -> None:
    cut = {}
    for call in LISTS:
        read = [*pages(filled, call)]
        rows = [row for data in read for row in rows_of(data)]
        names = {row.get("id", row.get("utm_source")) for row in rows}
        assert len(rows) == len(names) == read[0].get("result", len(names)), call
        if 0 < len(rows_of(read[0])) < len(rows):
            cut[call.path] = call, len(rows_of(read[0])), read[0]
    assert cut.keys() >= CUT
    for call, first, data in cut.values():
        if "result" in data:
            assert (data["nextpage"], data["maxpage"], data["next"]) == (2, 2, data["next"])
            refused = filled.clients["administrator"].get(path_of(filled, call, page=2))
            assert (refused.status_code, refused.get_json()["code"]) == (400, "page_too_long")
            assert f"Send a limit of at most {first}." in refused.get_json()["message"]


def pages_by_number_have_all_rows_or_are_refused(filled: World) -> None:
    """Without a cursor, no page says where the list goes on."""
    admin = filled.clients["administrator"]
    for query in ("order=click", "sort=asc", "bin=1"):
        assert admin.get(f"/api/urls?limit=1000&{query}").get_json()["code"] == "page_too_long"
        numbered = [admin.get(f"/api/urls?limit=300&page={n}&{query}").get_json()["data"] for n in range(1, 5)]
        assert [page["nextpage"] for page in numbered] == [2, 3, 4, 0]
        assert len({link["id"] for page in numbered for link in page["urls"]}) == numbered[0]["result"]
    assert admin.get("/api/channels?limit=1000&order=name").get_json()["code"] == "page_too_long"


# Only reads, which share the rows: it takes seconds to fill the tables.
CHECKS = (
    the_largest_response_of_each_operation_is_bounded_or_has_a_place,
    a_large_response_keeps_its_place_until_it_is_sent,
    each_row_of_a_list_is_on_one_page_although_these_end_at_their_bytes,
    pages_by_number_have_all_rows_or_are_refused,
)


def test_the_largest_responses_are_bounded_and_complete(filled: World) -> None:
    for check in CHECKS:
        check(filled)


def test_a_bulk_request_in_which_all_fails_has_a_bounded_response(alice: Client) -> None:
    element: dict[str, Any] = {name: {"a": 1} for name in Link.creates()().fields}
    element["rules"] = [{"when": {"x": 1, "y": 1}}] * 20
    answer = alice.post("/api/urls/bulk", {"urls": [element] * 1000})
    results = answer.get_json()["results"]
    assert len(answer.data) < LARGE
    assert {result["code"] for result in results} == {"invalid"}
    assert len(results[0]["errors"]) > 40
    assert sum("errors" in result for result in results) == 200
