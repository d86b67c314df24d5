"""One fault under load, and what came of it."""

import secrets
import time
from collections import Counter
from dataclasses import dataclass

from tests.faults.load import CLIENTS, Load
from tests.faults.making import Fault
from tests.faults.stage import Stage

_BEFORE, _AFTER = 1.5, 1.0  # seconds of load around the fault
_RECOVERY = 30
_ARRIVAL = 15  # seconds that visits have until they are stored
_STORED = "SELECT url, count(*) FROM links WHERE url LIKE %(prefix)s GROUP BY url"
_CLICKS = "SELECT coalesce(sum(clicks), 0)::int FROM totals WHERE target_id = %(link)s"
_DRIFT = """
    SELECT total - (SELECT count(*) FROM links WHERE user_id = %(user_id)s)
      FROM usage
     WHERE user_id = %(user_id)s AND kind = 'links'
"""
HEAD = (
    "| fault under load | acknowledged | lost | doubled | stored, answered with an error | errors"
    " | away: writes | reads | visits | redirects | visits counted |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass
class Row:
    title: str
    acknowledged: int
    lost: int
    doubled: int
    unsure: int  # stored, though the answer was an error
    errors: Counter[int]  # by status, 0 where there was no answer
    outages: tuple[float, ...]
    led_on: int
    counted: int
    problems: list[str]

    def __str__(self) -> str:
        named = ((f"{status}" if status else "no answer", number) for status, number in sorted(self.errors.items()))
        errors = ", ".join(f"{number} x {name}" for name, number in named) or "none"
        away = " | ".join(f"{seconds:.1f} s" for seconds in self.outages)
        counts = f"{self.acknowledged} | {self.lost} | {self.doubled} | {self.unsure}"
        return f"| {self.title} | {counts} | {errors} | {away} | {self.led_on} | {self.counted} |"


def run(stage: Stage, fault: Fault) -> Row:
    tag = secrets.token_hex(8)
    link = stage.link(tag)
    load = Load(stage.base, stage.key, tag, tag)
    with load.running():
        stage.database.wait(_BEFORE)
        fault.make(stage)
        made = time.monotonic()
        recovered = stage.database.until(lambda: load.all_succeeded_since(made), _RECOVERY)
        stage.database.wait(_AFTER)
    stage.database.until(stage.database.asks, _RECOVERY)
    problems = _problems(load, fault) + ([] if recovered else ["it did not recover"])
    return _judged(stage, fault.title, load, link, problems)


def _problems(load: Load, fault: Fault) -> list[str]:
    found = []
    for answer in load.answers:
        if answer.fault and (answer.status or not fault.drops):
            found.append(f"{answer.kind}: {answer.fault}")
        elif not answer.succeeded and answer.kind in fault.unharmed:
            found.append(f"{answer.kind} must not notice it: the status is {answer.status}")
    return [f"{number} x {problem}" for problem, number in Counter(found).items()]


def _judged(stage: Stage, title: str, load: Load, link: int, problems: list[str]) -> Row:
    acknowledged = {answer.url for answer in load.answers if answer.url and answer.succeeded}
    stored = dict(stage.database.ask(_STORED, prefix=f"https://example.com/{load.tag}/%"))
    visits = [answer for answer in load.answers if answer.kind == "visits"]
    led_on = sum(answer.succeeded for answer in visits)
    counted = _counted(stage, link, led_on)
    [(drift,)] = stage.database.ask(_DRIFT, user_id=stage.user_id)
    row = Row(
        title,
        acknowledged=len(acknowledged),
        lost=len(acknowledged - stored.keys()),
        doubled=sum(number > 1 for number in stored.values()),
        unsure=len(stored.keys() - acknowledged),
        errors=Counter(answer.status for answer in load.answers if not answer.succeeded),
        outages=tuple(load.outage(kind) for kind in CLIENTS),
        led_on=led_on,
        counted=counted,
        problems=problems,
    )
    row.problems += [f"{row.lost} lost"] * bool(row.lost) + [f"{row.doubled} doubled"] * bool(row.doubled)
    row.problems += [f"the kept total is off by {drift}"] * bool(drift)
    # A visitor whose worker was killed may have been counted without an answer.
    unanswered = sum(not answer.status for answer in visits)
    row.problems += [f"{led_on - counted} visits lost"] * (counted < led_on)
    row.problems += [f"{counted - led_on} visits more than redirects"] * (counted > led_on + unanswered)
    return row


def _counted(stage: Stage, link: int, expected: int) -> int:
    """Return the number of stored visits, once all have arrived and no more come."""

    def clicks() -> int:
        [(number,)] = stage.database.ask(_CLICKS, link=link)
        return int(number)

    stage.database.until(lambda: clicks() >= expected, _ARRIVAL)
    stage.database.wait(_AFTER)
    return clicks()
