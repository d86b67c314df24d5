"""A service that is busy when a client arrives."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen


@contextmanager
def busy_at_first(base: str) -> Iterator[str]:
    """Yield the URL of a proxy that responds to the first request as nginx does while the service starts."""
    seen: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            seen.append(f"{self.command} {self.path}")
            passed = ("Authorization", "Content-Type", "Idempotency-Key")
            headers = {name: self.headers[name] for name in passed if name in self.headers}
            try:
                with urlopen(Request(base + self.path, body, headers, method=self.command)) as response:
                    status, text, wait = response.status, response.read(), ""
            except HTTPError as error:
                status, text, wait = error.code, error.read(), error.headers.get("Retry-After", "")
            if len(seen) == 1:  # the response is lost
                status, text, wait = 503, b'{"error":1,"message":"Unavailable.","code":"unavailable"}', "1"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if wait:
                self.send_header("Retry-After", wait)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = forward

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
