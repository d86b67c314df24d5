"""The private PostgreSQL server: sharing, takeover, restart, durability and cleanup."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg2
import pytest

from linkmgr.core.database import binaries, embedded, folders
from tests.conftest import ROOT
from tests.support.clusters import alive, ask, postmaster
from tests.support.targets import wait_until

pytestmark = pytest.mark.services
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root too")
OWNER = """
import sys
from pathlib import Path
from linkmgr.core.database import embedded
with embedded.server(Path(sys.argv[1])) as dsn:
    print(dsn, flush=True)
    sys.stdin.read()
"""


@contextmanager
def owner(data: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that runs the cluster's server."""
    program = [sys.executable, "-c", OWNER, str(data)]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline().startswith("postgresql://")
        yield process
        process.stdin.close()


@contextmanager
def owner_as(user: str, data: Path) -> Iterator[None]:
    """Start it as another user, by fork, because that user may have no access to the virtual environment."""
    (started, start), (ended, end) = os.pipe(), os.pipe()
    account = pwd.getpwnam(user)
    child = os.fork()
    if child == 0:
        os.close(end)
        os.umask(0o077)
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        with embedded.server(data):
            os.write(start, b"1")
            os.read(ended, 1)
        os._exit(0)
    os.close(start)
    assert os.read(started, 1) == b"1"
    yield
    os.close(end)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """A folder that every user may enter, with a space in its path."""
    folder = Path(tempfile.mkdtemp(prefix="linkmgr test ", dir="/tmp")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def stopped_cluster(shared_folder: Path) -> Iterator[Path]:
    """A stopped cluster with one row, which no test loses."""
    with embedded.server(shared_folder / "postgres") as dsn:
        ask(dsn, "CREATE TABLE kept AS SELECT 'data' AS what")
    yield shared_folder / "postgres"
    with embedded.server(shared_folder / "postgres") as dsn:
        assert ask(dsn, "SELECT what FROM kept") == "data"


@pytest.fixture
def data(stopped_cluster: Path) -> Iterator[Path]:
    yield stopped_cluster
    assert not alive(stopped_cluster)


def test_a_temporary_server_leaves_no_files() -> None:
    with embedded.running(None) as server:
        data, sockets = server.data, server.sockets
        assert alive(data)
    assert not alive(data)
    assert not data.parent.exists()
    assert not sockets.exists()


def test_other_processes_share_the_server_and_take_over_when_the_first_ends(data: Path) -> None:
    with owner(data) as first, embedded.running(data) as shared:
        before = postmaster(data)
        with embedded.server(data):
            pass
        assert ask(embedded.dsn(data), "SELECT what FROM kept") == "data"
        shared.ensure()
        assert postmaster(data) == before
        first.communicate("")
        shared.ensure()
        shared.wait()
        assert ask(embedded.dsn(data), "SELECT what FROM kept") == "data"
        assert postmaster(data) != before


def test_the_server_stops_with_a_process_that_is_killed(data: Path) -> None:
    with owner(data) as process:
        process.kill()
        process.wait()
        wait_until(lambda: not alive(data))


def test_a_pid_file_with_the_pid_of_another_process_does_not_block_the_start(data: Path) -> None:
    with owner(data) as process:
        for pid in [process.pid, *alive(data)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not alive(data))
    pid_file = data / "postmaster.pid"
    user = data.stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "60"], user=user) as foreign:
        pid_file.write_text(pid_file.read_text().replace(pid_file.read_text().split("\n")[0], str(foreign.pid), 1))
        with embedded.server(data) as dsn:
            assert ask(dsn, "SELECT what FROM kept") == "data"
        assert foreign.poll() is None
        foreign.kill()


def test_a_killed_postmaster_is_started_again(data: Path) -> None:
    with embedded.running(data) as server:
        before = postmaster(data)

        def restarted() -> bool:
            server.ensure()
            with suppress(FileNotFoundError, ValueError):  # the file is being written
                return postmaster(data) != before
            return False

        time.sleep(1)  # the restart of a server that dies early is delayed
        os.kill(before, signal.SIGKILL)
        wait_until(restarted)
        server.wait()
        assert ask(embedded.dsn(data), "SELECT what FROM kept") == "data"


def test_a_server_of_another_installation_on_the_folder_is_left_alone(data: Path) -> None:
    programs, _ = binaries.find_server(int((data / "PG_VERSION").read_text()))
    folder = binaries.make_readable(programs, folders.owner(data))
    user = data.stat().st_uid if os.geteuid() == 0 else None
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={data}"]
    with subprocess.Popen([folder / "postgres", "-D", data, *options], user=user, stderr=subprocess.DEVNULL) as foreign:
        wait_until((data / "postmaster.pid").exists)
        with pytest.raises(binaries.Unavailable, match="which linkmgr did not start"):
            embedded.server(data).__enter__()
        assert foreign.poll() is None
        foreign.terminate()


