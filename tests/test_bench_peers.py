"""python -m bench.peers, with a server that answers as other services do."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from bench import peers

pytestmark = pytest.mark.slow
LINK = {"id": "6c8a", "address": "abc", "shorturl": "http://sho.rt/abc"}


class _Peer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    targets: ClassVar[set[str]] = set()

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/abc":
            self._answer(302, None)
        elif self.path.startswith("/yourls-api.php?signature=s3cret&format=json&action="):
            action = self.path.split("action=")[1].split("&")[0]
            if action == "shorturl":
                self.targets.add(self.path)
            self._answer(200 if action in ("stats", "url-stats", "shorturl") else 400, {"links": {"link_1": LINK}})
        else:
            is_known = self.path.split("?")[0] in ("/api/v2/links", "/api/v2/links/6c8a/stats")
            self._answer(200 if is_known and self.headers["X-API-KEY"] == "k3y" else 403, {"data": [LINK]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.targets.add(body["target"])
        self._answer(201 if self.headers["X-API-KEY"] == "k3y" else 403, LINK)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _serving() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Peer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is missing: apt-get install wrk")
def test_each_row_of_each_service_is_measured() -> None:
    with _serving() as base:
        table = list(peers.lines([peers.kutt(base, "k3y")], [peers.yourls(base, "s3cret")], turns=1, seconds=1))
    assert [line.split(" | ")[0].strip("| ") for line in table[2:]] == list(peers.ROWS)
    for line in table[2:]:
        *_, kutt, yourls, ahead = line.strip("| ").split(" | ")
        assert kutt.endswith(" ms")
        assert yourls.endswith(" ms")
        assert float(ahead) > 0
    assert len({target for target in _Peer.targets if target.startswith("https://example.com/")}) > 1
    assert len({target for target in _Peer.targets if "&url=https%3A%2F%2Fexample.com%2F" in target}) > 1


def test_an_invalid_key_is_reported() -> None:
    with _serving() as base, pytest.raises(OSError, match="403"):
        peers.kutt(base, "wrong")
