"""Folders of the private PostgreSQL servers, and the servers that run in them."""

import contextlib
import os
import pwd
from pathlib import Path

from linkmgr.core.database.binaries import SHARED_FOLDER, Unavailable, is_reachable, path_digest

TEMPORARY_ROOT = Path("/tmp")  # noqa: S108 - folders of mode 0700; a socket's path has at most 107 characters


def owner(data: Path) -> pwd.struct_passwd:
    """Return the user that the server runs as. PostgreSQL refuses root, which uses the owner of the
    cluster instead."""
    uid = os.geteuid() or (data.stat().st_uid if data.exists() else 0)
    for user in (uid,) if uid else ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)
    required = f"with the id {uid}" if uid else "'postgres'"
    raise Unavailable(
        f"PostgreSQL must run as a user {required}: add this user, or set LINKMGR_DATABASE_URL."
    )


def data_folder(folder: Path) -> Path:
    """Return the data folder of the cluster for `folder`. As root, it is in SHARED_FOLDER if the
    server's user may not enter `folder`."""
    data = folder.resolve()
    if os.geteuid() != 0:
        return data
    user, shared = owner(data), SHARED_FOLDER / path_digest(data) / "data"
    if data.exists():
        if not is_reachable(data, user):
            raise Unavailable(
                f"The user {user.pw_name} may not enter {data}: run chmod o+x on its parent folders."
            )
        return data
    return data if is_reachable(data, user) and not shared.exists() else shared


def socket_folder(data: Path) -> Path:
    return TEMPORARY_ROOT / f"linkmgr-{owner(data).pw_uid}-{path_digest(data)}"


def is_running_on(data: Path, pid: str) -> bool:
    """Return True if the process is a postmaster of the cluster. Its working directory is the data
    folder; a zombie has none."""
    try:
        return Path("/proc", pid, "cwd").samefile(data)
    except OSError:
        return False


def exists(folder: Path) -> bool:
    return (data_folder(folder) / "PG_VERSION").exists()


def is_running(folder: Path) -> bool:
    data = data_folder(folder)
    try:
        return is_running_on(data, (data / "postmaster.pid").read_text().split("\n", maxsplit=1)[0])
    except OSError:
        return False