def test_a_server_that_cannot_start_is_reported_soon_with_its_log(data: Path) -> None:
    configuration = data / "postgresql.conf"
    before = configuration.read_text()
    configuration.write_text("nonsense")
    started = time.monotonic()
    with pytest.raises(binaries.Unavailable, match=r"did not start; (.|\n)*syntax error"):
        embedded.server(data).__enter__()
    assert time.monotonic() - started < 30
    configuration.write_text(before)


@as_root
@pytest.mark.parametrize("size", ["8k", "24m", "38m", "39m"])  # for initdb, connections, a database
def test_a_full_disk_at_the_first_start_is_reported_in_one_sentence(shared_folder: Path, size: str) -> None:
    disk = shared_folder / f"disk of {size}"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "linkmgr-test", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this root may not mount a file system in memory")
    try:
        with pytest.raises(binaries.Unavailable) as full:
            embedded.server(disk / "postgres").__enter__()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
    sentence = f"The disk with {disk} is full: free 100 MB or more, then start again."
    assert str(full.value) == sentence


def test_a_folder_of_another_major_version_is_reported_in_one_sentence(data: Path) -> None:
    version = data / "PG_VERSION"
    before = version.read_text()
    version.write_text("9\n")
    with pytest.raises(binaries.Unavailable, match="created by PostgreSQL 9, which was not found"):
        embedded.server(data).__enter__()
    version.write_text(before)


def test_environment_variables_do_not_redirect_the_connection(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "1", "PGHOST": "nowhere", "PGUSER": "x", "LC_ALL": "xx_XX", "LANG": "xx"}.items():
        monkeypatch.setenv(name, value)
    with embedded.server(data) as dsn:
        assert ask(dsn, "SELECT what FROM kept") == "data"


def test_user_data_is_not_in_the_log(data: Path) -> None:
    with embedded.running(data) as server:
        with pytest.raises(psycopg2.DataError):
            ask(embedded.dsn(data), "SELECT 'hidden'::integer")
        with pytest.raises(psycopg2.OperationalError):
            ask(embedded.dsn(data), "SELECT pg_terminate_backend(pg_backend_pid()), 'hidden'")
    assert "hidden" not in server.log.read_text()


def test_a_read_only_folder_is_reported_in_one_sentence() -> None:
    with pytest.raises(binaries.Unavailable, match=r"PostgreSQL cannot run in /proc/none/postgres: .*\."):
        embedded.server(Path("/proc/none/postgres")).__enter__()


@as_root
def test_an_ordinary_user_has_a_server_and_root_shares_and_runs_it(shared_folder: Path) -> None:
    home = shared_folder / "home"
    home.mkdir(mode=0o700)
    shutil.chown(home, "nobody")
    data = home / "postgres"
    with owner_as("nobody", data):
        assert set(alive(data).values()) == {home.stat().st_uid}
        with embedded.server(data) as dsn:
            ask(dsn, "CREATE TABLE kept AS SELECT 'data' AS what")
    assert not alive(data)
    with embedded.server(data) as dsn:
        assert ask(dsn, "SELECT what FROM kept") == "data"
    with owner_as("nobody", data):
        assert ask(dsn, "SELECT what FROM kept") == "data"


@as_root
def test_in_a_folder_that_only_root_may_enter_the_cluster_is_stored_elsewhere(
    shared_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (folders, binaries):
        monkeypatch.setattr(module, "SHARED_FOLDER", shared_folder / "shared")
    closed = shared_folder / "closed"
    closed.mkdir(mode=0o700)
    mask = os.umask(0o077)
    with embedded.running(closed / "postgres") as server:
        assert server.data.is_relative_to(shared_folder / "shared")
        assert server.data == folders.data_folder(closed / "postgres")
        assert ask(embedded.dsn(closed / "postgres"), "SELECT 1") == "1"
    assert os.umask(mask) == 0o077
    assert not alive(server.data)
    closed.chmod(0o755)
    assert embedded.dsn(closed / "postgres") == embedded._dsn(server.data)
    assert list(closed.iterdir()) == []


@as_root
def test_programs_that_the_server_user_cannot_access_are_copied_with_their_libraries(
    shared_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "SHARED_FOLDER", shared_folder / "copies")
    closed = shared_folder / "venv"
    closed.mkdir(mode=0o700)
    programs, major = binaries.find_server(None)
    package = programs.parent.parent
    for folder in (package, package.with_name(package.name + ".libs")):
        if folder.exists():
            shutil.copytree(folder, closed / folder.name, symlinks=True)
    user = folders.owner(shared_folder / "none")
    copy = binaries.make_readable(closed / programs.relative_to(package.parent), user)
    assert copy.is_relative_to(shared_folder / "copies")
    printed = subprocess.run(
        [copy / "postgres", "--version"], user=user.pw_uid, capture_output=True, text=True, check=True
    )
    assert f"(PostgreSQL) {major}" in printed.stdout
    assert [path.name for path in (shared_folder / "copies").iterdir()] == [
        copy.relative_to(shared_folder / "copies").parts[0]
    ]
