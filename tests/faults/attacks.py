"""Attacks by slow clients and by requests for large images, and the figures that the service stays under."""

import json
import secrets
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from linkmgr.qr import logos
from tests.faults.load import CLIENTS, Load
from tests.faults.stage import Stage

SECONDS = 6  # of an attack
CONNECTIONS = 400
DRAWERS = 32
MAX_HEALTH = 1.0  # seconds
MAX_MEMORY = 250  # MiB of each worker
HEAD = (
    "| attack under load | answered | failed | longest wait: health | writes | reads | visits"
    " | memory of a worker |\n|---|---|---|---|---|---|---|---|"
)


class Attack(NamedTuple):
    title: str
    make: Callable[[Stage], None]


@dataclass
class Row:
    title: str
    answered: int
    failed: int
    waits: tuple[float, ...]
    memory: float

    @property
    def problems(self) -> list[str]:
        health = self.waits[0]
        return (
            [f"{self.failed} requests of normal clients failed"] * bool(self.failed)
            + [f"/healthz took {health:.1f} s, at most {MAX_HEALTH} s are allowed"] * (health > MAX_HEALTH)
            + [f"a worker takes {self.memory:.0f} MiB, at most {MAX_MEMORY} are allowed"] * (self.memory > MAX_MEMORY)
        )

    def __str__(self) -> str:
        waits = " | ".join(f"{seconds:.1f} s" for seconds in self.waits)
        return f"| {self.title} | {self.answered} | {self.failed} | {waits} | {self.memory:.0f} MiB |"


class _Watch:
    """The longest response time of /healthz and the largest worker, while the block runs."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.longest = self.memory = 0.0
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            began = time.monotonic()
            with suppress(OSError), urllib.request.urlopen(f"{self.stage.base}/healthz", timeout=30) as answer:
                answer.read()
            self.longest = max(self.longest, time.monotonic() - began)
            self.memory = max(self.memory, *(_resident(pid) for pid in self.stage.workers()))


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


def run(stage: Stage, attack: Attack) -> Row:
    tag = secrets.token_hex(8)
    stage.link(tag)
    load, watch = Load(stage.base, stage.key, tag, tag), _Watch(stage)
    with load.running(), watch.running():
        attack.make(stage)
    failed = sum(not answer.succeeded for answer in load.answers)
    waits = (watch.longest, *(load.outage(kind) for kind in CLIENTS))
    return Row(attack.title, len(load.answers) - failed, failed, waits, watch.memory)


def _slowly(kind: str) -> Callable[[Stage], None]:
    def make(stage: Stage) -> None:
        options = ["-c", str(CONNECTIONS), "-r", "200", "-i", "2", "-l", str(SECONDS)]
        command = ["slowhttptest", kind, *options, "-u", f"{stage.base}/static/style.css"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)

    return make


def _add_code(stage: Stage, logo: str) -> str:
    body = json.dumps({"type": "text", "data": "Hello", "logo": logo}).encode()
    headers = {"Authorization": f"Bearer {stage.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{stage.base}/api/qr/add", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["link"]).rpartition("/")[2]


def _draw(stage: Stage) -> None:
    """Request many sizes of a code for each client, so that no image was drawn before."""
    folder = stage.database.server.data.parent / logos.FOLDER
    folder.mkdir(exist_ok=True)
    noise = BytesIO()
    Image.effect_noise((1000, 1000), 200).save(noise, "PNG")
    (folder / "noise.png").write_bytes(noise.getvalue())
    codes = [_add_code(stage, "noise.png") for _ in range(DRAWERS)]
    end = time.monotonic() + SECONDS

    def draw(code: str) -> None:
        for size in range(2048, 64, -30):
            if time.monotonic() > end:
                return
            with (
                suppress(urllib.error.HTTPError),
                urllib.request.urlopen(  # most get a 503
                    f"{stage.base}/qr/{code}?size={size}", timeout=30
                ) as answer,
            ):
                answer.read()

    clients = [threading.Thread(target=draw, args=(code,)) for code in codes]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


IMAGES = Attack(f"{DRAWERS} clients request large images", _draw)
SLOW = tuple(
    Attack(f"{CONNECTIONS} slow connections: {title}", _slowly(kind))
    for kind, title in (("-H", "headers"), ("-B", "bodies"), ("-R", "ranges"), ("-X", "reading"))
)
