"""Reading from APIs of other services."""

from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import pytest

from linkmgr.features.imports import services
from linkmgr.features.imports.rows import RawVisit
from tests.support.foreign import Answer, answering
from tests.support.foreign_services import (
    BITLY,
    HOST,
    LINKS,
    VISITS,
    Start,
    bitly,
    failure,
    kutt,
    page_of,
    parameters,
    read,
    shlink,
    shlink_link,
    yourls,
)


def test_all_links_and_visits_of_shlink_until_the_import_began_are_read(start_service: Start) -> None:
    requests = start_service(shlink)
    rows = read("shlink")
    links, visits = [row for row in rows if not row.is_visits], [row for row in rows if row.is_visits]
    assert [row.members["custom"] for row in links] == [f"code{number}" for number in range(1, LINKS + 1)]
    assert links[6].members == {
        "url": "https://example.com/7", "custom": "code7", "domain": "go.example.org", "expiry": "2027-01-01 00:00:00",
    }  # fmt: skip
    assert (links[6].tags, links[6].created, links[6].clicks) == (["news"], "2026-02-04 12:04:57", VISITS)
    assert rows.index(visits[0]) == 50
    assert [row.members for row in visits] == [{"custom": "code7", "domain": "go.example.org"}] * 3
    raw = [visit for row in visits for visit in row.visits]
    assert len(set(raw)) == VISITS
    assert raw[:2] == [
        RawVisit("2026-02-05 00:00:00", "https://news.example.net", "curl/8.5.0", ""),
        RawVisit("2026-02-05 00:00:01", "https://news.example.net", "curl/8.5.0", "DE"),
    ]
    assert len({parameters(urlsplit(path).query)["endDate"] for path in requests if "/visits?" in path}) == 1


def test_a_link_that_is_deleted_meanwhile_has_no_visits(start_service: Start) -> None:
    start_service(lambda path, *rest: 404 if path.endswith("/visits") else shlink(path, *rest))
    assert not any(row.is_visits for row in read("shlink"))


def test_pages_of_unreadable_visits_end(start_service: Start) -> None:
    def endless(path: str, query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
        if path.endswith("/visits"):
            return {"visits": {"data": [{"date": "soon"}], "pagination": {"pagesCount": 10**9}}}
        return shlink(path, query, request)

    requests = start_service(endless)
    assert [row.number for row in read("shlink")] == list(range(1, LINKS + 1))
    assert len([path for path in requests if "/visits" in path]) == 1


def test_a_domain_that_is_no_text_is_not_asked_for_visits(start_service: Start) -> None:
    deep: Any = []
    for _ in range(300):  # which a cursor cannot have
        deep = [deep]
    link = shlink_link(7) | {"domain": deep}
    requests = start_service(lambda _, query, __: {"shortUrls": page_of([link], query)})
    assert [row.is_visits for row in read("shlink")] == [False]
    assert len(requests) == 1


def test_all_links_of_kutt_are_read(start_service: Start) -> None:
    requests = start_service(kutt)
    rows = read("kutt")
    assert [row.members for row in rows] == [
        {"url": f"https://example.com/{number}", "custom": f"code{number}"} for number in range(1, 121)
    ]
    assert [(row.created, row.clicks, row.visits) for row in rows[:1]] == [("2026-02-04 12:04:57", 1, [])]
    assert [parameters(urlsplit(path).query)["skip"] for path in requests] == ["0", "50", "100"]


def test_all_links_of_yourls_are_read_and_the_token_is_not_in_a_url(start_service: Start) -> None:
    requests = start_service(yourls)
    rows = read("yourls", f"http://{HOST}/yourls-api.php")
    assert [row.members["custom"] for row in rows] == [f"code{number}" for number in range(1, 71)]
    assert rows[0].members["title"] == "Title 1"
    assert (rows[69].clicks, rows[69].created) == (70, "2026-02-04 12:04:57")
    assert requests == ["/yourls-api.php"]


@pytest.fixture
def plain_bitly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "BITLY", f"http://{BITLY}/v4")


@pytest.mark.usefixtures("plain_bitly")
def test_all_links_of_all_groups_of_bitly_are_read(start_service: Start) -> None:
    start_service(bitly, host=BITLY)
    rows = read("bitly", "")
    aliases = [f"{group}-{number}" for group in ("Ba1", "Bb2") for number in range(60)]
    assert [row.members["custom"] for row in rows] == aliases
    assert rows[0].members == {"url": "https://example.com/0", "custom": "Ba1-0", "domain": "bit.ly"}
    assert (rows[0].created, rows[0].clicks) == ("2026-06-01 08:30:00", None)


