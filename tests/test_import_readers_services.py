"""APIs of other services: real servers on loopback, with pages as theirs."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask import Flask

from linkmgr.imports import readers, services
from linkmgr.imports.rows import ImportRow, RawVisit, ReadError
from linkmgr.outbound import fetch
from tests.foreign import Answer, answering, publish, server

HOST = "s.example.org"
KEY = "token-of-ada"
AT = "2026-02-04T12:04:57.000Z"

Respond = Callable[[str, dict[str, str], BaseHTTPRequestHandler], Any]
Serve = Callable[..., list[str]]


def parameters(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


def service(respond: Respond, requests: list[str]) -> Answer:
    """Return a server of JSON. A number stands for a response with this status."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        requests.append(request.path)
        url = urlsplit(request.path)
        content = respond(url.path, parameters(url.query), request)
        if isinstance(content, int):
            answering(b"{}", content)(request)
        else:
            answering(json.dumps(content).encode())(request)

    return answer


@pytest.fixture
def serve(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a service, and return the list of its requests."""
    with ExitStack() as stack:

        def start(respond: Respond | None = None, answer: Answer | None = None, host: str = HOST) -> list[str]:
            requests: list[str] = []
            port = stack.enter_context(server(answer or service(respond, requests)))  # type: ignore[arg-type]
            publish(monkeypatch, {f"{host}:80": port})
            return requests

        stack.enter_context(app.app_context())
        yield start


def read(source: str, address: str = f"http://{HOST}", position: Any = None) -> list[ImportRow]:
    return list(readers.read_service(source, address, KEY, position))


def failure(source: str, address: str = f"http://{HOST}", token: str = KEY) -> ReadError:
    with pytest.raises(ReadError) as error:
        list(readers.read_service(source, address, token))
    return error.value


def check_positions(source: str, rows: list[ImportRow]) -> None:
    """Check that reading continues behind some rows, among them those around the ends of pages."""
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    for index in {6, 7, 8, 9, 48, 49, 50, len(rows) - 1}:
        position = json.loads(json.dumps(rows[index].position))
        assert read(source, position=position) == rows[index + 1 :]


# --- Shlink: GET /rest/v3/short-urls and /rest/v3/short-urls/{shortCode}/visits

LINKS, VISITS = 101, 405


def shlink_link(number: int) -> dict[str, Any]:
    return {
        "shortCode": f"code{number}",
        "shortUrl": f"http://{HOST}/code{number}",
        "longUrl": f"https://example.com/{number}",
        "dateCreated": "2026-02-04T20:04:57+08:00",
        "tags": ["news"],
        "meta": {"validSince": None, "validUntil": "2027-01-01T00:00:00+00:00", "maxVisits": None},
        "domain": "go.example.org" if number == 7 else None,
        "title": None,
        "visitsSummary": {"total": VISITS if number == 7 else 0, "nonBots": 0, "bots": 0},
    }


def shlink_visit(number: int) -> dict[str, Any]:
    return {
        "referer": "https://news.example.net",
        "date": f"2026-02-05T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00",
        "userAgent": "curl/8.5.0",
        "visitLocation": {"countryCode": "DE", "countryName": "Germany"} if number else None,
        "potentialBot": False,
    }


def page_of(elements: list[Any], query: dict[str, str]) -> dict[str, Any]:
    size, number = int(query["itemsPerPage"]), int(query["page"])
    data = elements[(number - 1) * size : number * size]
    pages = -(-len(elements) // size)
    numbers = {"currentPage": number, "pagesCount": pages, "itemsPerPage": size, "itemsInCurrentPage": len(data)}
    return {"data": data, "pagination": numbers | {"totalItems": len(elements)}}


def shlink(path: str, query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
    if request.headers["X-Api-Key"] != KEY:
        return 401
    if path == "/rest/v3/short-urls":
        assert query["orderBy"] == "dateCreated-ASC"
        return {"shortUrls": page_of([shlink_link(number) for number in range(1, LINKS + 1)], query)}
    if path == "/rest/v3/short-urls/code7/visits" and query["domain"] == "go.example.org":
        return {"visits": page_of([shlink_visit(number) for number in range(VISITS)], query)}
    return 404


def test_all_links_and_visits_of_shlink_are_read(serve: Serve) -> None:
    serve(shlink)
    rows = read("shlink")
    links, visits = [row for row in rows if not row.is_visits], [row for row in rows if row.is_visits]
    assert [row.record["custom"] for row in links] == [f"code{number}" for number in range(1, LINKS + 1)]
    assert links[6].record == {
        "url": "https://example.com/7", "custom": "code7", "domain": "go.example.org", "expiry": "2027-01-01 00:00:00",
    }  # fmt: skip
    assert (links[6].tags, links[6].created, links[6].clicks) == (["news"], "2026-02-04 12:04:57", VISITS)
    assert rows.index(visits[0]) == 7
    assert [row.record for row in visits] == [{"custom": "code7", "domain": "go.example.org"}] * 3
    raw = [visit for row in visits for visit in row.visits]
    assert len(set(raw)) == VISITS
    assert raw[:2] == [
        RawVisit("2026-02-05 00:00:00", "https://news.example.net", "curl/8.5.0", ""),
        RawVisit("2026-02-05 00:00:01", "https://news.example.net", "curl/8.5.0", "DE"),
    ]


def test_reading_of_shlink_continues_behind_any_row(serve: Serve) -> None:
    serve(shlink)
    check_positions("shlink", read("shlink"))


def test_visits_since_the_import_began_do_not_move_its_pages(serve: Serve) -> None:
    requests = serve(shlink)
    rows = read("shlink")
    read("shlink", position=rows[7].position)
    ends = {parameters(urlsplit(path).query)["endDate"] for path in requests if "/visits?" in path}
    assert len(ends) == 1


def test_a_link_that_is_deleted_meanwhile_has_no_visits(serve: Serve) -> None:
    serve(lambda path, *rest: 404 if path.endswith("/visits") else shlink(path, *rest))
    assert not any(row.is_visits for row in read("shlink"))


def test_pages_of_unreadable_visits_end(serve: Serve) -> None:
    def endless(path: str, query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
        if path.endswith("/visits"):
            return {"visits": {"data": [{"date": "soon"}], "pagination": {"pagesCount": 10**9}}}
        return shlink(path, query, request)

    requests = serve(endless)
    assert [row.number for row in read("shlink")] == list(range(1, LINKS + 1))
    assert len([path for path in requests if "/visits" in path]) == 1


# --- Kutt: GET /api/v2/links


def kutt(path: str, query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
    if request.headers["X-API-KEY"] != KEY:
        return 401
    if path != "/api/v2/links":
        return 404
    limit, skip = min(int(query["limit"]), 50), int(query["skip"])
    links = [
        {
            "id": str(number),
            "address": f"code{number}",
            "target": f"https://example.com/{number}",
            "description": None,
            "visit_count": number,
            "created_at": AT,
            "expire_in": None,
            "password": False,
            "domain": None,
        }
        for number in range(1, 121)
    ]
    return {"total": len(links), "limit": limit, "skip": skip, "data": links[skip : skip + limit]}


def test_all_links_of_kutt_are_read(serve: Serve) -> None:
    requests = serve(kutt)
    rows = read("kutt")
    assert [row.record for row in rows] == [
        {"url": f"https://example.com/{number}", "custom": f"code{number}"} for number in range(1, 121)
    ]
    assert [(row.created, row.clicks, row.visits) for row in rows[:1]] == [("2026-02-04 12:04:57", 1, [])]
    assert [parameters(urlsplit(path).query)["skip"] for path in requests] == ["0", "50", "100"]
    check_positions("kutt", rows)


# --- YOURLS: POST /yourls-api.php


def yourls(path: str, _query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
    form = parameters(request.rfile.read(int(request.headers["Content-Length"])).decode())
    if form["signature"] != KEY:
        return 403
    if (path, form["action"], form["format"]) != ("/yourls-api.php", "stats", "json"):
        return 400
    start, limit = int(form["start"]), int(form["limit"])
    links = [
        {
            "shorturl": f"http://{HOST}/code{number}",
            "url": f"https://example.com/{number}",
            "title": f"Title {number}",
            "timestamp": "2026-02-04 12:04:57",
            "ip": "127.0.0.1",
            "clicks": str(number),
        }
        for number in range(start + 1, min(start + limit, 70) + 1)
    ]
    numbered = {f"link_{index}": link for index, link in enumerate(links, start=1)}
    return {"links": numbered, "stats": {"total_links": "70", "total_clicks": "9"}, "statusCode": 200}


def test_all_links_of_yourls_are_read_and_the_token_is_not_in_a_url(serve: Serve) -> None:
    requests = serve(yourls)
    rows = read("yourls", f"http://{HOST}/yourls-api.php")
    assert [row.record["custom"] for row in rows] == [f"code{number}" for number in range(1, 71)]
    assert rows[0].record["metatitle"] == "Title 1"
    assert (rows[69].clicks, rows[69].created) == (70, "2026-02-04 12:04:57")
    assert requests == ["/yourls-api.php"] * 2
    check_positions("yourls", rows)


# --- Bitly: GET /v4/groups and /v4/groups/{group_guid}/bitlinks

BITLY = "api-ssl.bitly.com"


def bitly(path: str, query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
    if request.headers["Authorization"] != f"Bearer {KEY}":
        return 403
    if path == "/v4/groups":
        return {"groups": [{"guid": "Ba1"}, {"guid": "Bb2"}]}
    group = re.fullmatch("/v4/groups/(B..)/bitlinks", path)
    if not group:
        return 404
    start = int(query.get("search_after", 0))
    links = [
        {
            "created_at": "2026-06-01T08:30:00+0000",
            "id": f"bit.ly/{group[1]}-{number}",
            "link": f"https://bit.ly/{group[1]}-{number}",
            "custom_bitlinks": [],
            "long_url": f"https://example.com/{number}",
            "tags": [],
        }
        for number in range(start, min(start + 50, 60))
    ]
    following = f"http://{BITLY}{path}?size=50&search_after={start + 50}" if start + 50 < 60 else ""
    return {"links": links, "pagination": {"next": following, "size": 50}}


@pytest.fixture
def plain_bitly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "BITLY", f"http://{BITLY}/v4")


@pytest.mark.usefixtures("plain_bitly")
def test_all_links_of_all_groups_of_bitly_are_read(serve: Serve) -> None:
    serve(bitly, host=BITLY)
    rows = read("bitly", "")
    aliases = [f"{group}-{number}" for group in ("Ba1", "Bb2") for number in range(60)]
    assert [row.record["custom"] for row in rows] == aliases
    assert rows[0].record == {"url": "https://example.com/0", "custom": "Ba1-0", "domain": "bit.ly"}
    assert (rows[0].created, rows[0].clicks) == ("2026-06-01 08:30:00", None)
    check_positions("bitly", rows)


@pytest.mark.usefixtures("plain_bitly")
def test_a_token_of_bitly_goes_to_bitly_only(serve: Serve) -> None:
    def elsewhere(path: str, *rest: Any) -> Any:
        return bitly(path, *rest) | {"pagination": {"next": f"http://{BITLY}.example.net/v4/groups"}}

    requests = serve(elsewhere, host=BITLY)
    assert "has no 'pagination'" in failure("bitly", "").message
    assert len(requests) == 2


# --- failures


@pytest.mark.parametrize("address", ["", "http://s.example.org/rest/v3/", "http://s.example.org/"])
def test_the_path_of_the_api_may_be_part_of_the_address(serve: Serve, address: str) -> None:
    serve(shlink)
    if address:
        assert read("shlink", address)[0].record["custom"] == "code1"
    else:
        assert failure("shlink", "").message == "Give the address of the service, such as https://s.example.org."


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
            f"The service redirects to https://{HOST}/api/v2/links. Give that address.",
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
def test_a_service_must_be_at_a_public_address(serve: Serve, address: str) -> None:
    serve(kutt)
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
