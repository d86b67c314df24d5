"""A copy of the program with some lines more, and a script that runs in it."""

import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
Edits = dict[str, list[tuple[str, str]]]  # by file: a text that it has once, and the text that replaces it

# Two users, and a client.
_BEGIN = """
import csv, io, json, sys

from linkmgr import create_app
from linkmgr.core import keys
from linkmgr.core.database import jobs, migrations
from linkmgr.repository import users
from linkmgr.core.web import passwords

app = create_app(database_url=sys.argv[1], data_dir=sys.argv[2], secret_key="unused" * 6, base_url="http://localhost")


def register(name):
    user_id = users.next_id()
    hashed, key = passwords.hashed("correct horse"), keys.new_key(user_id)
    users.add(user_id, username=name, email=f"{name}@example.com", password_hash=hashed, admin=True, **key)
    return {"Authorization": f"Bearer {users.read(user_id)['apikey']}"}


def export_account():
    return client.get("/api/account/export", headers=alice).data


def import_account(exported):
    imported = client.post("/api/imports", data=exported, content_type="application/zip", headers=bob)
    assert imported.status_code == 200, imported.text
    with app.app_context():
        while jobs.run_next(lambda _: False):
            pass


with app.app_context():
    migrations.upgrade(create=True)
    alice, bob = register("alice"), register("bob")
client = app.test_client()
"""


def run(edits: Edits, script: str, database: str, folder: Path) -> None:
    copy = _copy(edits, folder)
    command = [sys.executable, "-W", "error", "-c", _BEGIN + script, database, str(folder / "data")]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def run_tests(edits: Edits, folder: Path, *selected: str) -> tuple[int, str]:
    """Run tests in a copy, and return the status of pytest and what it prints."""
    copy = _copy(edits, folder)
    shutil.copytree(_ROOT / "tests", copy / "tests")
    shutil.copy(_ROOT / ".pytest.ini", copy)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *selected]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout


def _copy(edits: Edits, folder: Path) -> Path:
    copy = folder / "copy"
    # The bytecode is copied too, so that only a changed file is compiled again.
    shutil.copytree(_ROOT / "linkmgr", copy / "linkmgr")
    shutil.copy(_ROOT / "schema.sql", copy)
    for name, replaced in edits.items():
        text = (copy / name).read_text()
        for old, new in replaced:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (copy / name).write_text(text)
    return copy