@pytest.mark.usefixtures("plain_bitly")
def test_a_token_of_bitly_goes_to_bitly_only(start_service: Start) -> None:
    def elsewhere(path: str, *rest: Any) -> Any:
        return bitly(path, *rest) | {"pagination": {"next": f"http://{BITLY}.example.net/v4/groups"}}

    requests = start_service(elsewhere, host=BITLY)
    assert "has no 'pagination'" in failure("bitly", "").message
    assert len(requests) == 2


@pytest.mark.usefixtures("plain_bitly")
def test_a_failure_behind_a_link_with_two_short_urls_names_the_row_that_is_shown(start_service: Start) -> None:
    links = [
        {"link": "https://bit.ly/a", "custom_bitlinks": ["https://bit.ly/b"], "long_url": "https://example.com"},
        {},
    ]
    start_service(
        lambda path, *_: {"groups": [{"guid": "B"}]} if path.endswith("/groups") else {"links": links}, host=BITLY
    )
    assert [(row.number, (row.problem or "")[:5]) for row in read("bitly", "")] == [(1, ""), (2, ""), (3, "Row 3")]


# --- services that fail or refuse


@pytest.mark.parametrize("address", ["", "http://s.example.org/rest/v3/", "http://s.example.org/"])
def test_the_path_of_the_api_may_be_part_of_the_address(start_service: Start, address: str) -> None:
    start_service(shlink)
    if address:
        assert read("shlink", address)[0].members["custom"] == "code1"
    else:
        assert failure("shlink", "").message == "Send the address of the service, such as https://s.example.org."


@pytest.mark.parametrize("source", ["kutt", "shlink", "yourls"])
def test_a_wrong_token_is_a_clear_failure(start_service: Start, source: str) -> None:
    start_service({"kutt": kutt, "shlink": shlink, "yourls": yourls}[source])
    error = failure(source, token="wrong")
    status = 403 if source == "yourls" else 401
    assert error.message == (f"The service refused the token (status {status}). Check the token and its permissions.")
    assert error.retry_after is None


@pytest.mark.parametrize("token", ["", "two\r\nlines: 1", "with space", "caf\u00e9", "x" * 2049])
def test_a_malformed_token_is_not_sent(start_service: Start, token: str) -> None:
    requests = start_service(kutt)
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
def test_a_service_can_ask_to_wait(start_service: Start, status: int, headers: dict[str, str], seconds: int) -> None:
    start_service(answer=answering(b"", status, **headers))
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
            f"The service redirects to https://{HOST}. Use that address.",
        ),
        (
            answering(b"", 302, Location=f"http://{HOST}/api/v2/links?limit=50&skip=0&again=1"),
            f"The service redirects its API to http://{HOST}/api/v2/links?limit=50&skip=0&again=1. Check that the ",
        ),
        (answering(b"", 302, Location="/login"), f"The service redirects its API to http://{HOST}/login. Check that"),
        (answering(b" " * (1 << 21)), f"The response from {HOST} is too large. The limit is 1 MiB."),
    ],
)
def test_a_response_of_another_kind_is_a_clear_failure(start_service: Start, answer: Answer, message: str) -> None:
    start_service(answer=answer)
    error = failure("kutt")
    assert error.message.startswith(message)
    assert error.retry_after is None


def test_a_malformed_link_of_a_service_is_a_problem_and_reading_goes_on(start_service: Start) -> None:
    links: list[Any] = [7, {"address": "x"}, {"address": "good", "target": "https://example.com"}, {"target": [{}]}]
    start_service(lambda *_: {"total": 4, "data": links})
    assert [row.problem for row in read("kutt")] == [
        "Row 1 is not a JSON object with the members of a link.",
        "Row 2 has no target. Fill in 'target', or leave the row out.",
        None,
        "Row 4 has no target. Fill in 'target', or leave the row out.",
    ]


def test_a_service_that_does_not_number_its_links_or_pages_is_a_clear_failure(start_service: Start) -> None:
    start_service(lambda *_: {"total": "51", "data": [{}]})
    assert "has no 'total'" in failure("kutt").message
    start_service(lambda *_: {"shortUrls": {"data": [{}], "pagination": {"pagesCount": "2"}}})
    assert "has no 'pagesCount'" in failure("shlink").message


def test_a_yourls_that_ignores_the_start_of_a_page_ends(start_service: Start) -> None:
    links = {f"link_{number}": {"shorturl": "a", "url": "https://example.com"} for number in range(50)}
    requests = start_service(lambda *_: {"links": links, "stats": {"total_links": "100"}})
    assert {row.members["custom"] for row in read("yourls")} == {"a"}
    assert len(requests) == 3


def test_a_service_that_promises_more_than_it_has_ends(start_service: Start) -> None:
    requests = start_service(lambda *_: {"total": 10**9, "data": []})
    assert read("kutt") == []
    assert len(requests) == 1
