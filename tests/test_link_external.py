"""The ids that links have in programs of users, what these keep with them, and how they find what has changed."""

from typing import Any

import psycopg2
import pytest
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support.keyring import Make
from tests.support.races import at_once, during

PAGE = "https://example.com/page"
PATH = "/api/url/external/order-17"
TAKEN = (400, "externalid_taken")


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.get_json()["code"]


def found(client: Client, query: str) -> list[int]:
    return [link["id"] for link in client.get(f"/api/urls?{query}").get_json()["data"]["urls"]]


def details(client: Client, link_id: int) -> dict[str, Any]:
    return dict(client.get(f"/api/url/{link_id}").get_json()["details"])


def test_an_external_id_belongs_to_one_link_of_an_account(alice: Client, bob: Client) -> None:
    sent = {"url": PAGE, "externalid": "order-17"}
    link_id = alice.add("/api/url/add", sent)
    assert found(alice, "externalid=order-17") == [link_id]
    assert found(alice, "externalid=order-1") == found(bob, "externalid=order-17") == []
    assert bob.add("/api/url/add", sent)
    assert refusal(answer := alice.post("/api/url/add", sent)) == TAKEN
    assert answer.get_json()["errors"][0]["field"] == "externalid"
    other = alice.add("/api/url/add", {"url": PAGE, "externalid": "b"})
    assert refusal(alice.put(f"/api/url/{other}/update", {"externalid": "order-17"})) == TAKEN
    urls = [sent, {"url": PAGE, "externalid": "c"}, {"url": PAGE, "externalid": "c"}, {"url": PAGE, "custom": "d"}]
    bulk = alice.post("/api/urls/bulk", {"urls": urls}).get_json()["results"]
    assert [result.get("code") for result in bulk] == ["externalid_taken", None, "externalid_taken", None]
    many = alice.put("/api/urls/bulk", {"ids": [other, link_id], "data": {"externalid": "e"}})
    assert (many.status_code, many.get_json()["code"]) == (400, "invalid")
    bulk = alice.put("/api/urls/bulk", {"ids": [other], "data": {"externalid": "c"}}).get_json()
    assert bulk["results"][0]["code"] == "externalid_taken"
    alice.put(f"/api/url/{link_id}/update", {"externalid": ""})
    assert details(alice, alice.add("/api/url/add", sent))["externalid"] == "order-17"


@pytest.mark.parametrize("externalid", ["", ".", "a b", "a/b", "x" * 256, "é", "a\n", "a\0", 17])
def test_an_external_id_can_be_a_segment_of_a_path(alice: Client, externalid: Any) -> None:
    answer = alice.post("/api/url/add", {"url": PAGE, "externalid": externalid})
    assert answer.status_code == (200 if externalid == "" else 400)
    for path in ("%2e", "a%20b", "x" * 256, "%C3%A9", "a%00", "a%0A"):
        for headers in ({}, {"If-Match": '"1-x"'}):
            answer = alice.put(f"/api/url/external/{path}", {"url": PAGE}, headers=headers)
            assert answer.status_code in (400, 404)


def test_a_put_creates_the_link_and_later_changes_it(alice: Client, bob: Client) -> None:
    assert (answer := alice.put(PATH, {})).status_code == 400
    assert answer.get_json()["errors"][0]["field"] == "url"
    first = alice.put(PATH, {"url": PAGE, "title": "Sale", "custom": ""}).get_json()
    assert (first["is_new"], first["details"]["externalid"], first["details"]["title"]) == (True, "order-17", "Sale")
    second = alice.put(PATH, {"url": f"{PAGE}/2"}).get_json()
    assert (second["id"], second["is_new"], second["details"]["title"]) == (first["id"], False, "Sale")
    assert alice.put(PATH, second["details"]).get_json()["details"].items() >= {"longurl": f"{PAGE}/2"}.items()
    assert bob.put(PATH, {"url": PAGE}).get_json()["id"] != first["id"]
    assert alice.put(PATH, {"url": PAGE, "externalid": "order-18"}).status_code == 400
    etag = alice.get(f"/api/url/{first['id']}").headers["ETag"]
    assert alice.put(PATH, {"url": PAGE, "title": "A"}, headers={"If-Match": etag}).status_code == 200
    assert alice.put(PATH, {"url": PAGE, "title": "B"}, headers={"If-Match": etag}).status_code == 412
    for tag in ("*", etag):
        answer = alice.put("/api/url/external/none", {"url": PAGE}, headers={"If-Match": tag})
        assert answer.status_code == 412
    assert found(alice, "") == [first["id"]]


