"""PUT /api/urls/bulk and POST /api/urls/bulk/delete."""

from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.bodies import everything
from tests.support.factories import Sql

PAGE = "https://example.com/page"
BULK, DELETE = "/api/urls/bulk", "/api/urls/bulk/delete"
GHOST = 2**62


def change(client: Client, ids: list[Any], atomic: bool = False, **data: Any) -> Any:
    answer = client.put(BULK, {"ids": ids, "data": data, "atomic": atomic})
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def codes(body: Any) -> list[str]:
    return [result.get("code", "") for result in body["results"]]


def test_all_links_get_the_members(alice: Client, sql: Sql) -> None:
    data = everything(alice, sql)
    del data["custom"]
    links = [factories.link(sql, alice.id) for _ in range(3)]
    assert alice.put(f"/api/url/{links[0]}/update", data).status_code == 200
    body = change(alice, links[1:], **data)
    assert (body["updated"], body["failed"]) == (2, 0)
    read = [alice.get(f"/api/url/{link_id}").get_json()["details"] for link_id in links]
    assert [result["shorturl"] for result in body["results"]] == [details["shorturl"] for details in read[1:]]
    for details in read:
        for own in ("id", "alias", "shorturl", "date", "updated"):
            del details[own]
    assert read[0] == read[1] == read[2]
    change(alice, links, pixels=[], campaign=0, domain="", expiry="", password="")
    details = alice.get(f"/api/url/{links[1]}").get_json()["details"]
    assert details == details | {"pixels": [], "campaign": None, "expiry": None, "haspassword": False}
    assert details["metatitle"] == data["metatitle"]


def test_ids_may_be_texts_repeated_or_unknown(alice: Client, bob: Client, sql: Sql) -> None:
    own, foreign = factories.link(sql, alice.id), factories.link(sql, bob.id)
    body = change(alice, [str(own), foreign, own, GHOST, 0, -1, "99999999999999999999"], metatitle="New")
    assert codes(body) == ["", "missing", "", *["missing"] * 4]
    assert body["results"][1]["message"] == "There is no link with this id."
    assert sql("SELECT id FROM links WHERE title = 'New'") == [{"id": own}]
    body = alice.post(DELETE, {"ids": [str(own), foreign, own, GHOST]}).get_json()
    assert body == {
        "error": 0,
        "deleted": 2,
        "failed": 2,
        "results": [
            {"index": 0, "id": own},
            {"index": 1, "error": 1, "code": "missing", "message": "There is no link with this id."},
            {"index": 2, "id": own},
            {"index": 3, "error": 1, "code": "missing", "message": "There is no link with this id."},
        ],
    }
    assert sql("SELECT id FROM links") == [{"id": foreign}]


def test_atomic_changes_are_made_to_all_links_or_none(alice: Client, sql: Sql) -> None:
    ids = [factories.link(sql, alice.id) for _ in range(3)]
    for method, path, extra in (("PUT", BULK, {"data": {"metatitle": "New"}}), ("POST", DELETE, {})):
        answer = alice.call(method, path, {"ids": [*ids, GHOST], "atomic": True} | extra)
        assert (answer.status_code, answer.get_json()["code"]) == (400, "bulk_refused")
        assert [(result["index"], result["code"]) for result in answer.get_json()["results"]] == [(3, "missing")]
    assert sql("SELECT count(*) AS n FROM links WHERE title = ''") == [{"n": 3}]
    assert change(alice, ids, atomic=True, metatitle="New")["updated"] == 3
    assert alice.post(DELETE, {"ids": ids, "atomic": True}).get_json()["deleted"] == 3


def test_links_that_cannot_move_to_a_domain_fail_alone(alice: Client, sql: Sql) -> None:
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    taken = alice.add("/api/url/add", {"url": PAGE, "custom": "Spring", "domain": host})
    same, free, branded = (
        alice.add("/api/url/add", {"url": PAGE, "custom": alias}) for alias in ("Spring", "Summer", "Autumn")
    )
    sql(
        "UPDATE links SET url = 'https://' || %(host)s::text WHERE id = %(id)s RETURNING 1",
        host=host,
        id=branded,
    )
    assert codes(change(alice, [taken, same, free, branded], domain=host)) == ["", "alias_taken", "", "link_branded"]


