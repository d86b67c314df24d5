"""Start the service with its users on a temporary database, and run schemathesis against it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from linkmgr import create_app
from linkmgr.core import keys
from linkmgr.core.database import embedded, migrations, statements
from linkmgr.core.web import passwords
from linkmgr.repository import users
from tests.conftest import MANY, ROOT
from tests.support.servers import free_port, serving

CAST = ("alice", "bob", "admin")  # two tenants and an administrator
# High ids, so that generated ids never match: the administrator would delete these users.
FIRST_USER = 7_000_000_001
# The administrator is allowed what the tenants are refused, and owns nothing that others could see.
TENANTS: tuple[str, ...] = ()
ADMINISTRATOR = ("--auth-wfc-user", "admin", "--include-tag", "Plans", "--include-tag", "Users")


class Arena(NamedTuple):
    """The running service, and the folder with the users' keys."""

    base: str
    folder: Path

    def fuzz(self, seconds: int, *options: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
        here = Path(__file__).parent
        command: list[str | Path] = [Path(sys.executable).with_name("schemathesis")]
        command += ["--config-file", here / "schemathesis.toml", "run", "--max-time", str(seconds), *options]
        return subprocess.run(
            [*command, f"{self.base}/api/openapi.json"],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            text=True,
            check=False,
            capture_output=capture,
        )


def _cast(folder: Path, dsn: str) -> None:
    """Register the users without limits, and write their keys to the files that schemathesis reads."""
    app = create_app(database_url=dsn, data_dir=str(folder))
    with app.app_context():
        migrations.upgrade(create=True)
        statements.run("SELECT setval(pg_get_serial_sequence('users', 'id'), %(first)s, false)", first=FIRST_USER)
        statements.run("UPDATE plans SET rate = NULL")
        entries = [{"name": name, "fixedHeaders": [_key_of(name)]} for name in CAST]
    (folder / "auth.json").write_text(json.dumps({"auth": entries}))


def _key_of(name: str) -> dict[str, str]:
    user_id = users.next_id()
    plan = statements.row("SELECT id FROM plans WHERE name = 'Business'")
    assert plan
    users.add(
        user_id,
        username=name,
        email=f"{name}@example.com",
        password_hash=passwords.hashed(name),
        admin=name == "admin",
        planid=plan["id"],
        **keys.new_key(user_id),
    )
    return {"name": "Authorization", "value": f"Bearer {users.read(user_id)['apikey']}"}


@contextmanager
def arena(application: str = "app:app") -> Iterator[Arena]:
    with TemporaryDirectory() as name, embedded.server(None) as dsn:
        folder = Path(name)
        _cast(folder, dsn)
        settings = {"database_url": dsn, "data_dir": name, "domain_check": "off", "rate_limit": MANY, "bulk_rows": MANY}
        with serving(free_port(), folder / "log", application=application, **settings) as base:
            yield Arena(base, folder)


def main(seconds: int, *options: str) -> int:
    with arena() as started:
        tenants = started.fuzz(seconds * 4 // 5, *TENANTS, *options)
        administrator = started.fuzz(seconds // 5, *ADMINISTRATOR, *options)
    return tenants.returncode or administrator.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
