"""python -m bench [REQUEST...]: compare the throughput with that of a Flask application that
returns a constant.

Both are measured alternately, so that the ratio depends little on the machine and on its load. With
`--against COMMIT`, compare this working tree with another commit instead.
"""

import argparse
import json
import statistics
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench import against, cases, data, trips
from bench.measure import Sample, Target
from bench.serve import LINKS, VISITS
from bench.servers import gunicorn, postgres
from linkmgr import create_app

ROUNDS = {1: 3, 16: 5}  # by number of connections
RESULTS = Path(__file__).with_name("results.json")
CONSTANT = "constant"
HEAD = """
Ratio: throughput divided by that of the constant, at 1 and at 16 connections. The other
columns are measured at 16. Processor time is per request.

| Request | Ratio at 1 | Ratio at 16 | Requests/s | p99 / median | Round trips | Service, µs | PostgreSQL, µs |
|---|--:|--:|--:|--:|--:|--:|--:|"""


class Result(NamedTuple):
    ratio: float
    sample: Sample


def compare(constant: Target, target: Target, connections: int) -> Result:
    """Measure the target and the constant alternately. Return the medians."""
    samples, ratios = [], []
    for _ in range(ROUNDS[connections]):
        reference, sample = constant.sample(connections), target.sample(connections)
        samples.append(sample)
        ratios.append(sample.rate / reference.rate)
    return Result(statistics.median(ratios), Sample(*map(statistics.median, zip(*samples, strict=True))))


def line(name: str, results: list[Result], round_trips: int) -> str:
    ratios = " | ".join([f"{result.ratio:.2f}" for result in results] + [""] * (len(ROUNDS) - len(results)))
    sample = results[-1].sample
    measured = f"{sample.rate:,.0f} | {sample.tail:.1f} | {round_trips} | {sample.service:.0f} | {sample.database:.0f}"
    return f"| {name} | {ratios} | {measured} |"


def run(chosen: list[str]) -> None:
    with ExitStack() as stack:
        dsn, database = stack.enter_context(postgres())
        rows = data.make(dsn, links=LINKS, visits=VISITS)
        base, service = stack.enter_context(gunicorn("app:app", **data.settings(dsn)))
        reference, reference_service = stack.enter_context(
            gunicorn("bench.reference:app", config="python:bench.reference")
        )
        constant = Target(reference, "", reference_service, database)
        app = create_app(base_url="http://localhost", **data.settings(dsn))
        targets = {CONSTANT: (constant, 0, list(ROUNDS))}
        for name, case in cases.all_cases(rows, base).items():
            target = Target(base, case.script, service, database)
            targets[name] = target, trips.count(app, case.request), [1] if case.serial else list(ROUNDS)
        print(HEAD)
        ratios = {}
        for name, (target, round_trips, connections) in targets.items():
            if not chosen or name in chosen:
                results = [compare(constant, target, number) for number in connections]
                ratios[name] = {
                    str(number): round(result.ratio, 3)
                    for number, result in zip(connections, results, strict=True)
                }
                print(line(name, results, round_trips), flush=True)
        RESULTS.write_text(json.dumps({"ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("requests", metavar="REQUEST", nargs="*", help="the rows to measure (default: all)")
    parser.add_argument("--against", metavar="COMMIT", help="compare with this commit, in alternating turns")
    parser.add_argument(
        "--turns", type=int, default=against.TURNS, help="of one second (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if arguments.against:
        against.run(arguments.against, arguments.turns, arguments.requests)
    else:
        run(arguments.requests)
