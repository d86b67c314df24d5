"""POST /api/qr/bulk."""

from typing import Any

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.logos import logo_file

BULK = "/api/qr/bulk"


def send(client: Client, *codes: Any, atomic: bool = False) -> Any:
    answer = client.post(BULK, {"qrs": list(codes), "atomic": atomic})
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def codes_of(body: Any) -> list[str]:
    return [result.get("code", "") for result in body["results"]]


def test_codes_are_stored_as_single_creates_store_them(alice: Client) -> None:
    bodies = [
        {"type": "link", "data": "https://bücher.example/", "name": "Books"},
        {"type": "wifi", "data": {"ssid": "Guests", "password": "correct horse"}},
        {"type": "vcard", "data": {"fname": "Ada"}, "foreground": "rgb(0, 0, 128)"},
        {"type": "phone", "data": {"phone": "+4930123456"}},
    ]
    body = send(alice, *bodies)
    assert (body["created"], body["failed"]) == (4, 0)
    for sent, result in zip(bodies, body["results"], strict=True):
        single = alice.post("/api/qr/add", sent).get_json()
        assert list(result) == ["index", "id", "link"]
        many, one = (alice.get(f"/api/qr/{qr_id}").get_json()["details"] for qr_id in (result["id"], single["id"]))
        assert many["link"] == result["link"]
        for own in ("id", "link", "date", "updated"):
            del many[own], one[own]
        assert many == one


def test_a_code_that_fails_does_not_stop_the_others(alice: Client, bob: Client, sql: Sql) -> None:
    factories.domain(sql, bob.id)
    host = sql("SELECT host FROM domains")[0]["host"]
    body = send(
        alice,
        {"type": "text", "data": "a", "foreground": "rgb(250,250,250)"},
        {"type": "link", "data": "http://127.0.0.1:5000/nothing"},
        {"type": "link", "data": f"https://{host}/a"},
        {"type": "text", "data": "b"},
        {"type": "wifi", "data": "b"},
        {"type": "text"},
        {"type": "text", "data": "c", "logo": "nothing.png"},
        5,
    )
    assert codes_of(body) == [
        "colours_too_close", "short_link_unknown", "link_branded", "", "invalid", "invalid", "logo_missing", "invalid"
    ]  # fmt: skip
    single = alice.post("/api/qr/add", {"type": "text", "data": "a", "foreground": "rgb(250,250,250)"})
    assert body["results"][0]["message"] == single.get_json()["message"]


def test_an_atomic_request_stores_all_or_nothing(alice: Client, sql: Sql) -> None:
    good, bad = {"type": "text", "data": "a"}, {"type": "text", "data": "a", "foreground": "rgb(250,250,250)"}
    answer = alice.post(BULK, {"qrs": [good, bad], "atomic": True})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "bulk_refused")
    assert sql("SELECT 1 FROM qrs") == []
    assert codes_of(send(alice, good, good, atomic=True)) == ["", ""]


@pytest.mark.parametrize(
    ("logos", "problem"),
    [
        ([f"https://example.com/{n}.png" for n in range(3)], "more than 2 different URLs of logos"),
        ([f"{n}.png" for n in range(21)], "more than 20 different logos"),
    ],
)
def test_the_number_of_logos_is_limited(alice: Client, sql: Sql, logos: list[str], problem: str) -> None:
    answer = alice.post(BULK, {"qrs": [{"type": "text", "data": "a", "logo": logo} for logo in logos]})
    assert (answer.status_code, answer.get_json()["message"]) == (400, f"qrs must not contain {problem}.")
    assert sql("SELECT 1 FROM qrs") == []


def test_a_logo_of_several_codes_is_the_one_of_a_single_create(alice: Client, sql: Sql) -> None:
    noise, plain = (logo_file(alice, name) for name in ("noise", "plain"))
    code = {"type": "text", "data": "a"}
    assert alice.post("/api/qr/add", code | {"logo": noise}).status_code == 200
    body = send(alice, *[code | {"logo": logo} for logo in (noise, plain, noise)], code)
    assert body["created"] == 4
    stored = sql("SELECT image AS logo, logo_source FROM qrs LEFT JOIN logos ON hash = logo_hash ORDER BY id")
    assert [row["logo_source"] for row in stored] == [noise, noise, plain, noise, None]
    assert stored[0] == stored[1] == stored[3] != stored[2]
    assert stored[4]["logo"] is None
