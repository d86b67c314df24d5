"""The memory of the service's workers: over many requests, and while it lists many users."""

from pathlib import Path
from urllib.request import Request, urlopen

from bench import cases, data
from bench.measure import wrk

REQUESTS, USERS = 200_000, 200_000
_TURN_SECONDS = 5
_MIXED = ("account", "list of 15", "single read with statistics", "redirect with its visit", "QR image made")


def _resident(service: int) -> float:
    """MiB of all workers."""
    workers = Path(f"/proc/{service}/task/{service}/children").read_text().split()
    pages = sum(int(Path(f"/proc/{worker}/statm").read_text().split()[1]) for worker in workers)
    return round(pages * 4096 / 2**20, 1)


def _over_requests(base: str, service: int, made: data.Data) -> dict[str, float]:
    mixed = [case for name, case in cases.all_cases(made, base).items() if name in _MIXED]
    answered, found = 0, {}
    for quarter in range(1, 5):
        while answered < REQUESTS * quarter // 4:
            answered += sum(wrk(base, case.script, 1 if case.alone else 16, _TURN_SECONDS)[0] for case in mixed)
        found[f"{quarter * REQUESTS // 4} requests"] = _resident(service)
    return found


def _over_users(base: str, service: int, made: data.Data) -> dict[str, float]:
    data.add_users(made, USERS)
    request = Request(f"{base}/api/users", headers={"Authorization": f"Bearer {made.key}"})
    length = 0
    with urlopen(request) as answer:
        while part := answer.read(2**20):
            length += len(part)
    return {f"{USERS} users, {length // 2**20} MiB": _resident(service)}


def measure(base: str, service: int, made: data.Data) -> dict[str, float]:
    """MiB of all workers together after each."""
    found = _over_requests(base, service, made) | _over_users(base, service, made)
    for name, resident in found.items():
        print(f"{name:30}{resident:8.1f} MiB")
    return found
