"""Attacks by one user, and the longest time that small requests of another user take meanwhile."""

import http.client
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from linkmgr.repository import idempotency, import_rows, outbox
from tests.faults.deployment import TARGET, Database, Deployment, register, service
from tests.support.receivers import Receiver, receiving
from tests.support.servers import resident

MAX_MEMORY = 300  # MiB per worker
MAX_WAITS = {"health": 0.5, "import": 2.0, "webhook": 2.0, "export": 2.0}  # seconds
MAX_STORED = outbox.MAX_BYTES + idempotency.MAX_BYTES + import_rows.MAX_ERROR_BYTES
TIMEOUT = 60
HEAD = (
    "| Attack by one user | Longest time: health | Import of another user | Webhook | Export | Memory of a worker"
    " | Stored |\n|---|--:|--:|--:|--:|--:|--:|"
)
_STORED = """
    SELECT (SELECT coalesce(sum(octet_length(data::text)), 0) FROM events WHERE user_id = %(user_id)s)
           + (SELECT coalesce(sum(pg_column_size(answer)), 0) FROM idempotency_keys WHERE user_id = %(user_id)s)
           + (SELECT coalesce(sum(octet_length(raw::text) + octet_length(message)), 0) FROM import_rows
               WHERE user_id = %(user_id)s AND code IS NOT NULL)
"""


class Attack(NamedTuple):
    title: str
    inject: Callable[[Deployment], object]


@dataclass
class Row:
    title: str
    waits: dict[str, float]  # the longest one of each kind, in seconds
    memory: float
    stored: float  # bytes of the attacker's events, answers and failed rows

    @property
    def problems(self) -> list[str]:
        slow = [(kind, self.waits[kind], most) for kind, most in MAX_WAITS.items() if self.waits[kind] > most]
        stored = self.stored / 2**20
        return (
            [f"{kind} took {seconds:.1f} s; the limit is {most} s" for kind, seconds, most in slow]
            + [f"a worker uses {self.memory:.0f} MiB; the limit is {MAX_MEMORY} MiB"] * (self.memory > MAX_MEMORY)
            + [f"{stored:.0f} MiB are stored; the limit is {MAX_STORED >> 20} MiB"] * (self.stored > MAX_STORED)
        )

    def __str__(self) -> str:
        waits = " | ".join(f"{self.waits[kind]:.2f} s" for kind in MAX_WAITS)
        return f"| {self.title} | {waits} | {self.memory:.0f} MiB | {self.stored / 2**20:.0f} MiB |"


def call(target: Deployment, method: str, path: str, body: object = b"", **headers: str) -> tuple[int, bytes]:
    """Send a request of the target's user. A body that is not bytes is sent as JSON."""
    head = {"Authorization": f"Bearer {target.key}"} | {name.replace("_", "-"): text for name, text in headers.items()}
    if not isinstance(body, bytes):
        head, body = head | {"Content-Type": "application/json"}, json.dumps(body).encode()
    with closing(http.client.HTTPConnection(urlsplit(target.base).netloc, timeout=TIMEOUT)) as connection:
        connection.request(method, path, body, head)
        response = connection.getresponse()
        return response.status, response.read()


def answer(target: Deployment, method: str, path: str, body: object = b"") -> Any:
    status, answer = call(target, method, path, body)
    assert status == 200, answer[:500]
    return json.loads(answer)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


class _Victim:
    """A user whose small requests are measured, while the block of `beside` runs."""

    def __init__(self, target: Deployment, receiver: Receiver) -> None:
        self.target, self.receiver = target, receiver
        self.waits = dict.fromkeys(MAX_WAITS, 0.0)
        self.memory = 0.0
        self._ended = threading.Event()
        hook = {"name": "Victim", "url": f"{receiver.url}/victim", "events": ["link.created"]}
        answer(target, "POST", "/api/webhooks", hook)
        for work in self._work().values():
            work()

    def _work(self) -> dict[str, Callable[[], object]]:
        return {"health": self._health, "import": self._import, "webhook": self._webhook, "export": self._export}

    @contextmanager
    def beside(self) -> Iterator[None]:
        with ThreadPoolExecutor() as threads:
            running = [threads.submit(self._measure, kind, work) for kind, work in self._work().items()]
            try:
                yield
            finally:
                self._ended.set()
        for each in running:
            each.result()

    def _measure(self, kind: str, work: Callable[[], object]) -> None:
        while not self._ended.wait(0.05):
            began = time.monotonic()
            work()
            self.waits[kind] = max(self.waits[kind], time.monotonic() - began)

    def _health(self) -> None:
        call(self.target, "GET", "/healthz")
        with suppress(OSError):
            self.memory = max(self.memory, *(resident(pid) for pid in self.target.workers()))

    def _import(self) -> None:
        row = f"Long URL,Title\n{TARGET}{secrets.token_hex(8)},One\n"
        new_id = answer(self.target, "POST", "/api/imports", row.encode())["id"]
        until(lambda: answer(self.target, "GET", f"/api/imports/{new_id}")["data"]["state"] == "done")

    def _webhook(self) -> None:
        link = answer(self.target, "POST", "/api/url/add", {"url": f"{TARGET}{secrets.token_hex(8)}"})["id"]
        received = self.receiver.received
        until(lambda: any(f'"id":{link},'.encode() in each.body.replace(b" ", b"") for each in received[-50:]))

    def _export(self) -> None:
        until(lambda: call(self.target, "GET", "/api/pixels/export?format=csv")[0] != 503)


def run(database: Database, attack: Attack) -> Row:
    with (
        receiving() as receiver,
        service(database, private_networks="127.0.0.0/8", bulk_rows="1000000 per minute") as own,
    ):
        user_id, key = register(database)
        victim = _Victim(Deployment(database, own.base, own.master, user_id, key), receiver)
        with victim.beside():
            attack.inject(own)
        [(stored,)] = database.query(_STORED, user_id=own.user_id)
        return Row(attack.title, victim.waits, victim.memory, float(stored))
