"""The load during a fault: clients that add links, read lists, and visit a short link.

Each link is added under an Idempotency-Key. Its client repeats the request until it succeeds. Half
of the clients keep their connections. A request that gets no response is a failure on these too:
other clients do not repeat a POST.
"""

import http.client
import json
import select
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count, pairwise
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.support.targets import FIREFOX

CLIENTS = {"writes": 6, "reads": 2, "visits": 2}
_PAUSE = 0.01  # seconds between requests of a client, so that the machine is not overloaded
# One more client writes on these in turn. A worker that stops waits for a shorter time.
_IDLE_CONNECTIONS = 250
IDLE_SECONDS = _IDLE_CONNECTIONS * _PAUSE
_BODY_DELAY = 20  # requests that begin between a head and its body
_MAX_WAIT = 30


class Response(NamedTuple):
    kind: str
    at: float
    status: int  # or 0 if the connection was closed without a response
    url: str = ""  # of the link that a write adds
    fault: str = ""  # why an error response is not as specified
    replayed: bool = False  # the answer to an earlier request with the same key

    @property
    def succeeded(self) -> bool:
        return self.status in (200, 302) and not self.fault


def fault_of(kind: str, response: http.client.HTTPResponse, body: bytes) -> str:
    """Return what is wrong with a response, or "".

    Errors must be 503, in the format of the API, with Retry-After, or 409 while a request with the same key is running.
    """
    if response.status == (302 if kind == "visits" else 200):
        return ""
    if response.status == 409 and kind == "writes" and _is_api_error(response, body):
        return ""
    if response.status != 503:
        return f"the status is {response.status}: {body[:200]!r}"
    if not response.headers.get("Retry-After", "").isdigit():
        return "Retry-After is missing"
    if kind != "visits":
        return "" if _is_api_error(response, body) else f"it is not an error of the API: {body[:200]!r}"
    return ""


def _is_api_error(response: http.client.HTTPResponse, body: bytes) -> bool:
    with suppress(ValueError):
        error = json.loads(body)
        members = set(error) == {"error", "message", "code", "request_id", "docs"} and error["error"] == 1
        return members and response.headers.get_content_type() == "application/json"
    return False


class Load:
    """Clients that send requests during `with load.running()`. `responses` contains all responses."""

    def __init__(self, base: str, key: str, alias: str, tag: str, *, is_idle: bool = False) -> None:
        self.host, self.is_idle = urlsplit(base).netloc, is_idle
        self.key, self.alias, self.tag = key, alias, tag
        self.responses: list[Response] = []
        self.began = self.ended = 0.0
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._client, args=(kind, number), daemon=True)
            for kind, number_of in CLIENTS.items()
            for number in range(number_of)
        ]
        threads += [threading.Thread(target=self._write_slowly, daemon=True)] * self.is_idle
        self.began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.ended = time.monotonic()
            self._stop.set()
            for thread in threads:
                thread.join()

    def all_succeeded_since(self, moment: float) -> bool:
        recent = {response.kind for response in list(self.responses) if response.succeeded and response.at > moment}
        return recent == set(CLIENTS)

    def outage(self, kind: str) -> float:
        """Return the longest time without a successful request, in seconds."""
        successes = [response.at for response in self.responses if response.kind == kind and response.succeeded]
        times = [self.began, *sorted(successes), self.ended]
        return max(after - before for before, after in pairwise(times))

    def _client(self, kind: str, client: int) -> None:
        with closing(_Connection(self.host, is_kept=client % 2 == 1)) as connection:
            for number in count():
                url = self._url(f"{client}-{number}") if kind == "writes" else ""
                _exhaust(self._steps(connection, kind, url))
                if self._stop.wait(_PAUSE):
                    return

    def _write_slowly(self) -> None:
        with ExitStack() as stack:
            kept = [_Connection(self.host, is_kept=True) for _ in range(_IDLE_CONNECTIONS)]
            for connection in kept:
                stack.enter_context(closing(connection))
            writes: deque[Iterator[None]] = deque()
            for number in count():
                url = self._url(f"idle-{number}")
                writes.append(self._steps(kept[number % _IDLE_CONNECTIONS], "writes", url))
                next(writes[-1], None)  # sends the head
                if number >= _BODY_DELAY:
                    next(writes[-1 - _BODY_DELAY], None)
                if number >= 2 * _BODY_DELAY:
                    _exhaust(writes.popleft())
                if self._stop.wait(_PAUSE):
                    break
            for write in writes:
                _exhaust(write)

    def _url(self, name: str) -> str:
        return f"https://example.com/{self.tag}/{name}"

    def _steps(self, connection: "_Connection", kind: str, url: str) -> Iterator[None]:
        """Send a request, and repeat a write until it succeeds. Yield before each next part."""
        while not (yield from self._succeeds(connection, kind, url)) and self._is_repeated(kind):
            time.sleep(_PAUSE)

    def _is_repeated(self, kind: str) -> bool:
        return kind == "writes" and (self.ended == 0.0 or time.monotonic() < self.ended + _MAX_WAIT)

    def _succeeds(self, connection: "_Connection", kind: str, url: str) -> Generator[None, None, bool]:
        try:
            response = yield from self._request(connection, kind, url)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            response = Response(kind, time.monotonic(), 0, url, f"{type(error).__name__}: {error}")
        self.responses.append(response)
        return response.succeeded

    def _request(self, connection: "_Connection", kind: str, url: str) -> Generator[None, None, Response]:
        connection.close_if_ended()
        body = self._send_head(connection, kind, url)
        yield
        connection.send(body)
        yield
        response = connection.getresponse()
        fault = fault_of(kind, response, response.read())
        replayed = response.headers.get("Idempotency-Replayed") == "true"
        return Response(kind, time.monotonic(), response.status, url, fault, replayed)

    def _send_head(self, connection: "_Connection", kind: str, url: str) -> bytes:
        """Return the body."""
        headers = {"Authorization": f"Bearer {self.key}"}
        headers["Connection"] = "keep-alive" if connection.is_kept else "close"
        if kind == "writes":
            # Without a title, the service returns an existing link with the same URL.
            body = json.dumps({"url": url, "metatitle": "A link"}).encode()
            connection.putrequest("POST", "/api/url/add")
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
            headers["Idempotency-Key"] = url
        else:
            body = b""
            path = "/api/urls?limit=5" if kind == "reads" else f"/{self.alias}"
            connection.putrequest("GET", path)
            headers |= {"User-Agent": FIREFOX} if kind == "visits" else {}
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        return body


def _exhaust(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, *, is_kept: bool) -> None:
        super().__init__(host, timeout=_MAX_WAIT)
        self.is_kept = is_kept

    def close_if_ended(self) -> None:
        """Close a connection that the server has closed since the last response."""
        if self.sock and select.select([self.sock], [], [], 0)[0]:
            self.close()
