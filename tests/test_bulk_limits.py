"""Size and number of bulk requests."""

import json
from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import at_once

PAGE = "https://example.com/page"
BULK = "/api/urls/bulk"


def test_bodies_of_two_mebibytes_are_accepted_here_only(alice: Client) -> None:
    padding = " " * ((2 << 20) - 100)
    headers = {"Content-Type": "application/json"}
    body = json.dumps({"urls": [{"url": PAGE}]})
    for path in (BULK, f"{BULK}/"):
        assert alice.post(path, data=body + padding, headers=headers).status_code == 200, path
    answer = alice.post(BULK, data=body + padding + " " * 100, headers=headers)
    assert (answer.status_code, answer.get_json()["code"]) == (413, "bulk_too_large")
    answer = alice.post("/api/url/add", data=body + padding, headers=headers)
    assert (answer.status_code, answer.get_json()["code"]) == (413, "too_large")


def test_rows_have_a_budget(app: Flask, app_with: Callable[..., Flask], alice: Client, bob: Client, sql: Sql) -> None:
    thrifty = app_with(bulk_rows="10 per minute")
    own, other = (Client(thrifty.test_client(), client.key) for client in (alice, bob))
    for sent, left in ((6, 4), (3, 1)):
        answer = own.post(BULK, {"urls": [{"url": f"{PAGE}/{n}"} for n in range(sent)]})
        numbers = {name: answer.headers[f"X-RateLimit-Rows-{name}"] for name in ("Limit", "Remaining")}
        assert numbers == {"Limit": "10", "Remaining": str(left)}
    refused = own.post(BULK, {"urls": [{"url": f"{PAGE}/new/{n}"} for n in range(2)]})
    assert (refused.status_code, refused.get_json()["code"]) == (429, "rows_limited")
    assert refused.headers["X-RateLimit-Rows-Remaining"] == "1"
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert sql("SELECT count(*) AS n FROM links") == [{"n": 6}]
    assert own.post(BULK, {"urls": [{"url": PAGE}]}).headers["X-RateLimit-Rows-Remaining"] == "0"
    assert other.post(BULK, {"urls": [{"url": PAGE}]}).headers["X-RateLimit-Rows-Remaining"] == "9"


def test_large_rows_count_as_several(app_with: Callable[..., Flask], alice: Client) -> None:
    own = Client(app_with(bulk_rows="100 per minute").test_client(), alice.key)
    codes = ("de", "fr", "it", "es", "pt", "nl", "pl", "sv", "da", "fi", "cs", "hu", "ro")
    large = {"languagetarget": [{"language": code, "link": f"{PAGE}/{'x' * 1900}"} for code in codes]}  # 25 KiB
    added = own.post(BULK, {"urls": [{"url": f"{PAGE}/{n}"} for n in range(9)] + [{"url": PAGE} | large]})
    assert (added.get_json()["created"], added.headers["X-RateLimit-Rows-Remaining"]) == (10, "87")
    ids = [row["id"] for row in added.get_json()["results"]]
    changed = own.put(BULK, {"ids": ids, "data": large})
    assert (changed.get_json()["updated"], changed.headers["X-RateLimit-Rows-Remaining"]) == (10, "47")
    refused = own.put(BULK, {"ids": [*ids, ids[0], ids[1]], "data": large})
    assert (refused.status_code, refused.get_json()["code"]) == (429, "rows_limited")
    added = own.post("/api/qr/bulk", {"qrs": [{"type": "text", "data": "Hello", "logo": "x" * (9 << 10)}]})
    assert added.headers["X-RateLimit-Rows-Remaining"] == "45"


def test_the_budget_is_exact_under_concurrency(app_with: Callable[..., Flask], alice: Client) -> None:
    thrifty = app_with(bulk_rows="50 per minute")
    links = {"urls": [{"url": f"{PAGE}/{n}"} for n in range(3)]}
    answers = at_once(30, lambda _: Client(thrifty.test_client(), alice.key).post(BULK, links), threads=8)
    assert sorted(answer.status_code for answer in answers) == [200] * 16 + [429] * 14


@pytest.mark.parametrize(
    ("links", "status"), [([{"url": f"{PAGE}/{n}"} for n in range(4)], 200), ([{"url": "ftp://x"}] * 4, 400)]
)
def test_equal_requests_under_one_idempotency_key_spend_their_rows_once(
    app_with: Callable[..., Flask], alice: Client, links: list[dict[str, str]], status: int
) -> None:
    thrifty = app_with(bulk_rows="10 per minute")

    def send(_: int, key: str = "once") -> TestResponse:
        body = {"urls": links, "atomic": True}
        return Client(thrifty.test_client(), alice.key).post(BULK, body, headers={"Idempotency-Key": key})

    answers = at_once(12, send, threads=6)
    assert {answer.status_code for answer in answers} <= {status, 409}
    assert len({answer.data for answer in answers if answer.status_code == status}) == 1
    assert [send(0).status_code, send(0, "twice").status_code] == [status, status]
    refused = send(0, "again")
    assert (refused.status_code, refused.headers["X-RateLimit-Rows-Remaining"]) == (429, "2")


@pytest.mark.parametrize("kind", ["channel", "pixel"])
def test_the_links_of_a_request_have_a_limited_number_of_channels_and_pixels(
    alice: Client, sql: Sql, kind: str
) -> None:
    ids, member = [factories.ALL[kind](sql, alice.id) for _ in range(20)], kind.replace("pixel", "pixels")
    links = [{"url": f"{PAGE}/{n}", member: ids} for n in range(1000)]
    other = {"pixel": "channel", "channel": "pixels"}[kind]
    refused = alice.post(BULK, {"urls": [links[0] | {other: [2**62]}, *links[1:]]})
    assert (refused.status_code, refused.get_json()["message"]) == (
        400,
        "The links of a request must have at most 20,000 channels and pixels in total, not 20,001: "
        "send fewer links in each request.",
    )
    assert sql("SELECT count(*) AS n FROM links") == [{"n": 0}]
    body = alice.post(BULK, {"urls": links}).get_json()
    assert body["created"] == 1000

    changed = {"ids": [result["id"] for result in body["results"]], "data": {member: ids}}
    refused = alice.put(BULK, changed | {"data": {member: ids, other: [1]}})
    assert (refused.status_code, refused.get_json()["code"]) == (400, "invalid")
    assert "not 21,000" in refused.get_json()["message"]
    assert alice.put(BULK, changed).get_json()["updated"] == 1000
