"""The programs of PostgreSQL."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkmgr.db import binaries, folders

pytestmark = pytest.mark.slow


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="linkmgr test ", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root too")
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
