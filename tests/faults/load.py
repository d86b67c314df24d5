"""The load during a fault: clients that add links, read lists, and visit a short link.

Each link is added under an Idempotency-Key. Its client repeats the request until it succeeds.
"""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count, pairwise
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.support.targets import FIREFOX

CLIENTS = {"writes": 6, "reads": 2, "visits": 2}
_PAUSE = 0.01  # seconds between requests of a client, so that the machine is not overloaded
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

    def __init__(self, base: str, key: str, alias: str, tag: str) -> None:
        self.host = urlsplit(base).netloc
        self.key, self.alias, self.tag = key, alias, tag
        self.responses: list[Response] = []
        self.began = self.ended = 0.0
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._client, args=(kind, f"{kind}-{number}"), daemon=True)
            for kind, number_of in CLIENTS.items()
            for number in range(number_of)
        ]
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

    def _client(self, kind: str, name: str) -> None:
        with closing(http.client.HTTPConnection(self.host, timeout=_MAX_WAIT)) as connection:
            for number in count():
                url = f"https://example.com/{self.tag}/{name}-{number}" if kind == "writes" else ""
                while not self._succeeds(connection, kind, url) and self._is_repeated(kind):
                    time.sleep(_PAUSE)
                if self._stop.wait(_PAUSE):
                    return

    def _is_repeated(self, kind: str) -> bool:
        return kind == "writes" and (self.ended == 0.0 or time.monotonic() < self.ended + _MAX_WAIT)

    def _succeeds(self, connection: http.client.HTTPConnection, kind: str, url: str) -> bool:
        try:
            response = self._request(connection, kind, url)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            response = Response(kind, time.monotonic(), 0, url, f"{type(error).__name__}: {error}")
        self.responses.append(response)
        return response.succeeded

    def _request(self, connection: http.client.HTTPConnection, kind: str, url: str) -> Response:
        reused = connection.sock is not None
        try:
            self._send(connection, kind, url)
            response = connection.getresponse()
        except ConnectionError:
            connection.close()
            if not reused:
                raise
            return self._request(connection, kind, url)  # servers may close idle connections
        body = response.read()
        replayed = response.headers.get("Idempotency-Replayed") == "true"
        return Response(kind, time.monotonic(), response.status, url, fault_of(kind, response, body), replayed)

    def _send(self, connection: http.client.HTTPConnection, kind: str, url: str) -> None:
        """Send a request. Only readers keep their connections."""
        headers = {"Authorization": f"Bearer {self.key}", "Connection": "keep-alive" if kind == "reads" else "close"}
        if kind == "writes":
            # Without a title, the service returns an existing link with the same URL.
            body = json.dumps({"url": url, "metatitle": "A link"})
            headers |= {"Content-Type": "application/json", "Idempotency-Key": url}
            connection.request("POST", "/api/url/add", body, headers)
        elif kind == "reads":
            connection.request("GET", "/api/urls?limit=5", headers=headers)
        else:
            connection.request("GET", f"/{self.alias}", headers=headers | {"User-Agent": FIREFOX})
