"""Webhooks: a receiver, which is a real server on loopback, and the delivery of what is waiting."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from flask import Flask
from standardwebhooks import Webhook

from linkmgr.features.webhooks.worker import Dispatcher
from tests.support.factories import Sql

if TYPE_CHECKING:
    from tests.conftest import Client

URL = "https://example.com/page"
Deliver = Callable[[], None]


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    def verify(self, secret: str) -> Any:
        """Raise an error unless the signature is that of the secret."""
        return Webhook(secret).verify(self.body, self.headers)


@dataclass
class Receiver:
    """`status` is that of its answers. `before` is called with the path before each answer."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b"ok"
    received: list[Received] = field(default_factory=list)
    before: Callable[[str], object] = lambda _: None

    @property
    def types(self) -> list[str]:
        return [delivery.json["type"] for delivery in self.received]


@contextmanager
def receiving() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.before(self.path)
            made.received.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(made.status)
            for name, value in ({"Content-Length": str(len(made.answer))} | made.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(made.answer)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A sender that is killed closes its connection."""

    with Server(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        made.url = f"http://127.0.0.1:{listening.server_port}/hooks"
        try:
            yield made
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def deliver(app: Flask) -> Callable[[], None]:
    """Move and deliver what is due."""
    dispatcher = Dispatcher()

    def run() -> None:
        with app.app_context():
            dispatcher.run(threading.Event())

    return run


def subscribe(client: "Client", url: str = "", *events: str, **members: Any) -> tuple[int, str]:
    """Add a webhook. Return its id and its secret."""
    answer = client.post("/api/webhooks", {"name": "Hook", "url": url, "events": list(events or ["*"])} | members)
    assert answer.status_code == 200, answer.text
    added = answer.get_json()
    return added["id"], added["secret"]


def deliveries(client: "Client", webhook_id: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/webhook/{webhook_id}/deliveries").get_json()["data"]["deliveries"]
    return found


def events(client: "Client", query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/events?{query}").get_json()["data"]["events"]
    return found


def fail(client: "Client", receiver: Receiver, deliver: Deliver) -> int:
    """Let the delivery of a new link fail. Return the id of its webhook."""
    webhook_id, _ = subscribe(client, receiver.url)
    receiver.status = 500
    client.add("/api/url/add", {"url": URL})
    deliver()
    return webhook_id


def make_due(sql: Sql) -> None:
    """Let the time until the next attempt pass."""
    sql("UPDATE deliveries SET due = now() WHERE state = 'waiting' RETURNING 1")
    sql("UPDATE webhooks SET paused_until = NULL RETURNING 1")
