"""Attacks by slow clients and with requests that take long, and the limits that the service must keep."""

import secrets
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from PIL import Image

from linkmgr.qr import logos
from tests.faults.beside import Monitor
from tests.faults.deployment import Deployment, answer, call
from tests.faults.load import CLIENTS, Load

SECONDS = 6  # duration of an attack
CONNECTIONS = 400
IMAGE_CLIENTS = 32
STATISTICS_CLIENTS = 30
MAX_HEALTH = 1.0  # seconds
MAX_MEMORY = 250  # MiB per worker
HEAD = (
    "| Attack | Successful requests | Failed | Longest wait: health | Writes | Reads | Visits"
    " | Memory of a worker |\n|---|--:|--:|--:|--:|--:|--:|--:|"
)


class Attack(NamedTuple):
    title: str
    inject: Callable[[Deployment], None]
    max_health: float = MAX_HEALTH
    prepare: Callable[[Deployment], None] = lambda _: None  # before others are measured


@dataclass
class Row:
    title: str
    answered: int
    failed: int
    waits: tuple[float, ...]
    memory: float
    max_health: float

    @property
    def problems(self) -> list[str]:
        health = self.waits[0]
        return (
            [f"{self.failed} requests of normal clients failed"] * bool(self.failed)
            + [f"/healthz took {health:.1f} s; the limit is {self.max_health} s"] * (health > self.max_health)
            + [f"a worker uses {self.memory:.0f} MiB; the limit is {MAX_MEMORY} MiB"] * (self.memory > MAX_MEMORY)
        )

    def __str__(self) -> str:
        waits = " | ".join(f"{seconds:.1f} s" for seconds in self.waits)
        return f"| {self.title} | {self.answered} | {self.failed} | {waits} | {self.memory:.0f} MiB |"


def run(deployment: Deployment, attack: Attack) -> Row:
    tag = secrets.token_hex(8)
    deployment.link(tag)
    attack.prepare(deployment)
    load, monitor = Load(deployment.base, deployment.key, tag, tag), Monitor(deployment)
    with load.running(), monitor.running():
        attack.inject(deployment)
    failed = sum(not response.succeeded for response in load.responses)
    waits = (monitor.max_wait, *(load.outage(kind) for kind in CLIENTS))
    return Row(attack.title, len(load.responses) - failed, failed, waits, monitor.memory, attack.max_health)


def _slow_clients(kind: str) -> Callable[[Deployment], None]:
    def attack(deployment: Deployment) -> None:
        options = ["-c", str(CONNECTIONS), "-r", "200", "-i", "2", "-l", str(SECONDS)]
        command = ["slowhttptest", kind, *options, "-u", f"{deployment.base}/static/style.css"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)

    return attack


def add_logo(deployment: Deployment) -> str:
    """Write a logo that is as large as one can be, and return its name."""
    folder = deployment.database.server.data.parent / logos.FOLDER
    folder.mkdir(exist_ok=True)
    noise = BytesIO()
    Image.effect_noise((1000, 1000), 200).save(noise, "PNG")
    (folder / "noise.png").write_bytes(noise.getvalue())
    return "noise.png"


def _request_images(deployment: Deployment) -> None:
    """Request a QR code in many sizes from each client, so that no image is in the cache."""
    code = {"type": "text", "data": "Hello", "logo": add_logo(deployment)}
    links = [str(answer(deployment, "POST", "/api/qr/add", code)["link"]) for _ in range(IMAGE_CLIENTS)]
    end = time.monotonic() + SECONDS

    def request_sizes(link: str) -> None:
        for size in range(2048, 64, -30):
            if time.monotonic() > end:
                return
            call(deployment, "GET", f"/qr/{link.rpartition('/')[2]}?size={size}")  # most: 503

    with ThreadPoolExecutor(IMAGE_CLIENTS) as clients:
        list(clients.map(request_sizes, links))


_VISITS = """
    INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os, city)
    SELECT id, now() - random() * interval '360 days', '', 'Country ' || n %% 150, '', '', '', 'City ' || n %% 997
      FROM links, generate_series(1, 3000) n
     WHERE user_id = %(user_id)s AND alias LIKE 'stats-%%'
"""
_VISITED = """
    SELECT string_agg(id::text, ',') FROM links WHERE user_id = %(user_id)s AND alias LIKE 'stats-%%'
"""


def _add_visits(deployment: Deployment) -> None:
    for number in range(100):
        deployment.link(f"stats-{secrets.token_hex(8)}-{number}")
    deployment.database.query(
        "SELECT create_partition(now() - make_interval(months => n)) FROM generate_series(0, 12) n"
    )
    deployment.database.query(_VISITS, user_id=deployment.user_id)


def _request_statistics(deployment: Deployment) -> None:
    """Count 300,000 visits of 100 links by country and city from many clients at once."""
    [(ids,)] = deployment.database.query(_VISITED, user_id=deployment.user_id)
    path = f"/api/stats?ids={ids}&by=country,city&period=12mo"
    with ThreadPoolExecutor(STATISTICS_CLIENTS) as clients:  # most get a 503
        list(clients.map(lambda _: call(deployment, "GET", path), range(STATISTICS_CLIENTS)))


STATISTICS = Attack(
    f"{STATISTICS_CLIENTS} queries of statistics over 12 months", _request_statistics, 0.5, prepare=_add_visits
)
IMAGES = Attack(f"{IMAGE_CLIENTS} clients request large images", _request_images)
SLOW = tuple(
    Attack(f"{CONNECTIONS} slow connections: {title}", _slow_clients(kind))
    for kind, title in (("-H", "headers"), ("-B", "bodies"), ("-R", "ranges"), ("-X", "reading"))
)
