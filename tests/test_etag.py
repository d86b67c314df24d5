"""ETags of single reads and updates, and If-None-Match."""

import pytest
from werkzeug.test import TestResponse

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.operations import KEYED, Call
from tests.support.stage import Stage
from tests.support.targets import FIREFOX, Target

READS = [call for call in KEYED if call.method == "GET" and call.operation.has_etag]
UPDATES = [call for call in KEYED if call.method == "PUT" and call.operation.has_etag and call.path.endswith("/update")]
PAGE = "https://example.com/page"


def version(answer: TestResponse) -> str:
    """Return the part of the ETag that changes with the row."""
    return answer.headers["ETag"].strip('"').partition("-")[0]


def test_every_single_read_and_every_update_of_a_record_has_an_etag() -> None:
    single = [
        call for call in KEYED if call.method == "GET" and call.path.endswith("_id}") and "login" not in call.path
    ]
    assert {call.path for call in READS} == {call.path for call in single} | {"/api/account"}
    updates = [call for call in KEYED if call.path.endswith("/update") and call.path != "/api/key/default/update"]
    assert updates == UPDATES


def test_a_read_with_the_current_etag_is_not_modified(stage: Stage) -> None:
    for call in READS:
        client, path = stage.caller(call), stage.path(call)
        first = client.get(path)
        etag = first.headers["ETag"]
        for condition in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            for method in ("GET", "HEAD"):
                again = client.call(method, path, headers={"If-None-Match": condition})
                assert (again.status_code, again.headers["ETag"], again.data) == (304, etag, b""), call
                assert again.headers["Cache-Control"] == "no-store", call
                assert "X-Request-Id" in again.headers, call
        for condition in ('"other"', f'"{version(first)}"', etag.upper().replace('"', ""), "", ","):
            again = client.get(path, headers={"If-None-Match": condition})
            assert (again.status_code, again.headers["ETag"], again.data) == (200, etag, first.data), call
        assert client.call("HEAD", path).headers["ETag"] == etag, call


@pytest.mark.parametrize("call", UPDATES, ids=str)
def test_an_update_has_the_etag_of_the_next_read(stage: Stage, call: Call) -> None:
    client, path = stage.caller(call), stage.path(call)
    reading = path.removesuffix("/update")
    before = client.get(reading)
    for body in stage.bodies(call):
        answer = client.put(path, body)
        after = client.get(reading)
        assert version(answer) == version(after)
        is_same = version(after) == version(before)  # nothing was changed
        assert not is_same or after.get_json()["data"] == before.get_json()["data"]
        if "channel" not in path:  # the read of a channel also has its items
            assert answer.headers["ETag"] == after.headers["ETag"]
        conditional = client.get(reading, headers={"If-None-Match": before.headers["ETag"]})
        assert conditional.status_code == (304 if is_same else 200)
        before = after


@pytest.mark.parametrize("kind", ["url", "qr"])
def test_a_visit_changes_the_etag_but_not_the_version(alice: Client, target: Target, sql: Sql, kind: str) -> None:
    link = alice.post("/api/url/add", {"url": PAGE, "custom": "sale"}).get_json()
    path = f"/api/url/{link['id']}" if kind == "url" else f"/api/qr/{target.id}"
    before = alice.get(path)
    if kind == "url":
        alice.http.get("/sale", headers={"User-Agent": FIREFOX})
    else:
        target.visit()
    after = alice.get(path, headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, after.get_json()["data"]["clicks"]) == (200, 1)
    assert version(after) == version(before)


def test_rows_that_a_record_shows_change_its_etag(alice: Client, sql: Sql) -> None:
    link_id, channel_id = factories.link(sql, alice.id), factories.channel(sql, alice.id)
    paths = f"/api/url/{link_id}", f"/api/channel/{channel_id}"
    before = [alice.get(path) for path in paths]
    assert alice.post(f"/api/channel/{channel_id}/assign/links/{link_id}").status_code == 200
    for path, read in zip(paths, before, strict=True):
        after = alice.get(path, headers={"If-None-Match": read.headers["ETag"]})
        assert (after.status_code, version(after)) == (200, version(read))


def test_the_read_of_the_account_by_post_has_the_etag_but_no_condition(alice: Client) -> None:
    etag = alice.get("/api/account").headers["ETag"]
    answer = alice.post("/api/account", headers={"If-None-Match": etag})
    assert (answer.status_code, answer.headers["ETag"]) == (200, etag)


def test_the_account_can_be_sent_back_and_an_etag_does_not_outlive_the_key(alice: Client, anonymous: Client) -> None:
    before = alice.get("/api/account")
    assert alice.put("/api/account/update", before.get_json()["data"]).status_code == 200
    after = alice.get("/api/account")
    assert after.data == before.data
    assert anonymous.get("/api/account", headers={"If-None-Match": after.headers["ETag"]}).status_code == 401


def test_another_users_etag_reveals_nothing(alice: Client, bob: Client, sql: Sql) -> None:
    path = f"/api/url/{factories.link(sql, alice.id)}"
    for condition in (alice.get(path).headers["ETag"], "*"):
        assert bob.get(path, headers={"If-None-Match": condition}).status_code == 404
