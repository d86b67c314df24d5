"""APIs of other services: real servers on loopback, with pages as theirs."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from flask import Flask

from linkmgr.features.imports import services
from linkmgr.features.imports.rows import ImportRow, ReadError
from linkmgr.repository import users
from tests.support.foreign import Answer, answering, publish, server

HOST = "s.example.org"
KEY = "token-of-ada"
AT = "2026-02-04T12:04:57.000Z"
OWNER = "importer"

Respond = Callable[[str, dict[str, str], BaseHTTPRequestHandler], Any]
Start = Callable[..., list[str]]


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
def start_service(app: Flask, register: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a service, and return the list of its requests."""
    register(OWNER)
    with ExitStack() as stack:

        def start(respond: Respond | None = None, answer: Answer | None = None, host: str = HOST) -> list[str]:
            requests: list[str] = []
            port = stack.enter_context(server(answer or service(respond, requests)))  # type: ignore[arg-type]
            publish(monkeypatch, {f"{host}:80": port})
            return requests

        stack.enter_context(app.app_context())
        yield start


def read(source: str, address: str = f"http://{HOST}", token: str = KEY) -> list[ImportRow]:
    """Return all rows of a service, page by page."""
    rows, cursor = list[ImportRow](), None

    def earlier(_: list[str]) -> set[str]:
        return {row.name for row in rows}

    service = services.connect(source, address, token, users.find_id(OWNER), earlier)
    while True:
        page = services.read_page(service, cursor, len(rows))
        rows += page.rows
        cursor = orjson.loads(orjson.dumps(page.following))
        if cursor is None:
            return rows


def failure(source: str, address: str = f"http://{HOST}", token: str = KEY) -> ReadError:
    with pytest.raises(ReadError) as error:
        read(source, address, token)
    return error.value


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
        assert query["orderBy"] == "dateCreated-DESC"
        return {"shortUrls": page_of([shlink_link(number) for number in range(1, LINKS + 1)], query)}
    if path == "/rest/v3/short-urls/code7/visits" and query["domain"] == "go.example.org":
        return {"visits": page_of([shlink_visit(number) for number in range(VISITS)], query)}
    return 404


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
