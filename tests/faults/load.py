"""Who uses the service while it is harmed: writers, readers of lists, and visitors of a short link."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count, pairwise
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.targets import FIREFOX

CLIENTS = {"writes": 6, "reads": 2, "visits": 2}
_PAUSE = 0.001  # of a client between its requests: the machine is not what is tried here
_MAX_WAIT = 30


class Answer(NamedTuple):
    kind: str
    at: float
    status: int  # 0: the connection was dropped
    url: str = ""  # of the link that a writer asked for
    fault: str = ""  # what is wrong with the shape of an error

    @property
    def succeeded(self) -> bool:
        return self.status in (200, 302) and not self.fault


def fault_of(kind: str, answer: http.client.HTTPResponse, body: bytes) -> str:
    """What an answer must not look like: a refusal other than 503, or one that does not say when to come again."""
    if answer.status == (302 if kind == "visits" else 200):
        return ""
    if answer.status != 503:
        return f"the status is {answer.status}: {body[:200]!r}"
    if not answer.headers.get("Retry-After", "").isdigit():
        return "there is no Retry-After"
    if kind != "visits":
        return "" if _enveloped(answer, body) else f"it is not the envelope: {body[:200]!r}"
    return ""


def _enveloped(answer: http.client.HTTPResponse, body: bytes) -> bool:
    with suppress(ValueError):
        told = json.loads(body)
        members = set(told) == {"error", "message", "code"} and told["error"] == 1
        return members and answer.headers.get_content_type() == "application/json"
    return False


class Load:
    """`with load.running(): ...`; `answers` has all that came of it."""

    def __init__(self, base: str, key: str, alias: str, tag: str) -> None:
        self.host = urlsplit(base).netloc
        self.key, self.alias, self.tag = key, alias, tag
        self.answers: list[Answer] = []
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
            self._stop.set()
            for thread in threads:
                thread.join()
            self.ended = time.monotonic()

    def all_succeeded_since(self, moment: float) -> bool:
        recent = {answer.kind for answer in list(self.answers) if answer.succeeded and answer.at > moment}
        return recent == set(CLIENTS)

    def outage(self, kind: str) -> float:
        """The longest span without a success, in seconds."""
        good = [answer.at for answer in self.answers if answer.kind == kind and answer.succeeded]
        times = [self.began, *sorted(good), self.ended]
        return max(after - before for before, after in pairwise(times))

    def _client(self, kind: str, name: str) -> None:
        with closing(http.client.HTTPConnection(self.host, timeout=_MAX_WAIT)) as connection:
            for number in count():
                url = f"https://example.com/{self.tag}/{name}-{number}" if kind == "writes" else ""
                try:
                    self._answered(connection, kind, url)
                except (OSError, http.client.HTTPException) as error:
                    connection.close()
                    self.answers.append(Answer(kind, time.monotonic(), 0, url, f"{type(error).__name__}: {error}"))
                if self._stop.wait(_PAUSE):
                    return

    def _answered(self, connection: http.client.HTTPConnection, kind: str, url: str) -> None:
        kept = connection.sock is not None
        try:
            self._send(connection, kind, url)
            answer = connection.getresponse()
        except ConnectionError:
            connection.close()
            if not kept:
                raise
            self._answered(connection, kind, url)  # it was closed while it was idle, as any server may
            return
        body = answer.read()
        self.answers.append(Answer(kind, time.monotonic(), answer.status, url, fault_of(kind, answer, body)))

    def _send(self, connection: http.client.HTTPConnection, kind: str, url: str) -> None:
        """Readers keep their connections."""
        headers = {"Authorization": f"Bearer {self.key}", "Connection": "keep-alive" if kind == "reads" else "close"}
        if kind == "writes":
            # A title, since a link of nothing but its URL is never made twice.
            body = json.dumps({"url": url, "metatitle": "A link"})
            connection.request("POST", "/api/url/add", body, headers | {"Content-Type": "application/json"})
        elif kind == "reads":
            connection.request("GET", "/api/urls?limit=5", headers=headers)
        else:
            connection.request("GET", f"/{self.alias}", headers=headers | {"User-Agent": FIREFOX})
