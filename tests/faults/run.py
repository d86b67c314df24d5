"""Run one fault under load, and check for losses and duplicates."""

import secrets
import time
from collections import Counter
from dataclasses import dataclass

from tests.faults.deployment import Deployment
from tests.faults.injection import Fault
from tests.faults.load import CLIENTS, Load

_BEFORE, _AFTER = 1.5, 1.0  # seconds of load before and after the fault
_MAX_RECOVERY = 60  # seconds
_MAX_DELAY = 60  # seconds until visits are stored
_STORED = "SELECT url, count(*) FROM links WHERE url LIKE %(prefix)s GROUP BY url"
_CLICKS = "SELECT coalesce(sum(clicks), 0)::int FROM totals WHERE tracked_id = %(link)s"
# The link's clicks, its statistics, its rollups and its visits.
_NUMBERS = """
    SELECT clicks,
           (SELECT coalesce(sum(visits), 0)::bigint FROM tracked_rollups r
             WHERE r.tracked_id = t.tracked_id AND unit = 'all' AND NOT bot),
           (SELECT coalesce(sum(visits), 0)::bigint
              FROM tracked_counts(ARRAY[t.tracked_id], '{""}', '-infinity', 'infinity', '{}', '{f}')),
           (SELECT count(*) FROM visits v WHERE v.tracked_id = t.tracked_id AND NOT bot)
      FROM totals t
     WHERE tracked_id = %(link)s
"""
_DRIFT = """
    SELECT total - (SELECT count(*) FROM links WHERE user_id = %(user_id)s)
      FROM usage
     WHERE user_id = %(user_id)s AND counted = 'links'
"""
HEAD = (
    "| Fault | Acknowledged writes | Replayed | Lost | Duplicated | Stored despite an error | Errors"
    " | Outage: writes | Reads | Visits | Redirects | Visits counted |"
    "\n|---|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|"
)


@dataclass
class Row:
    title: str
    acknowledged: int
    replayed: int  # acknowledged with the stored answer to an earlier request
    lost: int
    duplicated: int
    unacknowledged: int  # stored, although all responses were errors
    errors: Counter[int]  # by status, or 0 if there was no response
    outages: tuple[float, ...]
    redirects: int
    counted: int
    problems: list[str]

    def __str__(self) -> str:
        errors = ", ".join(f"{n} x {status or 'no response'}" for status, n in sorted(self.errors.items())) or "none"
        outages = " | ".join(f"{seconds:.1f} s" for seconds in self.outages)
        counts = f"{self.acknowledged} | {self.replayed} | {self.lost} | {self.duplicated} | {self.unacknowledged}"
        return f"| {self.title} | {counts} | {errors} | {outages} | {self.redirects} | {self.counted} |"


def run(deployment: Deployment, fault: Fault) -> Row:
    tag = secrets.token_hex(8)
    link = deployment.link(tag)
    load = Load(deployment.base, deployment.key, tag, tag, is_idle=fault.is_idle)
    with load.running():
        deployment.database.wait(_BEFORE)
        fault.inject(deployment)
        injected = time.monotonic()
        recovered = deployment.database.until(lambda: load.all_succeeded_since(injected), _MAX_RECOVERY)
        deployment.database.wait(_AFTER)
    deployment.database.until(deployment.database.is_available, _MAX_RECOVERY)
    problems = _problems(load, fault) + ([] if recovered else ["it did not recover"])
    return _check(deployment, fault.title, load, link, problems)


def _problems(load: Load, fault: Fault) -> list[str]:
    problems = []
    for response in load.responses:
        if response.fault and (response.status or not fault.drops):
            problems.append(f"{response.kind}: {response.fault}")
        elif not response.succeeded and response.kind in fault.unaffected:
            problems.append(f"{response.kind} must not be affected: the status is {response.status}")
    return [f"{number} x {problem}" for problem, number in Counter(problems).items()]


def _check(deployment: Deployment, title: str, load: Load, link: int, problems: list[str]) -> Row:
    acknowledged = {response.url for response in load.responses if response.url and response.succeeded}
    stored = dict(deployment.database.query(_STORED, prefix=f"https://example.com/{load.tag}/%"))
    visits = [response for response in load.responses if response.kind == "visits"]
    redirects = sum(response.succeeded for response in visits)
    counted = _counted(deployment, link, redirects)
    [(drift,)] = deployment.database.query(_DRIFT, user_id=deployment.user_id)
    row = Row(
        title,
        acknowledged=len(acknowledged),
        replayed=sum(response.replayed for response in load.responses),
        lost=len(acknowledged - stored.keys()),
        duplicated=sum(number > 1 for number in stored.values()),
        unacknowledged=len(stored.keys() - acknowledged),
        errors=Counter(response.status for response in load.responses if not response.succeeded),
        outages=tuple(load.outage(kind) for kind in CLIENTS),
        redirects=redirects,
        counted=counted,
        problems=problems,
    )
    row.problems += [f"{row.lost} writes lost"] * bool(row.lost)
    row.problems += [f"{row.duplicated} writes duplicated"] * bool(row.duplicated)
    row.problems += [f"{row.unacknowledged} writes stored despite an error"] * bool(row.unacknowledged)
    row.problems += [f"the link counter of the user is off by {drift}"] * bool(drift)
    for numbers in deployment.database.query(_NUMBERS, link=link):
        row.problems += [f"clicks, statistics, rollups and visits differ: {numbers}"] * (len(set(numbers)) > 1)
    # A visit may be counted although the worker was killed before it responded.
    without_response = sum(not response.status for response in visits)
    row.problems += [f"{redirects - counted} visits lost"] * (counted < redirects)
    row.problems += [f"{counted - redirects} visits more than redirects"] * (counted > redirects + without_response)
    return row


def _counted(deployment: Deployment, link: int, expected: int) -> int:
    """Wait until all visits are stored, and return their number."""

    def clicks() -> int:
        [(number,)] = deployment.database.query(_CLICKS, link=link)
        return int(number)

    deployment.database.until(lambda: clicks() >= expected, _MAX_DELAY)
    deployment.database.wait(_AFTER)
    return clicks()
