"""python -m bench: the service as a share of a Flask application that answers a constant, in the same run."""

import json
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench import cases, data, trips
from bench.measure import Target, Turn
from bench.servers import gunicorn, postgres
from linkmgr import create_app

LINKS, VISITS = 10_000, 10_000
TURNS = {1: 3, 16: 5}  # at so many connections
RESULTS = Path(__file__).with_name("results.json")
CONSTANT = "constant"
HEAD = f"""
{"":30}{"share at connections":>18}{"requests":>9}{"round":>8}{"µs of":>10}{"µs of":>12}
{"":30}{1:9}{16:9}{"a second":>11}{"trips":>8}{"service":>10}{"PostgreSQL":>12}"""


class Measured(NamedTuple):
    ratio: float
    turn: Turn


def compare(constant: Target, target: Target, connections: int) -> Measured:
    """In alternating turns, each with the constant's beside it."""
    turns, ratios = [], []
    for _ in range(TURNS[connections]):
        reference, turn = constant.turn(connections), target.turn(connections)
        turns.append(turn)
        ratios.append(turn.rate / reference.rate)
    return Measured(statistics.median(ratios), Turn(*map(statistics.median, zip(*turns, strict=True))))


def line(name: str, found: list[Measured], round_trips: int) -> str:
    shares = "".join(f"{each.ratio:9.2f}" for each in found) + " " * 9 * (len(TURNS) - len(found))
    most = found[-1].turn
    return f"{name:30}{shares}{most.rate:11,.0f}{round_trips:8}{most.service:10.0f}{most.database:12.0f}"


def run(chosen: list[str]) -> None:
    with ExitStack() as stack:
        dsn, database = stack.enter_context(postgres())
        made = data.make(dsn, links=LINKS, visits=VISITS)
        base, service = stack.enter_context(gunicorn("app:app", **data.settings(dsn)))
        reference, constant_service = stack.enter_context(gunicorn("bench.reference:app"))
        constant = Target(reference, "", constant_service, database)
        app = create_app(base_url="http://localhost", **data.settings(dsn))
        measured = {CONSTANT: (constant, 0, list(TURNS))}
        for name, case in cases.all_cases(made, base).items():
            target = Target(base, case.script, service, database)
            measured[name] = target, trips.count(app, case.request), [1] if case.alone else list(TURNS)
        print(HEAD)
        ratios = {}
        for name, (target, round_trips, at) in measured.items():
            if not chosen or name in chosen:
                found = [compare(constant, target, connections) for connections in at]
                ratios[name] = {str(c): round(each.ratio, 3) for c, each in zip(at, found, strict=True)}
                print(line(name, found, round_trips), flush=True)
        RESULTS.write_text(json.dumps({"ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    run(sys.argv[1:])
