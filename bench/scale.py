"""python -m bench.scale: the time of a request with a million links and visits, as a multiple of its time with a
thousand; the time of a delete that leaves many rows behind; and the memory of the service."""

import json
import statistics
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
from psycopg2 import sql

from bench import cases, data, deletes, memory
from bench.measure import Target
from bench.servers import gunicorn, postgres

FEW, MANY = 1_000, 1_000_000
TURNS = 5
CONNECTIONS = 16
RESULTS = Path(__file__).with_name("scale.json")
MEASURED = ("list of 15", "create a link", "single read with statistics", "redirect with its visit")
DEEP = ("page in the middle", "last page")


def _database(dsn: str, name: str) -> str:
    """A further database of the server."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    connection.close()
    return urlsplit(dsn)._replace(path=f"/{name}").geturl()


def _scripts(base: str, made: data.Data, links: int) -> dict[str, str]:
    found = cases.all_cases(made, base)
    pages = {name: cases.page(made, links // 15 // part) for name, part in zip(DEEP, (2, 1), strict=True)}
    return {name: case.script for name, case in (found | pages).items() if name in MEASURED + DEEP}


def compare(few: dict[str, Target], many: dict[str, Target]) -> dict[str, float]:
    """How many times as long each takes, in alternating turns."""
    ratios = {}
    for name, target in few.items():
        turns = [target.turn(CONNECTIONS).rate / many[name].turn(CONNECTIONS).rate for _ in range(TURNS)]
        ratios[name] = round(statistics.median(turns), 2)
        print(f"{name:30}{ratios[name]:8.2f}", flush=True)
    return ratios


def run() -> None:
    with ExitStack() as stack:
        dsn, database = stack.enter_context(postgres())
        targets = []
        for rows in (FEW, MANY):
            print(f"making {rows:,} links and visits ...", flush=True)
            made = data.make(_database(dsn, f"bench{rows}"), links=rows, visits=rows)
            base, service = stack.enter_context(gunicorn("app:app", **data.settings(made.dsn)))
            scripts = _scripts(base, made, rows)
            targets.append({name: Target(base, script, service, database) for name, script in scripts.items()})
        print(f"\n{'':30}{'times as long':>15}")
        found = {
            "ratios": compare(*targets),
            "deletes": deletes.compare(base, made),
            "memory": memory.measure(base, service, made),
        }
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    run()
