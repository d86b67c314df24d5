"""Web servers whose requests are noted, as targets of links that are checked."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from linkmgr.features.health import checks as worker
from tests.support.factories import Sql
from tests.support.foreign import answering

if TYPE_CHECKING:
    from tests.conftest import Client

PAGE = "<html><head><TITLE lang=de>\n Gr\u00fc\u00dfe &amp;\t Caf\u00e9 <b>".encode("latin-1")
HTML = "text/html; charset=ISO-8859-1"
Check = Callable[..., None]


@dataclass
class Request:
    host: str
    method: str
    path: str
    began: float
    ended: float = 0


class Site:
    """A web server under several names. `answers` are its responses by path, /robots.txt among them."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
            "/page": answering(PAGE, Content_Type=HTML)
        }
        self.requests: list[Request] = []
        self.agents: set[str] = set()

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        self.agents.add(request.headers["User-Agent"])
        noted = Request(request.headers["Host"], request.command, request.path, time.monotonic())
        self.requests.append(noted)
        noted.ended = time.monotonic()  # before the client can send the next one
        self.answers.get(request.path.partition("?")[0], answering(b"", 404))(request)

    @property
    def paths(self) -> list[tuple[str, str]]:
        return [(request.method, request.path) for request in self.requests]


def health(client: "Client", link_id: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/url/{link_id}").get_json()["details"]["health"]
    return found


@pytest.fixture(name="check")
def checked_links(app: Flask, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Add all links, and check those that are due. `days` pass before."""
    monkeypatch.setattr(worker, "DELAY", -1)
    monkeypatch.setattr("linkmgr.features.health.requests.SPACING", 0)
    checker = worker.Checker(app)

    def run(*, days: float = 0) -> None:
        sql(
            """
            UPDATE link_checks SET due = due - make_interval(secs => %(seconds)s),
                                   failed = failed - make_interval(secs => %(seconds)s)
            RETURNING 1
            """,
            seconds=days * 86400,
        )
        for _ in range(3):  # the id of the last link, its row, and its check
            sql("UPDATE service SET checking_until = '-infinity' RETURNING 1")
            with app.app_context():
                checker.work()

    return run
