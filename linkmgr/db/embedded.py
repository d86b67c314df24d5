"""A PostgreSQL of the service's own: nothing to install, nothing left running.

    with server(folder) as dsn: ...     durable, kept in the folder
    with server(None) as dsn: ...       throw-away, for tests

The postmaster is a direct child, and the kernel stops it when this process dies, however it dies.  All processes
of a cluster inherit the descriptor of a locked file, so that a free lock proves that none of them lives.  Who
finds the lock taken shares the other's server, and takes over when the other leaves.
"""

import contextlib
import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import sql

from linkmgr.db.binaries import SHARED, Unavailable, find, reachable, readable, tag

DATABASE = "linkmgr"
_TEMPORARY = Path("/tmp")  # noqa: S108 - folders of mode 0700; short, since a socket's path has at most 107 characters
_START_SECONDS = 60
_STOP_SECONDS = 30
_RETRY_SECONDS = 1  # between starts of a server that dies at once
_READY_LINE = 7  # of postmaster.pid, counted from 0
_BUILTIN_LOCALE = 17  # the first version that has one
_OPTIONS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "jit": "off",
    # Statements and details hold what users sent, and errors are the service's to log.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
_THROW_AWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def _user(data: Path) -> pwd.struct_passwd:
    """Whom the server runs as: for root, which PostgreSQL refuses, whoever made the cluster."""
    uid = os.geteuid() or (data.stat().st_uid if data.exists() else 0)
    for user in (uid,) if uid else ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)
    wanted = f"with the number {uid}" if uid else "'postgres'"
    raise Unavailable(f"PostgreSQL needs a user {wanted} to run as: add one, or set LINKMGR_DATABASE_URL.")


def located(folder: Path) -> Path:
    """Where the cluster of `folder` lies: elsewhere for root, when the server's user may not enter the folder."""
    data = folder.resolve()
    if os.geteuid() != 0:
        return data
    user, elsewhere = _user(data), SHARED / tag(data) / "data"
    if data.exists():
        if not reachable(data, user):
            raise Unavailable(f"{user.pw_name} may not enter {data} any more: allow it (chmod o+x) in its parents.")
        return data
    return data if reachable(data, user) and not elsewhere.exists() else elsewhere


def _socket_folder(data: Path) -> Path:
    return _TEMPORARY / f"linkmgr-{_user(data).pw_uid}-{tag(data)}"


def _dsn(data: Path, database: str = DATABASE) -> str:
    return f"postgresql://postgres@/{database}?host={_socket_folder(data)}&port={_OPTIONS['port']}"


def dsn(folder: Path) -> str:
    """Where the server of `folder` listens, whether or not it runs."""
    return _dsn(located(folder))


def _runs_on(data: Path, pid: str) -> bool:
    """Whether the process is a postmaster of the cluster: its working directory tells, and a zombie has none."""
    if sys.platform != "linux":
        found = subprocess.run(["ps", "-o", "comm=", "-p", pid], capture_output=True, check=False)
        return b"postgres" in found.stdout
    try:
        return Path("/proc", pid, "cwd").samefile(data)
    except OSError:
        return False


