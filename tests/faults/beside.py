"""Attacks by one user, and the longest time that small requests of another user take meanwhile."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from linkmgr.core.web import idempotency_store
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.webhooks import outbox
from linkmgr.qr import logos
from tests.faults.deployment import TARGET, TIMEOUT, Database, Deployment, answer, call, register, service
from tests.support.receivers import Receiver, receiving
from tests.support.servers import resident

PRIVATE = {"private_networks": "127.0.0.0/8", "private_networks_for_all": "1"}
MAX_MEMORY = 300  # MiB per worker
MAX_WAITS = {"health": 0.5, "import": 2.0, "webhook": 2.0, "export": 2.0}  # seconds
MAX_STORED = outbox.MAX_BYTES + idempotency_store.MAX_BYTES + import_rows.MAX_ERROR_BYTES + (logos.MAX_TOTAL << 20)
HEAD = (
    "| Attack by one user | Longest time: health | Import of another user | Webhook | Export | Memory of a worker"
    " | Stored | Rows of imports |\n|---|--:|--:|--:|--:|--:|--:|--:|"
)
_STORED = """
    SELECT (SELECT coalesce(sum(octet_length(data::text)), 0) FROM events WHERE user_id = %(user_id)s)
           + (SELECT coalesce(sum(pg_column_size(response)), 0) FROM idempotency_keys WHERE user_id = %(user_id)s)
           + (SELECT coalesce(sum(octet_length(raw::text) + octet_length(message)), 0) FROM import_rows
               WHERE user_id = %(user_id)s AND code IS NOT NULL)
           + (SELECT coalesce(sum(octet_length(image)), 0) FROM logos WHERE user_id = %(user_id)s)
"""


class Attack(NamedTuple):
    title: str
    inject: Callable[[Deployment], object]
    max_stored: int = 64 << 20  # bytes, of an attack that takes less than a minute
    max_rows: int = 512 << 20  # bytes by which the table of rows of imports grows meanwhile


@dataclass
class Row:
    title: str
    waits: dict[str, float]  # the longest one of each kind, in seconds
    memory: float
    stored: float  # bytes of the attacker's events, answers, failed rows and logos
    max_stored: int
    rows: float  # bytes by which the table of rows of imports has grown, at its largest
    max_rows: int

    @property
    def problems(self) -> list[str]:
        slow = [(kind, self.waits[kind], most) for kind, most in MAX_WAITS.items() if self.waits[kind] > most]
        stored, rows = self.stored / 2**20, self.rows / 2**20
        return (
            [f"{kind} took {seconds:.1f} s; the limit is {most} s" for kind, seconds, most in slow]
            + [f"a worker uses {self.memory:.0f} MiB; the limit is {MAX_MEMORY} MiB"] * (self.memory > MAX_MEMORY)
            + [f"{stored:.0f} MiB are stored; the limit is {self.max_stored >> 20} MiB"]
            * (self.stored > self.max_stored)
            + [f"rows of imports take {rows:.0f} MiB; the limit is {self.max_rows >> 20} MiB"]
            * (self.rows > self.max_rows)
        )

    def __str__(self) -> str:
        waits = " | ".join(f"{self.waits[kind]:.2f} s" for kind in MAX_WAITS)
        sizes = (self.memory, self.stored / 2**20, self.rows / 2**20)
        return f"| {self.title} | {waits} | {' | '.join(f'{size:.0f} MiB' for size in sizes)} |"


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


class Monitor:
    """Measure the longest response time of /healthz and the memory of the largest worker, while the block runs."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.max_wait = self.memory = 0.0
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._measure)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _measure(self) -> None:
        while not self._ended.wait(0.05):
            self._look()

    def _look(self) -> None:
        began = time.monotonic()
        with suppress(OSError):
            call(self.deployment, "GET", "/healthz")
        self.max_wait = max(self.max_wait, time.monotonic() - began)
        self.memory = max(self.memory, *(resident(pid) for pid in self.deployment.workers()))


class _RowsMonitor(Monitor):
    """Measure by how much the table of rows of imports grows, too."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(deployment)
        self.rows, self._before = 0, self._size()

    def _size(self) -> int:
        [(size,)] = self.deployment.database.query("SELECT pg_total_relation_size('import_rows')")
        return int(size)

    def _look(self) -> None:
        super()._look()
        self.rows = max(self.rows, self._size() - self._before)


class _Victim:
    """A user whose small requests are measured, while the block of `beside` runs."""

    def __init__(self, target: Deployment, receiver: Receiver) -> None:
        self.target, self.receiver = target, receiver
        self.waits = dict.fromkeys(MAX_WAITS, 0.0)
        self._ended = threading.Event()
        hook = {"name": "Victim", "url": f"{receiver.url}/victim", "events": ["link.created"]}
        answer(target, "POST", "/api/webhooks", hook)
        for work in self._work().values():
            work()

    def _work(self) -> dict[str, Callable[[], object]]:
        return {"import": self._import, "webhook": self._webhook, "export": self._export}

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
        service(database, **PRIVATE, bulk_rows="1000000 per minute") as own,
    ):
        user_id, key = register(database)
        victim = _Victim(Deployment(database, own.base, own.master, user_id, key), receiver)
        monitor = _RowsMonitor(own)
        with victim.beside(), monitor.running():
            attack.inject(own)
        [(stored,)] = database.query(_STORED, user_id=own.user_id)
        waits = victim.waits | {"health": monitor.max_wait}
        sizes = (monitor.memory, float(stored), attack.max_stored, monitor.rows, attack.max_rows)
        return Row(attack.title, waits, *sizes)