def test_two_links_with_the_same_alias_cannot_both_move_to_a_domain(alice: Client, sql: Sql) -> None:
    hosts = []
    for _ in range(2):
        domain = factories.domain(sql, alice.id)
        hosts.append(sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"])
    ids = [
        alice.add("/api/url/add", {"url": PAGE, "custom": "Spring", **({"domain": host} if host else {})})
        for host in (None, hosts[0])
    ]
    for target in ("", hosts[1]):
        answer = alice.put(BULK, {"ids": ids[::-1], "data": {"domain": target}, "atomic": True})
        assert (answer.status_code, answer.get_json()["code"]) == (400, "bulk_refused")
        assert codes(answer.get_json()) == ["alias_taken"]
    assert codes(change(alice, ids, domain=hosts[1])) == ["", "alias_taken"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"type": str(GHOST)}, "splash_unknown"),
        ({"type": f"overlay-{GHOST}"}, "overlay_unknown"),
        ({"campaign": GHOST}, "campaign_unknown"),
        ({"pixels": [GHOST]}, "pixel_unknown"),
        ({"channel": GHOST}, "channel_unknown"),
        ({"domain": "unknown.example.com"}, "domain_unknown"),
        ({"domain": "example.com"}, "domain_unknown"),  # also the host of the target
    ],
)
def test_unknown_references_fail(alice: Client, sql: Sql, data: dict[str, Any], code: str) -> None:
    ids = [factories.link(sql, alice.id) for _ in range(2)]
    assert codes(change(alice, ids, **data)) == [code, code]


def test_an_alias_needs_a_single_id(alice: Client, sql: Sql) -> None:
    ids = [factories.link(sql, alice.id) for _ in range(2)]
    answer = alice.put(BULK, {"ids": ids, "data": {"custom": "Spring"}})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
    assert change(alice, ids[:1], custom="Spring")["results"][0]["shorturl"].endswith("/Spring")
    assert codes(change(alice, ids[1:], custom="Spring")) == ["alias_taken"]


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"ids": [17]}, "data is required."),
        ({"ids": [17], "data": 5}, "data must be an object."),
        (
            {"ids": [17], "data": {"url": "no"}},
            "data is invalid: url must be a URL that begins with http:// or https://.",
        ),
        ({"data": {}}, "ids is required."),
        ({"ids": [], "data": {}}, "ids must be an array of 1 to 1000 ids such as [17, 18]."),
        ({"ids": [17, "x"], "data": {}}, "ids must be an array of 1 to 1000 ids such as [17, 18]."),
        ({"ids": [17] * 1001, "data": {}}, "ids must be an array of 1 to 1000 ids such as [17, 18]."),
    ],
)
def test_an_invalid_request_changes_nothing(alice: Client, members: dict[str, Any], problem: str) -> None:
    answer = alice.put(BULK, members)
    assert (answer.status_code, answer.get_json()["message"]) == (400, problem)


def test_the_version_of_one_link_is_rejected(alice: Client, sql: Sql) -> None:
    link_id = factories.link(sql, alice.id)
    sent = {"ids": [link_id], "data": {"metatitle": "New"}}
    for version, code in (('"1-2"', "invalid"), ("1-2", "etag_invalid")):
        answer = alice.put(BULK, sent, headers={"If-Match": version})
        assert (answer.status_code, answer.get_json()["code"]) == (400, code)
    assert alice.put(BULK, sent, headers={"If-Match": "*"}).status_code == 200


@pytest.fixture
def constraints(raw: psycopg2.extensions.connection) -> Iterator[None]:
    """Refuse links whose title is their alias and QR codes named `two`, as a concurrent change of another row may."""
    checks = {"links": "title <> alias", "kept_qrs": "name <> 'two'"}
    with raw.cursor() as cursor:
        for table, check in checks.items():
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT campaign_unknown CHECK ({check})")
        yield
        for table in checks:
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT campaign_unknown")


@pytest.mark.usefixtures("constraints")
def test_a_row_that_only_a_constraint_refuses_fails_alone(alice: Client) -> None:
    names = ["one", "two", "three", "four", "five"]
    failed = ["", "campaign_unknown", "", "", ""]
    urls = [{"url": PAGE, "custom": name, "metatitle": "two"} for name in names]
    added = alice.post(BULK, {"urls": urls}).get_json()
    assert codes(added) == failed
    ids = [result["id"] for result in added["results"] if "id" in result]
    assert codes(change(alice, ids, metatitle="three")) == ["", "campaign_unknown", "", ""]
    assert alice.put(BULK, {"ids": ids, "data": {"metatitle": "three"}, "atomic": True}).get_json()["code"] == "busy"
    qrs = [{"type": "text", "data": name, "name": name} for name in names]
    assert codes(alice.post("/api/qr/bulk", {"qrs": qrs}).get_json()) == failed
