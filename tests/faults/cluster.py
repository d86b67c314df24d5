"""Three nodes with etcd, Patroni and PostgreSQL, with the files of deploy/cluster.

Each node has a network namespace. A bridge connects them with the namespace of this process, which has the services.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2

from linkmgr import create_app
from linkmgr.core.database import migrations
from linkmgr.core.database.binaries import find_server, make_readable
from linkmgr.core.database.folders import owner
from tests.faults.deployment import Database, folder, settings
from tests.support.servers import ROOT, children, is_open
from tests.support.targets import wait_until

PATRONI = Path(sys.prefix, "failover/bin/patroni")
_FILES = ROOT / "deploy/cluster"
_NAMES = {"pg1": "192.0.2.21", "pg2": "192.0.2.22", "pg3": "192.0.2.23"}
_URL = "postgresql://postgres:failover@{}/{}?target_session_attrs=read-write&connect_timeout=2"
_START_SECONDS = 120


def _namespace(process: int | str) -> Path:
    return Path(f"/proc/{process}/ns/net")


def enter_network(module: str, arguments: list[str]) -> None:
    """Run the module in a network namespace of its own, so that the network of the machine stays as it is."""
    if _namespace("self").readlink() == _namespace(os.getppid()).readlink():
        command = ["unshare", "--net", "--", sys.executable, "-m", module, *arguments]
        os.execvp(command[0], command)  # noqa: S606


def _ip(command: str, *prefix: str) -> None:
    subprocess.run([*prefix, "ip", *command.split()], check=True)


class Node:
    def __init__(self, name: str, where: Path, stack: ExitStack) -> None:
        self.name, self.address = name, _NAMES[name]
        self.where, self.user = where / name, owner(where)
        self.dsn = _URL.format(self.address, "linkmgr")
        self.where.mkdir(mode=0o700)
        os.chown(self.where, self.user.pw_uid, self.user.pw_gid)
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._prefix = self._join_network(stack)
        stack.callback(self.kill)

    def _join_network(self, stack: ExitStack) -> list[str]:
        """Return the prefix of a command that runs in the namespace of the node, as the user of PostgreSQL."""
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(holder.kill)
        wait_until(lambda: _namespace("self").readlink() != _namespace(holder.pid).readlink())
        enter = ["nsenter", f"--net={_namespace(holder.pid)}"]
        _ip(f"link add {self.name} type veth peer name eth0 netns {holder.pid}")
        _ip(f"link set {self.name} master bridge up")
        _ip(f"address add {self.address}/24 dev eth0", *enter)
        _ip("link set eth0 up", *enter)
        _ip("link set lo up", *enter)
        return [*enter, f"--setuid={self.user.pw_uid}", f"--setgid={self.user.pw_gid}"]

    def start(self) -> None:
        """Start the programs of the node that do not run."""
        binaries = make_readable(find_server(None)[0], self.user)
        environment = os.environ | {"HOME": str(self.where), "ETCD_DATA_DIR": str(self.where / "etcd")}
        for line in (_FILES / "etcd").read_text().splitlines()[1:]:
            name, value = line.split("=", 1)
            environment[name] = value.replace("NODE", self.name).replace("ADDRESS", self.address)
        text = (_FILES / "patroni.yaml").read_text()
        for theirs, ours in {
            "NODE": self.name,
            "ADDRESS": self.address,
            "PASSWORD": "failover",
            "/var/lib/postgresql/patroni": str(self.where / "data"),
            "/usr/lib/postgresql/15/bin": str(binaries),
            "/run/postgresql": str(self.where),
            "mode: required": "mode: automatic",  # few machines of developers have a watchdog
        }.items():
            assert theirs in text
            text = text.replace(theirs, ours)
        configured = self.where / "patroni.yaml"
        configured.write_text(text)
        for command in (("etcd",), (PATRONI, configured)):
            name = Path(command[0]).name
            if name not in self._started or self._started[name].poll() is not None:
                with (self.where.parent / f"{self.name}-{name}.log").open("ab") as log:
                    self._started[name] = subprocess.Popen(
                        [*self._prefix, *command], stdout=log, stderr=log, cwd="/", env=environment
                    )

    def postmaster(self) -> int:
        return int((self.where / "data/postmaster.pid").read_text().split()[0])

    def signal(self, number: signal.Signals) -> None:
        waiting = [process.pid for process in self._started.values()]
        with suppress(OSError, ValueError):
            waiting.append(self.postmaster())
        while waiting:
            pid = waiting.pop()
            with suppress(OSError):
                waiting += children(pid)
                os.kill(pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        for process in self._started.values():
            process.wait()

    def kill_etcd(self) -> None:
        self._started["etcd"].kill()

    def connect(self, state: str) -> None:
        """Connect the node with the others ("up"), or cut it off ("down")."""
        _ip(f"link set {self.name} {state}")

    def switch_over(self) -> None:
        body = json.dumps({"leader": self.name}).encode()
        urllib.request.urlopen(f"http://{self.address}:8008/switchover", body, timeout=60).close()

    def members(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"http://{self.address}:8008/cluster", timeout=2) as response:
            found: list[dict[str, Any]] = json.load(response)["members"]
            return found


class Cluster:
    """The nodes, in place of the server of a `Database`."""

    def __init__(self, where: Path, stack: ExitStack) -> None:
        self.where = where
        self.data = where / "service" / "data"
        self.nodes = [Node(name, where, stack) for name in _NAMES]

    def ensure(self) -> None:
        """Patroni restarts PostgreSQL."""

    def dsn(self, database: str = "linkmgr") -> str:
        return _URL.format(",".join(_NAMES.values()), database)

    def roles(self) -> dict[str, Node]:
        """Return the primary ("leader") and the standbys ("sync_standby", "replica") that follow it."""
        for node in self.nodes:
            with suppress(OSError, ValueError, KeyError):
                members = {each["name"]: each for each in node.members()}
                [leader] = (each for each in members.values() if each["role"] == "leader")
                states = {"running": leader["timeline"], "streaming": leader["timeline"]}
                return {
                    members[each.name]["role"]: each
                    for each in self.nodes
                    if states.get(members[each.name]["state"]) == members[each.name].get("timeline", 0)
                }
        return {}

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        wait_until(lambda: {*self.roles()} == {"leader", "sync_standby", "replica"}, _START_SECONDS)


def _is_known(dsn: str) -> bool:
    """Return True if the nodes have the database. libpq fails at a standby that has not replayed it."""
    with suppress(psycopg2.OperationalError), closing(psycopg2.connect(dsn)):
        return True
    return False


@contextmanager
def running() -> Iterator[tuple[Cluster, Database]]:
    """Run a cluster, and haproxy with the file of deploy/cluster."""
    for command in ("set lo up", "add bridge type bridge", "set bridge up"):
        _ip(f"link {command}")
    _ip("address add 192.0.2.1/24 dev bridge")
    with folder() as where, ExitStack() as stack:
        cluster = Cluster(where, stack)
        cluster.start()
        proxy = subprocess.Popen(["haproxy", "-f", _FILES / "haproxy.cfg"], stderr=subprocess.DEVNULL)
        stack.callback(proxy.kill)
        wait_until(lambda: is_open(6432))
        with closing(psycopg2.connect(cluster.dsn("postgres"))) as connection:
            connection.autocommit = True
            connection.cursor().execute("CREATE DATABASE linkmgr")
        wait_until(lambda: _is_known(cluster.dsn()))
        database = Database(cluster, cluster.dsn())
        with create_app(**settings(database)).app_context():
            migrations.upgrade(create=True)
        yield cluster, database
