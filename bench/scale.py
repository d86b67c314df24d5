"""python -m bench.scale: compare a million links and visits with a thousand; measure deletes,
memory, statistics and growth."""

import json
import statistics
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
from psycopg2 import sql

from bench import cases, data, deletes, growth, memory, stats
from bench.measure import Target
from bench.servers import gunicorn, postgres

FEW, MANY = 1_000, 1_000_000
ROUNDS = 5
CONNECTIONS = 16
RESULTS = Path(__file__).with_name("scale.json")
MEASURED = tuple(row + cases.WITHOUT_LIMITS for row in (cases.LIST, cases.CREATE, cases.READ, cases.REDIRECT))
DEEP = ("page in the middle", "last page")
CURSOR = "15 in the middle of the list, by cursor"
SEARCH = "search of a part of a URL, which one link has"
HEAD = f"""
| Request | Time with {MANY:,} links and visits, relative to {FEW:,} |
|---|--:|"""
LISTS_HEAD = f"""
| Request, with {MANY:,} links | Time, relative to the list of 15 |
|---|--:|"""


def _create_database(dsn: str, name: str) -> str:
    """Create another database on the server, and return its DSN."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    connection.close()
    return urlsplit(dsn)._replace(path=f"/{name}").geturl()


def _scripts(base: str, rows: data.Data, links: int) -> dict[str, str]:
    pages = {name: cases.page(rows, links // 15 // part) for name, part in zip(DEEP, (2, 1), strict=True)}
    lists = {CURSOR: cases.behind(rows, rows.link), SEARCH: cases.search(rows, f"PAGE/{links // 7 * 5}")}
    requests = cases.all_cases(rows, base) | pages | lists
    return {name: case.script for name, case in requests.items() if name in (*MEASURED, *DEEP, *lists)}


def _ratio(base: Target, other: Target, connections: int) -> float:
    """Measure both alternately, and return the response time of the second relative to the
    first."""
    samples = [base.sample(connections).rate / other.sample(connections).rate for _ in range(ROUNDS)]
    return round(statistics.median(samples), 2)


def compare(few: dict[str, Target], many: dict[str, Target]) -> dict[str, float]:
    """Return the ratio of the response times of both services by request."""
    print(HEAD)
    ratios = {}
    for name in (*MEASURED, *DEEP):
        ratios[name] = _ratio(few[name], many[name], CONNECTIONS)
        print(f"| {name} | {ratios[name]:.2f} |", flush=True)
    return ratios


def compare_lists(many: dict[str, Target]) -> dict[str, float]:
    """Return the response times of a page in the middle, by cursor, and of a search relative to the
    first page. They are measured at one connection: a service refuses more searches than it has
    places for at once."""
    print(LISTS_HEAD)
    ratios = {}
    for name in (CURSOR, SEARCH):
        ratios[name] = _ratio(many[cases.LIST + cases.WITHOUT_LIMITS], many[name], 1)
        print(f"| {name} | {ratios[name]:.2f} |", flush=True)
    return ratios


def run() -> None:
    with ExitStack() as stack:
        dsn, database = stack.enter_context(postgres())
        targets = []
        for number in (FEW, MANY):
            print(f"Creating {number:,} links and visits ...", flush=True)
            rows = data.make(_create_database(dsn, f"bench{number}"), links=number, visits=number)
            base, service = stack.enter_context(gunicorn("app:app", **data.settings(rows.dsn)))
            scripts = _scripts(base, rows, number)
            targets.append(
                {name: Target(base, script, service, database) for name, script in scripts.items()}
            )
        results = {
            "ratios": compare(*targets),
            "lists": compare_lists(targets[1]),
            "deletes": deletes.compare(base, rows),
            "memory": memory.measure(base, service, rows),
            "statistics": stats.measure(_create_database(dsn, "bench_stats")),
            "growth": growth.measure(_create_database(dsn, "bench_growth")),
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    run()
