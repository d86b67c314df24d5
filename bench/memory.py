"""Measure the memory of the service's workers after many requests and after a list of many
users."""

from pathlib import Path
from urllib.request import Request, urlopen

from bench import cases, data
from bench.measure import wrk

REQUESTS, USERS = 200_000, 200_000
_SECONDS = 5  # per run of wrk
_MIXED = ("account", cases.LIST, cases.READ, cases.REDIRECT, "QR image, rendered")
HEAD = """
| After | Memory of all workers |
|---|--:|"""


def _resident(service: int) -> float:
    """Return the resident memory of all workers in MiB."""
    workers = Path(f"/proc/{service}/task/{service}/children").read_text().split()
    pages = sum(int(Path(f"/proc/{worker}/statm").read_text().split()[1]) for worker in workers)
    return round(pages * 4096 / 2**20, 1)


def _after_requests(base: str, service: int, rows: data.Data) -> dict[str, float]:
    mixed = [case for name, case in cases.all_cases(rows, base).items() if name in _MIXED]
    requests, memory = 0, {}
    for quarter in range(1, 5):
        goal = REQUESTS * quarter // 4
        while requests < goal:
            requests += sum(wrk(base, case.script, 1 if case.serial else 16, _SECONDS)[0] for case in mixed)
        memory[f"{goal:,} requests"] = _resident(service)
    return memory


def _after_users(base: str, service: int, rows: data.Data) -> dict[str, float]:
    data.add_users(rows, USERS)
    request = Request(f"{base}/api/users", headers={"Authorization": f"Bearer {rows.key}"})
    length = 0
    with urlopen(request) as response:
        while part := response.read(2**20):
            length += len(part)
    return {f"a list of {USERS:,} users ({length // 2**20} MiB)": _resident(service)}


def measure(base: str, service: int, rows: data.Data) -> dict[str, float]:
    """Return the memory of all workers in MiB after each step."""
    memory = _after_requests(base, service, rows) | _after_users(base, service, rows)
    print(HEAD)
    for step, resident in memory.items():
        print(f"| {step} | {resident:.1f} MiB |")
    return memory
