"""Reading from APIs of other services that fail or refuse."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.outbound import fetch
from tests.support.foreign import Answer, answering
from tests.support.foreign_services import (
    HOST,
    Serve,
    failure,
    kutt,
    read,
    serving,  # noqa: F401 - a fixture
    shlink,
    yourls,
)


@pytest.mark.parametrize("address", ["", "http://s.example.org/rest/v3/", "http://s.example.org/"])
def test_the_path_of_the_api_may_be_part_of_the_address(serve: Serve, address: str) -> None:
    serve(shlink)
    if address:
        assert read("shlink", address)[0].record["custom"] == "code1"
    else:
        assert failure("shlink", "").message == "Send the address of the service, such as https://s.example.org."


@pytest.mark.parametrize("source", ["kutt", "shlink", "yourls"])
def test_a_wrong_token_is_a_clear_failure(serve: Serve, source: str) -> None:
    serve({"kutt": kutt, "shlink": shlink, "yourls": yourls}[source])
    error = failure(source, token="wrong")
    status = 403 if source == "yourls" else 401
    assert error.message == (f"The service refused the token (status {status}). Check the token and its permissions.")
    assert error.retry_after is None


@pytest.mark.parametrize("token", ["", "two\r\nlines: 1", "with space", "caf\u00e9", "x" * 2049])
def test_a_malformed_token_is_not_sent(serve: Serve, token: str) -> None:
    requests = serve(kutt)
    assert failure("kutt", token=token).message.startswith("The token must have 1 to 2048 printable ASCII characters.")
    assert requests == []


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"Retry_After": "7"}, 7),
        (503, {"Retry_After": "0"}, 1),
        (429, {}, 60),
        (503, {"Retry_After": "soon"}, 30),
        (429, {"Retry_After": "Fri, 31 Dec 2100 23:59:59 GMT"}, 3600),
        (429, {"Retry_After": "Fri, 31 Dec 1999 23:59:59 GMT"}, 1),
        (429, {"Retry_After": "9" * 50}, 3600),
    ],
)
def test_a_service_can_ask_to_wait(serve: Serve, status: int, headers: dict[str, str], seconds: int) -> None:
    serve(answer=answering(b"", status, **headers))
    assert failure("kutt").retry_after == seconds


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (answering(b"<html>"), "The service did not respond with JSON. Check that the address is that of its API."),
        (answering(b"[]"), "The service did not respond with JSON. Check that the address is that of its API."),
        (answering(b"[" * 100_000), "The service did not respond with JSON."),
        (answering(b'{"data": 7}'), "The response of the service has no 'data'."),
        (answering(b"{}", 404), "The service has no API at this address (status 404). Check the address."),
        (answering(b"{}", 500), "The service responded with status 500 instead of 200. Try again later."),
        (
            answering(b"", 301, Location=f"https://{HOST}/api/v2/links"),
            f"The service redirects to https://{HOST}/api/v2/links. Use that address.",
        ),
        (answering(b" " * (1 << 21)), f"The response from {HOST} is too large. The limit is 1 MiB."),
    ],
)
def test_a_response_of_another_kind_is_a_clear_failure(serve: Serve, answer: Answer, message: str) -> None:
    serve(answer=answer)
    error = failure("kutt")
    assert error.message.startswith(message)
    assert error.retry_after is None


@pytest.mark.parametrize("address", ["http://127.0.0.1", "http://10.0.0.1", "http://169.254.169.254", "http://[::1]"])
def test_a_service_must_be_at_a_public_address(serve: Serve, make_app: Callable[..., Flask], address: str) -> None:
    serve(kutt)
    with make_app(private_networks="").app_context():
        assert "is not allowed. Use a public host, on port 80 or 443." in failure("kutt", address).message


def test_a_malformed_link_of_a_service_is_a_problem_and_reading_goes_on(serve: Serve) -> None:
    links: list[Any] = [7, {"address": "x"}, {"address": "good", "target": "https://example.com"}, {"target": [{}]}]
    serve(lambda *_: {"total": 4, "data": links})
    assert [row.problem for row in read("kutt")] == [
        "Row 1 is not a JSON object with the members of a link.",
        "Row 2 has no target. Fill in 'target', or leave the row out.",
        None,
        "Row 4 has no target. Fill in 'target', or leave the row out.",
    ]


def test_a_yourls_that_ignores_the_start_of_a_page_ends(serve: Serve) -> None:
    links = {f"link_{number}": {"shorturl": "a", "url": "https://example.com"} for number in range(50)}
    requests = serve(lambda *_: {"links": links, "stats": {"total_links": "100"}})
    assert len(read("yourls")) == 100
    assert len(requests) == 2


def test_a_fetch_that_finds_all_slots_taken_is_repeated_later(serve: Serve) -> None:
    requests = serve(kutt)
    with fetch.slot(), fetch.slot():
        error = failure("kutt")
    assert error.message.startswith("Too many fetches are in progress.")
    assert (error.retry_after, requests) == (2, [])


def test_a_service_that_promises_more_than_it_has_ends(serve: Serve) -> None:
    requests = serve(lambda *_: {"total": 10**9, "data": []})
    assert read("kutt") == []
    assert len(requests) == 1
