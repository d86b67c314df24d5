"""Web servers of third parties: real servers on loopback under public names."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pycurl
import pytest

from linkmgr.core.outbound import fetch

Answer = Callable[[BaseHTTPRequestHandler], None]


def answering(body: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


@contextmanager
def server(answer: Answer, tls: ssl.SSLContext | None = None, *, address: str = "127.0.0.1") -> Iterator[int]:
    """Start a web server that answers every GET, HEAD and POST with this response, and return its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(OSError):  # the client has gone
                answer(self)

        do_POST = do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((address, 0), Handler) as listening:
        if tls:
            listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield listening.server_port
        finally:  # otherwise a failing test would wait for the thread
            listening.shutdown()
            thread.join()


def publish(monkeypatch: pytest.MonkeyPatch, ports: dict[str, int]) -> None:
    """Let the fetcher reach these names, written 'host:port', at these loopback ports, and no others."""
    publish_at(monkeypatch, {name: ("127.0.0.1", port) for name, port in ports.items()})


def publish_at(monkeypatch: pytest.MonkeyPatch, places: dict[str, tuple[str, int]]) -> None:
    """Do the same with names at these loopback addresses and ports."""
    decide = fetch.is_allowed
    monkeypatch.setattr(
        fetch, "is_allowed", lambda address, port: (address, port) in places.values() or decide(address, port)
    )
    lines = [f"{name}:{address}:{port}" for name, (address, port) in places.items()]
    monkeypatch.setitem(fetch.OPTIONS, pycurl.CONNECT_TO, lines)


def resolve(monkeypatch: pytest.MonkeyPatch, **addresses: str) -> None:
    """Set the addresses that names resolve to. `go_example_com` means go.example.com."""
    pinned = [f"{name.replace('_', '.')}:80:{address}" for name, address in addresses.items()]
    monkeypatch.setitem(fetch.OPTIONS, pycurl.RESOLVE, pinned)


Publish = Callable[..., int]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publish]:
    """Start a web server under a public name."""
    running = ExitStack()

    def start(answer: Answer, name: str = "go.example.com:80", **options: Any) -> int:
        port = running.enter_context(server(answer, **options))
        publish(monkeypatch, {name: port})
        return port

    with running:
        yield start