def test_a_put_of_a_link_that_exists_is_an_update(alice: Client) -> None:
    host = "go.example.org"
    alice.add("/api/domain/add", {"domain": f"https://{host}", "widealiases": True})
    body = {"url": PAGE, "custom": "docs/v1", "domain": host, "expiry": "2030-01-01 00:00:00"}
    link_id = alice.put(PATH, body).get_json()["id"]
    for alias in ("docs/v2", "login", "login", "\u00fc.v3"):
        answer = alice.put(PATH, {"url": PAGE, "custom": alias})
        assert (answer.status_code, answer.get_json()["id"]) == (200, link_id)
        assert (answer.get_json()["details"]["custom"], "warnings" in answer.get_json()) == (alias, False)
    for empty in (None, ""):
        sent = {"url": PAGE, "expiry": None, "custom": None, "externalid": empty}
        changed = alice.put(PATH, sent).get_json()["details"]
        assert (changed["expiry"], changed["custom"], changed["externalid"]) == (None, "\u00fc.v3", "order-17")
    assert refusal(alice.put(PATH, {"url": PAGE, "custom": "a//b"})) == (400, "invalid")
    assert refusal(alice.put(PATH, {"url": PAGE, "domain": ""})) == (400, "alias_wide")
    alice.put("/api/url/external/plain", {"url": PAGE, "custom": "plain"})
    for path in ("plain", "new"):
        answer = alice.put(f"/api/url/external/{path}", {"url": PAGE, "custom": "docs/v4"})
        assert answer.get_json()["message"] == "custom must be 1 to 100 letters, digits, '_' or '-'."


def test_of_many_puts_at_once_one_creates_the_link(alice: Client) -> None:
    def put(number: int) -> Any:
        key = {"Idempotency-Key": f"{number}"} if number % 2 else {}
        client = Client(alice.http.application.test_client(), alice.key)
        return client.put(PATH, {"url": f"{PAGE}/{number}"}, headers=key).get_json()

    answers = at_once(12, put, threads=6)
    assert sorted(answer["is_new"] for answer in answers) == [False] * 11 + [True]
    assert len({answer["id"] for answer in answers}) == 1
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


def test_a_restricted_key_learns_only_that_an_external_id_is_in_use(
    alice: Client, make_restricted: Any, make_key: Make
) -> None:
    client = make_restricted(alice, own_only=True)
    alice.add("/api/url/add", {"url": PAGE, "externalid": "order-17"})
    assert found(client, "externalid=order-17") == []
    assert refusal(client.put(PATH, {"url": PAGE})) == TAKEN
    assert client.put("/api/url/external/own", {"url": PAGE}).get_json()["is_new"]
    assert len(found(client, "externalid=own")) == 1
    assert make_key(alice, "links:create").put(PATH, {"url": PAGE}).status_code == 403


def test_a_link_leaves_its_external_id_in_the_bin_if_another_has_it(alice: Client, console: FlaskClient) -> None:
    for n in range(4):
        link_id = alice.put(PATH, {"url": f"{PAGE}/{n}"}).get_json()["id"]
        if n < 3:
            alice.delete(f"/api/url/{link_id}/delete?bin=1")
    restored = alice.post(f"/api/url/{link_id - 1}/restore").get_json()
    assert restored["details"]["externalid"] == ""
    assert restored["warnings"] == ["The member 'externalid' was not restored: another link has 'order-17' now."]
    form = {"action": "restore", "id": link_id - 2}
    page = console.post("/console/links/bin", data=form, follow_redirects=True).text
    assert "1 link restored." in page
    assert "External id was not restored: another link has &#39;order-17&#39; now." in page
    alice.delete(f"/api/url/{link_id}/delete")
    restored = alice.post(f"/api/url/{link_id - 3}/restore").get_json()
    assert (restored["details"]["externalid"], "warnings" in restored) == ("order-17", False)