def stop_with_parent(signal_number: int, parent: int) -> None:
    """For a child: be sent the signal when the parent dies, even by SIGKILL (Linux; others have to do without)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal_number, 0, 0, 0)
        if os.getppid() != parent:  # it died before it could be watched
            os._exit(1)


class Server:
    def __init__(self, data: Path, *, durable: bool) -> None:
        self.data, self.durable = data, durable
        self.user = _user(data)
        self.sockets = _socket_folder(data)
        self.log = data.with_name(data.name + ".log")
        self._lock: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._next_start = 0.0
        # Root's children change to the server's user; so do the folders that it writes to.
        self._identity: dict[str, Any] = (
            {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        self._environment = {**kept, "LC_ALL": "C"}

    def ensure(self) -> None:
        """Starts the server unless it runs, ours or another process's."""
        if (self._child and self._child.poll() is None) or time.monotonic() < self._next_start:
            return
        # A dead server's lock is let go and taken again, which waits for the last of its processes.
        self._let_go()
        if self._take_lock():
            self._next_start = time.monotonic() + _RETRY_SECONDS
            self._start()

    def wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while not (self._ready() and self._has_database()):
            if self._child is None:
                self.ensure()
            elif self._child.poll() is not None:
                tail = self.log.read_text(errors="replace")[-1500:]
                raise Unavailable(f"PostgreSQL did not start; {self.log} ends with:\n{tail}")
            if time.monotonic() > end:
                raise Unavailable(f"PostgreSQL was not ready in {_START_SECONDS} seconds; see {self.log}.")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._child and self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)  # "fast": open transactions are rolled back
            try:
                self._child.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._child.send_signal(signal.SIGQUIT)
                self._child.wait()
        self._let_go()

    def _let_go(self) -> None:
        self._child = None
        if self._lock is not None:
            shutil.rmtree(self.sockets, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> bool:
        lock = os.open(self.data.with_name(self.data.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _start(self) -> None:
        version_file = self.data / "PG_VERSION"
        wanted = int(version_file.read_text()) if version_file.exists() else None
        binaries, major = find(wanted)
        binaries = readable(binaries, self.user)
        if wanted is None:
            self._make_cluster(binaries, major)
        with contextlib.suppress(FileExistsError):
            self.sockets.mkdir(mode=0o700)
            os.chown(self.sockets, self.user.pw_uid, self.user.pw_gid)
        for folder in (self.data, self.sockets):
            if folder.lstat().st_uid != self.user.pw_uid:
                raise Unavailable(f"{folder} belongs to another user than {self.user.pw_name}.")
            folder.chmod(0o700)
        self._forget_dead_server()
        options = _OPTIONS | {"unix_socket_directories": str(self.sockets)} | ({} if self.durable else _THROW_AWAY)
        settings = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        assert self._lock is not None
        parent = os.getpid()
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [binaries / "postgres", "-D", self.data, *settings],
                env=self._environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[self._lock],
                start_new_session=True,  # Ctrl-C is for the service, which stops its server last
                preexec_fn=lambda: stop_with_parent(signal.SIGINT, parent),  # noqa: PLW1509 - started from one thread
                **self._identity,
            )

    def _forget_dead_server(self) -> None:
        """The lock is ours, so that none of our servers lives: a pid file is stale, its pid a zombie's or reused."""
        pid_file = self.data / "postmaster.pid"
        if pid_file.exists():
            pid = pid_file.read_text().split("\n", maxsplit=1)[0]
            if _runs_on(self.data, pid):
                raise Unavailable(f"A PostgreSQL that linkmgr did not start (process {pid}) runs on {self.data}.")
            pid_file.unlink()
        for socket in self.sockets.glob(".s.PGSQL.*"):
            socket.unlink()

    def _make_cluster(self, binaries: Path, major: int) -> None:
        """initdb, made whole by one rename."""
        new = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        os.chown(new, self.user.pw_uid, self.user.pw_gid)
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "-k"]
        options += locale if major >= _BUILTIN_LOCALE else ["--locale=C.UTF-8"]
        options += [] if self.durable else ["--no-sync"]
        made = subprocess.run(
            [binaries / "initdb", "-D", new, *options],
            check=False,
            capture_output=True,
            text=True,
            env=self._environment,
            cwd="/",
            **self._identity,
        )
        if made.returncode:
            raise Unavailable(f"initdb could not make {self.data}:\n{made.stderr.strip()}")
        new.rename(self.data)

    def _ready(self) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        ours = self._child is None or lines[:1] == [str(self._child.pid)]
        return ours and len(lines) > _READY_LINE and lines[_READY_LINE].strip() == "ready"

    def _has_database(self) -> bool:
        try:
            connection = psycopg2.connect(_dsn(self.data, "postgres"), connect_timeout=5)
        except psycopg2.OperationalError:
            return False
        connection.autocommit = True
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
            if not cursor.fetchone():
                with contextlib.suppress(psycopg2.errors.DuplicateDatabase, psycopg2.errors.UniqueViolation):
                    cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        return True


def _throw_away() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="linkmgr-", dir=_TEMPORARY)).resolve()
    user = _user(folder / "data")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return folder / "data"


@contextlib.contextmanager
def running(folder: Path | None) -> Iterator[Server]:
    """The server of `folder`, or a throw-away one.  Call its `ensure` now and then to survive its death."""
    data = _throw_away() if folder is None else located(folder)
    server = Server(data, durable=folder is not None)
    mask = os.umask(0o022)  # not the caller's: the server's user has to enter the folders
    try:
        try:
            data.parent.mkdir(parents=True, exist_ok=True)
            server.ensure()
            server.wait()
        except OSError as error:
            raise Unavailable(f"PostgreSQL cannot run in {data}: {error.strerror}: {error.filename}.") from None
        finally:
            os.umask(mask)
        yield server
    finally:
        server.stop()
        if folder is None:
            shutil.rmtree(data.parent, ignore_errors=True)


@contextlib.contextmanager
def server(folder: Path | None) -> Iterator[str]:
    """The DSN of a server that runs while the block does."""
    with running(folder) as started:
        yield _dsn(started.data)
