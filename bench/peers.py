"""python -m bench.peers: compare the throughput with that of other services.

They must be running, with links, and without rate limits. Their addresses and keys are options, or
the environment variables KUTT_URL, KUTT_KEY, YOURLS_URL and YOURLS_SIGNATURE. The services are
measured in alternating turns at 16 connections. This creates links at each of them.
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from bench import cases, data
from bench.data import Data
from bench.measure import Load, Refused, wrk
from bench.serve import LINKS, VISITS
from bench.servers import gunicorn, postgres

CONNECTIONS, SECONDS, TURNS = 16, 3, 3
ROWS = (cases.LIST, cases.READ, cases.CREATE, cases.REDIRECT)


class Service(NamedTuple):
    name: str
    base: str
    scripts: dict[str, str]  # for wrk, by row


def _read(url: str, headers: dict[str, str]) -> Any:
    with urlopen(Request(url, headers=headers)) as response:
        return json.load(response)


def kutt(base: str, key: str) -> Service:
    headers = {"X-API-KEY": key}
    links = _read(f"{base}/api/v2/links?limit=1", headers)["data"]
    if not links:
        raise SystemExit(f"{base} has no links: create some")
    return Service(
        "Kutt",
        base,
        {
            cases.LIST: cases.get("/api/v2/links?limit=15", headers),
            cases.READ: cases.get(f"/api/v2/links/{links[0]['id']}/stats", headers),
            cases.CREATE: cases.post("/api/v2/links", '{"target": "https://example.com/%x/%d"}', headers),
            cases.REDIRECT: cases.get(f"/{links[0]['address']}", {}),
        },
    )


def yourls(base: str, signature: str) -> Service:
    api = f"/yourls-api.php?signature={signature}&format=json&action"
    links = _read(f"{base}{api}=stats&filter=last&limit=1", {}).get("links")
    if not links:
        raise SystemExit(f"{base} has no links: create some")
    keyword = urlsplit(links["link_1"]["shorturl"]).path.rsplit("/", 1)[1]
    url = "https%%3A%%2F%%2Fexample.com%%2F%x%%2F%d"
    return Service(
        "YOURLS",
        base,
        {
            cases.LIST: cases.get(f"{api}=stats&filter=last&limit=15", {}),
            cases.READ: cases.get(f"{api}=url-stats&shorturl={keyword}", {}),
            cases.CREATE: cases.numbered("GET", f"{api}=shorturl&url={url}", "", {}),
            cases.REDIRECT: cases.get(f"/{keyword}", {}),
        },
    )


def _own(base: str, rows: Data) -> list[Service]:
    """Return this service with users within the limits of their plan, and with one without limits,
    as the others have none."""
    requests = cases.all_cases(rows, base)
    return [
        Service(f"linkmgr{suffix}", base, {row: requests[row + suffix].script for row in ROWS})
        for suffix in ("", cases.WITHOUT_LIMITS)
    ]


def _sample(service: Service, row: str, seconds: int) -> Load | str:
    try:
        return wrk(service.base, service.scripts[row], CONNECTIONS, seconds)
    except Refused as error:
        return str(error).removeprefix(f"{service.base}: ")


def _cell(loads: list[Load | str]) -> tuple[float, str]:
    """Return the median of the requests per second, and a cell of the table."""
    complete = [load for load in loads if isinstance(load, Load)]
    if not complete:
        return 0, str(loads[-1])
    rate = statistics.median(load.requests / load.seconds for load in complete)
    refused = f" ({len(loads) - len(complete)} turns refused)" if len(complete) < len(loads) else ""
    return rate, f"{rate:,.0f}, {statistics.median(load.p99 for load in complete):.0f} ms{refused}"


def lines(
    own: list[Service], peers: list[Service], *, turns: int = TURNS, seconds: int = SECONDS
) -> Iterator[str]:
    """Measure the services in alternating turns. Yield the lines of a table."""
    services = own + peers
    relative = [f"{service.name}, relative to the fastest peer" for service in own]
    yield f"| Requests/s, p99 | {' | '.join([service.name for service in services] + relative)} |"
    yield "|---" * (1 + len(services) + len(relative)) + "|"
    for row in ROWS:
        loads: list[list[Load | str]] = [[] for _ in services]
        for _ in range(turns):
            for service, taken in zip(services, loads, strict=True):
                taken.append(_sample(service, row, seconds))
        rates, cells = zip(*map(_cell, loads), strict=True)
        fastest = max(rates[len(own) :])
        ratios = [f"{rate / fastest:.2f}" if fastest else "" for rate in rates[: len(own)]]
        yield f"| {row} | {' | '.join([*cells, *ratios])} |"


_PEERS: dict[str, tuple[Callable[[str, str], Service], str]] = {
    "kutt": (kutt, "key"),
    "yourls": (yourls, "signature"),
}


def _peers(options: argparse.Namespace) -> list[Service]:
    services = []
    for name, (service, secret) in _PEERS.items():
        if base := getattr(options, name):
            services.append(service(base.rstrip("/"), getattr(options, f"{name}_{secret}")))
    return services


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    for name, (_, secret) in _PEERS.items():
        parser.add_argument(f"--{name}", metavar="URL", default=os.environ.get(f"{name.upper()}_URL", ""))
        secret_name = f"{name}_{secret}"
        default = os.environ.get(secret_name.upper(), "")
        parser.add_argument(f"--{name}-{secret}", metavar=secret.upper(), default=default)
    options = parser.parse_args()
    if not options.kutt and not options.yourls:
        parser.error("name a service that is running, with --kutt or --yourls")
    return options


def run() -> None:
    services = _peers(_options())
    with ExitStack() as stack:
        dsn, _ = stack.enter_context(postgres())
        rows = data.make(dsn, links=LINKS, visits=VISITS)
        base, _ = stack.enter_context(gunicorn("app:app", **data.settings(dsn)))
        for line in lines(_own(base, rows), services):
            print(line, flush=True)


if __name__ == "__main__":
    run()
