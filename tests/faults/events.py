"""Events during faults: workers are killed while a receiver fails, and every event must arrive at least once."""

import os
import signal
import time
from dataclasses import dataclass

from tests.faults.deployment import TARGET, Deployment, answer
from tests.support.receivers import Receiver, receiving

HEAD = "| Events | Fault | Delivered | Repeated | Lost | Seconds |\n|--:|---|--:|--:|--:|--:|"
NUMBER = 10_000
_FAILS = 4  # seconds
_KILLS = 6
_MAX_WAIT = 240
_ADD = """
    INSERT INTO links (user_id, alias, url)
    SELECT %(user_id)s, 'event-' || %(user_id)s || '-' || n, %(url)s FROM generate_series(1, %(number)s) n
    RETURNING id
"""


@dataclass
class Row:
    title: str
    ids: set[int]
    received: list[int]
    seconds: float

    @property
    def lost(self) -> int:
        return len(self.ids - set(self.received))

    @property
    def problems(self) -> list[str]:
        return [f"{self.lost} events were lost"] if self.lost else []

    def __str__(self) -> str:
        repeated = len(self.received) - len(set(self.received))
        counts = f"{len(set(self.received)):,} | {repeated:,} | {self.lost:,} | {self.seconds:.0f}"
        return f"| {len(self.ids):,} | {self.title} | {counts} |"


def _ids(receiver: Receiver) -> list[int]:
    return [delivery.json["data"]["id"] for delivery in list(receiver.received)]


def run(target: Deployment, *, kills: bool) -> Row:
    """Add links with one statement and wait for their events. With `kills`, the receiver fails at first, and workers
    are killed while they deliver. The service must allow webhooks on loopback."""
    database = target.database
    with receiving() as receiver:
        hook = {"name": "Faults", "url": receiver.url, "events": ["link.created"]}
        answer(target, "POST", "/api/webhooks", hook)
        failed: list[int] = []
        if kills:
            receiver.status = 503
        began = time.monotonic()
        ids = {link_id for (link_id,) in database.query(_ADD, user_id=target.user_id, url=TARGET, number=NUMBER)}
        if kills:
            database.wait(_FAILS)
            failed = _ids(receiver)
            receiver.status = 200
            for number in range(1, _KILLS + 1):
                share = NUMBER * number // (_KILLS + 1)
                database.until(lambda share=share: len(receiver.received) - len(failed) > share, 30)  # type: ignore[misc]
                os.kill(min(target.workers()), signal.SIGKILL)
        database.until(lambda: ids <= set(_ids(receiver)[len(failed) :]), _MAX_WAIT)
        title = "the receiver fails for 4 s, workers are killed (-9), 6 times" if kills else "none"
        return Row(title, ids, _ids(receiver)[len(failed) :], time.monotonic() - began)