def test_a_restore_that_waits_for_a_new_link_of_its_external_id_leaves_it_to_that(
    alice: Client, raw: psycopg2.extensions.connection
) -> None:
    binned = alice.put(PATH, {"url": PAGE}).get_json()["id"]
    alice.delete(f"/api/url/{binned}/delete?bin=1")
    new = f"INSERT INTO links (user_id, alias, url, externalid) VALUES ({alice.id}, 'new', '{PAGE}', 'order-17')"
    restored = during(raw, new, lambda: alice.post(f"/api/url/{binned}/restore")).get_json()
    assert (restored["details"]["externalid"], len(restored["warnings"])) == ("", 1)


def test_metadata_is_any_json_object_of_two_kib(alice: Client) -> None:
    metadata = {"a": {"b": [1, 2.5, None, True, "é\u2028<"]}, "": "", "large": 1e300, "n": 2**63 - 1, "PHP": []}
    link_id = alice.add("/api/url/add", {"url": PAGE, "metadata": metadata})
    assert details(alice, link_id)["metadata"] == metadata
    path = f"/api/url/{link_id}/update"
    for sent, stored in (({"b": "x" * 2040}, {"b": "x" * 2040}), ([], {}), ({"a": 1}, {"a": 1}), (None, {})):
        assert alice.put(path, {"metadata": sent}).get_json()["details"]["metadata"] == stored
    assert found(alice, "q=tags") == []


def test_links_are_found_by_ids_by_their_exact_target_and_by_their_last_change(
    alice: Client, raw: psycopg2.extensions.connection
) -> None:
    ids = [alice.add("/api/url/add", {"url": f"{PAGE}/{n}"}) for n in "abc"]
    first, second, third = ids
    assert found(alice, f"ids={third},{first},99999,{first}") == [third, first]
    assert found(alice, f"ids={first}&ids={second}&limit=1&after={second}") == [first]
    assert alice.get(f"/api/urls?ids={','.join(map(str, range(101)))}").status_code == 400
    assert alice.get("/api/urls?ids=a").status_code == alice.get("/api/urls?target=a").status_code == 400
    assert found(alice, "target=https://EXAMPLE.com/page/b") == [second]
    assert found(alice, "target=https://example.com/page") == []
    with raw.cursor() as cursor:
        cursor.execute("BEGIN; SET LOCAL session_replication_role = replica")  # without triggers
        for link_id, time in (
            (first, "2026-01-01 12:00:00.5"),
            (third, "2026-01-02 12:00"),
            (second, "2026-01-03 12:00"),
        ):
            cursor.execute("UPDATE links SET updated = %s WHERE id = %s", (time, link_id))
        cursor.execute("COMMIT")
    assert found(alice, "order=updated") == [second, third, first]
    assert found(alice, "order=updated&sort=asc&updated_since=2026-01-02 12:00:00") == [third, second]
    assert found(alice, "updated_since=2026-01-01T12:00:00Z") == [third, second, first]
    assert found(alice, "updated_since=2026-01-02T12:00:01Z&target=https://example.com/page/b") == [second]
    with raw.cursor() as cursor:
        at_once = "UPDATE links SET updated = '2026-01-03'"  # as by a bulk change
        cursor.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {at_once}; COMMIT")
    pages = [found(alice, f"order=updated&updated_since=2026-01-03&limit=2&page={page}") for page in (1, 2)]
    assert {*pages[0], *pages[1]} == {first, second, third}
    assert alice.get("/api/urls?order=updated&after=5").status_code == 400
