"""Components of an installation on several machines: a connection pooler and a streaming replica."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from linkmgr.core.database import embedded
from linkmgr.core.database.binaries import find_server, make_readable
from tests.conftest import ROOT
from tests.support.clusters import ask, postmaster
from tests.support.servers import children, free_port
from tests.support.targets import wait_until


def answers(dsn: str) -> bool:
    try:
        return ask(dsn, "SELECT 1") == "1"
    except psycopg2.OperationalError:
        return False


def signal_all(server: embedded.Server, number: signal.Signals) -> None:
    """Send a signal to all processes of a server."""
    main = postmaster(server.data)
    for process in (main, *children(main)):
        with suppress(ProcessLookupError):
            os.kill(process, number)


class Replica:
    """A running streaming replica."""

    def __init__(self, primary: str, server: embedded.Server) -> None:
        self.primary, self.server = primary, server
        self.dsn = embedded._dsn(server.data)

    def start(self) -> None:
        """Start the server, for the first time or after it was killed."""

        def started() -> bool:
            self.server.ensure()
            return answers(self.dsn)

        wait_until(started)

    def catch_up(self) -> None:
        """Wait until the replica has replayed everything that the primary has written."""
        written = ask(self.primary, "SELECT pg_current_wal_insert_lsn()")
        ask(self.primary, "SET synchronous_commit = on; SELECT pg_logical_emit_message(true, 'tests', '')")
        wait_until(lambda: ask(self.dsn, f"SELECT pg_last_wal_replay_lsn() >= '{written}'") == "True")


@contextmanager
def replica(primary: str) -> Iterator[Replica]:
    data = embedded._create_temporary_folder()
    server = embedded.Server(data, durable=False)
    binaries = make_readable(find_server(None)[0], server.user)
    options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
    subprocess.run(
        [binaries / "pg_basebackup", "--pgdata", data, "--dbname", primary, *options],
        check=True,
        cwd="/",
        env=server._environment,
        **server._identity,
    )
    made = Replica(primary, server)
    try:
        made.start()
        yield made
    finally:
        server.stop()
        shutil.rmtree(data.parent)


@contextmanager
def pooler(dsn: str, folder: Path) -> Iterator[str]:
    """Run Debian's pgbouncer with deploy/pgbouncer.ini and local settings, and return the DSN."""
    if not shutil.which("pgbouncer"):
        pytest.skip("pgbouncer is missing: apt-get install pgbouncer")
    target = parse_dsn(dsn)
    port, user = free_port(), Path(target["host"]).owner()
    changes = {
        "linkmgr = host=127.0.0.1": f"* = host={target['host']} port={target['port']} user=postgres",
        "auth_type = scram-sha-256": "auth_type = any",
        "auth_file = /etc/pgbouncer/userlist.txt": "",
        "6432": str(port),
        "unix_socket_dir = /run/postgresql": "unix_socket_dir =",
        "pidfile = /run/postgresql/pgbouncer.pid": "",
    }
    text = (ROOT / "deploy/pgbouncer.ini").read_text()
    for theirs, ours in changes.items():
        assert theirs in text
        text = text.replace(theirs, ours)
    configured = Path(target["host"]) / f"pgbouncer-{port}.ini"  # readable by the server's user
    configured.write_text(text)
    configured.chmod(0o644)
    identity: dict[str, Any] = {"user": user, "extra_groups": []} if os.geteuid() == 0 else {}
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(["pgbouncer", configured], stderr=log, cwd="/", **identity)
    try:
        through = f"postgresql://127.0.0.1:{port}/linkmgr?user=linkmgr"
        wait_until(lambda: process.poll() is not None or answers(through))
        assert process.poll() is None, (folder / "pgbouncer.log").read_text()
        yield through
    finally:
        process.terminate()
        process.wait(20)
        configured.unlink()
