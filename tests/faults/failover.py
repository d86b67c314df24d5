"""python -m tests.faults.failover [FAULT ...]: inject faults into a cluster under load, and print outages and losses.

Two services use the cluster: the first one with the URL of all nodes and a standby for reads, the second one through
haproxy without a standby. Exits with 1 if something was lost or doubled, or if an outage is longer than promised.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import pairwise
from typing import NamedTuple

import psycopg2

from linkmgr.core.database import deadlines
from linkmgr.core.database.binaries import is_reachable
from linkmgr.core.database.deadlines import Deadline
from linkmgr.core.database.folders import owner
from tests.faults import cluster
from tests.faults.beside import Monitor
from tests.faults.cluster import Cluster, Node
from tests.faults.deployment import Deployment, service
from tests.faults.injection import Fault
from tests.faults.run import Row, run
from tests.support.servers import ROOT
from tests.support.targets import wait_until

_HOLD = 5  # seconds that a fault lasts after the failover
_LEASE = 25  # seconds, more than Patroni's ttl
_HANG = 15
_TIMEOUT = 2
_MAX_FAILOVER = 90
_MAX_REDIRECTS, _MAX_HEALTH, _MAX_WRITES = 1.0, 2.5, 5.0  # seconds; those of writes after the failover
_COMMIT = "SELECT pg_logical_emit_message(true, 'probe', '') FROM pg_database WHERE datname = current_database()"
_HEAD = (
    "| Fault | Failover | Outage: writes | Redirects | Longest time of /healthz | Acknowledged writes | Redirects"
    " | Lost | Doubled |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)

Inject = Callable[[Cluster, list[float]], None]


@contextmanager
def probing(target: Cluster) -> Iterator[list[float]]:
    """Commit on each node whenever it is the primary. Yield the times of the commits."""
    times, ended = [time.monotonic()], threading.Event()

    def probe(node: Node) -> None:
        while not ended.wait(0.1):
            with suppress(psycopg2.Error), closing(psycopg2.connect(node.dsn)) as connection:
                connection.autocommit = True
                while not ended.wait(0.05):
                    with connection.cursor() as cursor, Deadline(connection, _TIMEOUT):
                        cursor.execute(_COMMIT)
                    times.append(time.monotonic())

    deadlines.start()
    with ThreadPoolExecutor() as threads:
        probes = [threads.submit(probe, node) for node in target.nodes]
        try:
            yield times
        finally:
            ended.set()
    for each in probes:
        each.result()


def _wait(commits: list[float]) -> None:
    """Wait for a commit that began after now."""
    now = time.monotonic() + _TIMEOUT
    wait_until(lambda: commits[-1] > now, _MAX_FAILOVER)


def _lasting(role: str, begin: Callable[[Node], None], end: Callable[[Node], None]) -> Inject:
    def inject(target: Cluster, commits: list[float]) -> None:
        node = target.roles()[role]
        begin(node)
        _wait(commits)
        time.sleep(_HOLD)
        end(node)
        time.sleep(_HOLD)

    return inject


def _freeze(role: str) -> Inject:
    return _lasting(role, lambda node: node.signal(signal.SIGSTOP), lambda node: node.signal(signal.SIGCONT))


def _hang(*roles: str) -> Inject:
    """Freeze so many nodes that none commits meanwhile."""

    def inject(target: Cluster, _commits: list[float]) -> None:
        found = target.roles()
        nodes = [found[role] for role in roles]
        for node in nodes:
            node.signal(signal.SIGSTOP)
        time.sleep(_HANG)
        for node in nodes:
            node.signal(signal.SIGCONT)
        time.sleep(_HOLD)

    return inject


def _switch_over(target: Cluster, _commits: list[float]) -> None:
    target.roles()["leader"].switch_over()


def _kill(target: Cluster, commits: list[float]) -> None:
    os.kill(target.roles()["leader"].postmaster(), signal.SIGKILL)
    _wait(commits)


def _stop_etcd(target: Cluster, _commits: list[float]) -> None:
    for node in target.nodes[:2]:
        node.kill_etcd()
    time.sleep(_LEASE)


_CUT_OFF = _lasting("leader", lambda node: node.connect("down"), lambda node: node.connect("up"))
FAULTS: dict[str, tuple[str, Inject]] = {
    "switchover": ("planned switchover", _switch_over),
    "kill": ("PostgreSQL of the primary is killed (-9)", _kill),
    "node": ("all processes of the primary's node are killed (-9)", _lasting("leader", Node.kill, Node.start)),
    "frozen": ("the primary's node is frozen, then goes on", _freeze("leader")),
    "partition": ("the primary's node is cut off, then connected", _CUT_OFF),
    "replica": ("the synchronous standby's node is frozen, then goes on", _freeze("sync_standby")),
    "standbys": (f"both standbys' nodes are frozen for {_HANG} s", _hang("sync_standby", "replica")),
    "all": (f"all nodes are frozen for {_HANG} s", _hang("sync_standby", "replica", "leader")),
    "etcd": (f"etcd has no majority for {_LEASE} s", _stop_etcd),
}


_REDIRECTS = {"all": 2.0}  # neither the primary nor the standby responds


class Result(NamedTuple):
    title: str
    max_redirects: float
    failover: float
    health: float
    rows: list[Row]

    @property
    def outages(self) -> tuple[float, float]:
        writes, _, redirects = (max(each) for each in zip(*(row.outages for row in self.rows), strict=True))
        return writes, redirects

    @property
    def problems(self) -> list[str]:
        writes, redirects = self.outages
        found = [problem for row in self.rows for problem in row.problems]
        found += [f"no writes for {writes:.1f} s"] * (writes > self.failover + _MAX_WRITES)
        found += [f"no redirects for {redirects:.1f} s"] * (redirects > self.max_redirects)
        return found + [f"/healthz took {self.health:.1f} s"] * (self.health > _MAX_HEALTH)

    def __str__(self) -> str:
        seconds = " | ".join(f"{each:.1f} s" for each in (self.failover, *self.outages, self.health))
        sums = (
            sum(row.acknowledged for row in self.rows),
            sum(row.redirects for row in self.rows),
            sum(row.lost + max(0, row.redirects - row.counted) for row in self.rows),
            sum(row.duplicated + max(0, row.counted - row.redirects) for row in self.rows),
        )
        return f"| {self.title} | {seconds} | {' | '.join(f'{each:,}' for each in sums)} |"


def _run(target: Cluster, services: list[Deployment], name: str) -> Result:
    title, inject = FAULTS[name]
    ended = threading.Event()
    monitors = [Monitor(each) for each in services]

    def inject_and_mend(_deployment: Deployment) -> None:
        inject(target, commits)
        target.start()

    with probing(target) as commits, monitors[0].running(), monitors[1].running(), ThreadPoolExecutor() as threads:
        first = threads.submit(run, services[0], Fault(title, inject_and_mend))
        second = threads.submit(run, services[1], Fault(title, lambda _: ended.wait()))
        first.add_done_callback(lambda _: ended.set())
        rows = [first.result(), second.result()]
        failover = max(after - before for before, after in pairwise([*commits, time.monotonic()]))
    max_redirects = _REDIRECTS.get(name, _MAX_REDIRECTS)
    return Result(title, max_redirects, failover, max(monitor.max_wait for monitor in monitors), rows)


def _missing() -> str:
    """Return what this machine lacks, or ""."""
    for program, package in (("etcd", "etcd-server"), ("haproxy", "haproxy"), ("ip", "iproute2")):
        if not shutil.which(program):
            return f"{program} is missing: apt-get install {package}"
    if os.geteuid():
        return "only root may make network namespaces"
    if not cluster.PATRONI.exists():
        return "Patroni is missing: run make failover"
    user = owner(ROOT)
    if not all(is_reachable(each, user) for each in (cluster.PATRONI, cluster.PATRONI.with_name("python"))):
        return f"the user {user.pw_name} may not enter {cluster.PATRONI.parent}"
    return ""


def main(names: list[str]) -> int:
    os.environ["PATH"] += ":/usr/sbin"  # Debian's haproxy
    if missing := _missing():
        print(f"Skipped: {missing}.", file=sys.stderr)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster.enter_network("tests.faults.failover", names)
    problems: list[str] = []
    urls = (
        {"replica_url": "postgresql://postgres:failover@127.0.0.1:6433/linkmgr"},
        {"database_url": "postgresql://postgres:failover@127.0.0.1:6432/linkmgr"},
    )
    with cluster.running() as (target, database), ExitStack() as stack:
        services = [
            stack.enter_context(service(database, **url, data_dir=str(target.where / f"service-{number}")))
            for number, url in enumerate(urls)
        ]
        for each in services:
            run(each, Fault("none", lambda _: None))  # their first requests take longer
        print(_HEAD, flush=True)
        for name in names or FAULTS:
            result = _run(target, services, name)
            print(result, flush=True)
            problems += [f"{result.title}: {problem}" for problem in result.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
